#include "headrace/loader/staging.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "headrace/format/mds_reader.h"
#include "headrace/store/local_file.h"
#include "headrace/trust/index.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE (1 << 1)
#endif

namespace headrace::loader {
namespace {

namespace fs = std::filesystem;

// Tells a folder of ours from one that only has the name.
constexpr const char* kMarker = ".headrace-staging";
// Times that another process may take the folder away between our steps before we give up.
constexpr int kTriesMax = 16;

Status failed(const std::error_code& error, std::string_view doing, const std::string& path) {
  return store::errno_status(error.value(), doing, path);
}

bool exists(const std::string& path) {
  struct stat s;
  return ::lstat(path.c_str(), &s) == 0;
}

// Ok when `out` may be written: absent, empty, or a data set that is to be replaced.
Status check_output(const std::string& out, bool overwrite) {
  std::error_code error;
  const fs::file_status status = fs::status(out, error);
  if (status.type() == fs::file_type::not_found) return Status::ok();
  if (error) return failed(error, "look at", out);
  if (!fs::is_directory(status)) {
    return invalid_argument(out + " exists and is no directory; choose another place");
  }
  if (fs::is_empty(out, error) && !error) return Status::ok();
  if (!overwrite) {
    return invalid_argument(out +
                            " exists and is not empty; choose another place, or ask to "
                            "overwrite it");
  }
  const bool is_data_set = exists(out + "/" + std::string(format::kMdsIndexName)) ||
                           exists(out + "/" + std::string(trust::kIndexName));
  if (is_data_set) return Status::ok();
  return invalid_argument(out + " is not empty and holds no data set; it will not be overwritten");
}

// Empties a folder of ours, or refuses one that is not.
Status clear_stale(const std::string& partial) {
  std::error_code error;
  if (!fs::is_empty(partial, error) && !error && !exists(partial + "/" + kMarker)) {
    return invalid_argument(partial +
                            " is in the way and was not left by a writer of Headrace; "
                            "move it elsewhere");
  }
  for (fs::directory_iterator it(partial, error), end; !error && it != end; it.increment(error)) {
    // The marker goes last: it says whose the rest is.
    if (it->path().filename() == kMarker) continue;
    fs::remove_all(it->path(), error);
    if (error) break;
  }
  if (error) return failed(error, "clear", partial);
  const int fd = ::open((partial + "/" + kMarker).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return store::errno_status(errno, "create a file in", partial);
  ::close(fd);
  return Status::ok();
}

// True when the name still leads to the folder that was opened.
bool is_same(int fd, const std::string& path) {
  struct stat a;
  struct stat b;
  return ::fstat(fd, &a) == 0 && ::lstat(path.c_str(), &b) == 0 && a.st_ino == b.st_ino &&
         a.st_dev == b.st_dev;
}

// A locked descriptor of the folder `partial`, which is made when it is not there.
Result<int> lock_folder(const std::string& partial, const std::string& out) {
  for (int i = 0; i < kTriesMax; ++i) {
    if (::mkdir(partial.c_str(), 0777) != 0 && errno != EEXIST) {
      return store::errno_status(errno, "create directory", partial);
    }
    const int fd = ::open(partial.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
      if (errno == ENOENT) continue;
      return store::errno_status(errno, "open directory", partial);
    }
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      ::close(fd);
      if (error == EWOULDBLOCK) {
        return unavailable("another process is writing " + out + " (it holds the lock of " +
                           partial + "); wait for it or choose another place");
      }
      return store::errno_status(error, "lock", partial);
    }
    // The other process may have published or removed the folder before it gave up the lock.
    if (is_same(fd, partial)) return fd;
    ::close(fd);
  }
  return unavailable(partial + " is taken away again and again; is another process writing there?");
}

Status sync_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return store::errno_status(errno, "open directory", path);
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  // Some file systems cannot sync a directory.
  if (result != 0 && error != EINVAL) return store::errno_status(error, "sync", path);
  return Status::ok();
}

// Puts `partial` where `out` is; afterwards the old folder is at `*old`.
Status swap(const std::string& partial, const std::string& out, std::string* old) {
  *old = partial;
  if (::syscall(SYS_renameat2, AT_FDCWD, partial.c_str(), AT_FDCWD, out.c_str(), RENAME_EXCHANGE) ==
      0) {
    return Status::ok();
  }
  if (errno != EINVAL && errno != ENOSYS) return store::errno_status(errno, "replace", out);
  // This file system cannot exchange; for a moment there is nothing under the name.
  *old = out + ".old-" + std::to_string(::getpid());
  if (::rename(out.c_str(), old->c_str()) != 0) {
    return store::errno_status(errno, "move away", out);
  }
  if (::rename(partial.c_str(), out.c_str()) == 0) return Status::ok();
  Status status = store::errno_status(errno, "rename", partial);
  if (::rename(old->c_str(), out.c_str()) != 0) {
    return status.with_context("the old data set is now " + *old);
  }
  return status;
}

}  // namespace

Result<std::unique_ptr<Staging>> Staging::open(std::string out, bool overwrite) {
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  if (out.empty() || out == "/" || out == "." || out == ".." || out.ends_with("/..") ||
      out.ends_with("/.")) {
    return invalid_argument("'" + out + "' is no place for a data set; name a new folder");
  }
  std::error_code error;
  // The folder that a link points to is the one to be replaced, not the link.
  if (fs::is_symlink(out, error)) {
    out = fs::weakly_canonical(out, error).string();
    if (error) return failed(error, "follow", out);
  }
  HR_TRY(check_output(out, overwrite));
  const std::string parent = fs::path(out).parent_path().string();
  if (!parent.empty()) {
    fs::create_directories(parent, error);
    if (error) return failed(error, "create directory", parent);
  }
  std::string partial = out + ".partial";
  HR_ASSIGN(const int fd, lock_folder(partial, out));
  if (Status status = clear_stale(partial); !status.is_ok()) {
    ::close(fd);
    return status;
  }
  return std::unique_ptr<Staging>(new Staging(std::move(out), std::move(partial), fd, overwrite));
}

Staging::~Staging() {
  if (!is_published_ && is_same(fd_, partial_)) {
    std::error_code ignored;
    fs::remove_all(partial_, ignored);
  }
  ::close(fd_);
}

Status Staging::publish() {
  HR_CHECK(!is_published_, "a folder is published once");
  HR_TRY(check_output(out_, overwrite_));
  HR_TRY(store::remove_file(partial_ + "/" + kMarker));
  HR_TRY(sync_folder(partial_));
  std::string old;
  if (::rename(partial_.c_str(), out_.c_str()) != 0) {
    // A folder with files in it is not replaced by a rename.
    if (errno != ENOTEMPTY && errno != EEXIST) {
      return store::errno_status(errno, "rename", partial_);
    }
    HR_TRY(check_output(out_, overwrite_));
    HR_TRY(swap(partial_, out_, &old));
  }
  is_published_ = true;
  const std::string parent = fs::path(out_).parent_path().string();
  HR_TRY(sync_folder(parent.empty() ? "." : parent));
  if (old.empty()) return Status::ok();
  std::error_code error;
  fs::remove_all(old, error);
  return error ? failed(error, "remove the old data set", old) : Status::ok();
}

}  // namespace headrace::loader
