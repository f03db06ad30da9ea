#include "headrace/store/local_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#endif

namespace headrace::store {
namespace {

// Linux moves at most 0x7ffff000 bytes a call; chunks of this size stay below it.
constexpr std::size_t kCallBytesMax = 1U << 30;

ObjectInfo info_of(const struct stat& s) {
  ObjectInfo info;
  info.size = static_cast<std::uint64_t>(s.st_size);
  const auto mtime_ns =
      static_cast<std::int64_t>(s.st_mtim.tv_sec) * 1'000'000'000 + s.st_mtim.tv_nsec;
  info.pin =
      std::to_string(s.st_size) + "-" + std::to_string(mtime_ns) + "-" + std::to_string(s.st_ino);
  return info;
}

Result<ObjectInfo> regular_info(const struct stat& s, const std::string& path) {
  if (S_ISDIR(s.st_mode)) {
    return invalid_argument(path + " is a directory, not a file; name an object inside it");
  }
  if (!S_ISREG(s.st_mode)) return invalid_argument(path + " is not a regular file");
  return info_of(s);
}

// Removes the file unless it was kept; the file is never left behind on a failure.
class TempFile {
 public:
  explicit TempFile(std::string path) : path_(std::move(path)) {}
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() {
    if (!kept_) ::unlink(path_.c_str());
  }
  void keep() { kept_ = true; }

 private:
  std::string path_;
  bool kept_ = false;
};

Status write_all(const File& file, std::string_view body, const std::string& path) {
  while (!body.empty()) {
    const ssize_t n = ::write(file.fd(), body.data(), std::min(body.size(), kCallBytesMax));
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno_status(errno, "write", path);
    }
    body.remove_prefix(static_cast<std::size_t>(n));
  }
  return Status::ok();
}

Status sync_directory(const std::string& directory) {
  const File dir(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir.fd() < 0) return errno_status(errno, "open directory", directory);
  // Some file systems cannot sync a directory; the rename itself was still atomic there.
  if (::fsync(dir.fd()) != 0 && errno != EINVAL) return errno_status(errno, "sync", directory);
  return Status::ok();
}

Status move_into_place(const std::string& temp, const std::string& path, bool only_if_absent) {
  if (!only_if_absent) {
    return ::rename(temp.c_str(), path.c_str()) == 0 ? Status::ok()
                                                     : errno_status(errno, "replace", path);
  }
  long moved =
      ::syscall(SYS_renameat2, AT_FDCWD, temp.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE);
  if (moved != 0 && (errno == EINVAL || errno == ENOSYS)) {
    // The file system cannot do that in one step; a hard link refuses an existing name as well.
    moved = ::link(temp.c_str(), path.c_str());
    if (moved == 0) ::unlink(temp.c_str());
  }
  if (moved == 0) return Status::ok();
  if (errno == EEXIST) return invalid_argument(path + ": the file exists already");
  return errno_status(errno, "create", path);
}

}  // namespace

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

Mapping::~Mapping() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

Status errno_status(int error, std::string_view doing, const std::string& path) {
  const std::string text =
      "cannot " + std::string(doing) + " " + path + ": " + std::generic_category().message(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR: return not_found(text + "; check the path, or that its volume is mounted");
    case EACCES:
    case EPERM:
    case EROFS: return denied(text + "; check owner and mode of the file and its directories");
    case ENOSPC:
    case EDQUOT: return exhausted(text + "; free space there or choose another place");
    case EMFILE:
    case ENFILE: return exhausted(text + "; raise the limit of open files (ulimit -n)");
    case ENOMEM: return exhausted(text + "; raise vm.max_map_count or free memory");
    case EFBIG: return exhausted(text + "; raise the limit of file size (ulimit -f)");
    case ENAMETOOLONG:
    case ELOOP:
    case EISDIR: return invalid_argument(text);
    default: return unavailable(text);
  }
}

Result<File> open_for_reading(const std::string& path) {
  // Without O_NONBLOCK a FIFO in the data set would block the open for ever.
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd() < 0) return errno_status(errno, "open", path);
  return file;
}

Result<ObjectInfo> stat_file(const File& file, const std::string& path) {
  struct stat s;
  if (::fstat(file.fd(), &s) != 0) return errno_status(errno, "stat", path);
  return regular_info(s, path);
}

Result<ObjectInfo> stat_path(const std::string& path) {
  struct stat s;
  if (::stat(path.c_str(), &s) != 0) return errno_status(errno, "stat", path);
  return regular_info(s, path);
}

Result<std::shared_ptr<const Mapping>> map_file(const std::string& path) {
  HR_ASSIGN(const File file, open_for_reading(path));
  HR_ASSIGN(ObjectInfo info, stat_file(file, path));
  ByteView bytes;
  if (info.size > 0) {
    void* at = ::mmap(nullptr, info.size, PROT_READ, MAP_SHARED, file.fd(), 0);
    if (at == MAP_FAILED) return errno_status(errno, "map", path);
    bytes = {static_cast<const std::byte*>(at), info.size};
  }
  return std::shared_ptr<const Mapping>(std::make_shared<Mapping>(bytes, std::move(info)));
}

Status read_fully(const File& file, std::uint64_t offset, MutableBytes into,
                  const std::string& path) {
  while (!into.empty()) {
    const ssize_t n = ::pread(file.fd(), into.data(), std::min(into.size(), kCallBytesMax),
                              static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno_status(errno, "read", path);
    }
    if (n == 0) {
      return corrupt(path + ": the file ends at byte " + std::to_string(offset) +
                     ", it was longer when it was opened; somebody truncated it meanwhile");
    }
    into = into.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return Status::ok();
}

Result<ObjectInfo> replace_file(const std::string& path, std::string_view body,
                                bool only_if_absent) {
  const std::filesystem::path target(path);
  const std::string directory = target.parent_path().string();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return errno_status(error.value(), "create directory", directory);

  static std::atomic<std::uint64_t> counter{0};
  const std::string temp = directory + "/.headrace-" + std::to_string(::getpid()) + "-" +
                           std::to_string(counter.fetch_add(1)) + ".tmp";
  const File file(::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.fd() < 0) return errno_status(errno, "create", temp);
  TempFile guard(temp);
  HR_TRY(write_all(file, body, path));
  if (::fsync(file.fd()) != 0) return errno_status(errno, "sync", path);
  HR_TRY(move_into_place(temp, path, only_if_absent));
  guard.keep();
  HR_TRY(sync_directory(directory));
  // Of the descriptor and not of the name: another writer may have replaced the name by now.
  return stat_file(file, path);
}

Status remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR) {
    return errno_status(errno, "remove", path);
  }
  return Status::ok();
}

}  // namespace headrace::store
