// The system calls of the local store: open, stat, map, read and replace files; errors as Status.
// Thread-safety: free functions; a File or Mapping belongs to one thread at a time, mapped bytes to
// any.
// Ownership: File owns a descriptor, Mapping owns mapped memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/base/bytes.h"
#include "headrace/base/status.h"
#include "headrace/store/byte_source.h"

namespace headrace::store {

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&&) = delete;
  ~File();
  int fd() const { return fd_; }

 private:
  int fd_;
};

class Mapping {
 public:
  Mapping(ByteView bytes, ObjectInfo info) : bytes_(bytes), info_(std::move(info)) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();
  ByteView bytes() const { return bytes_; }
  const ObjectInfo& info() const { return info_; }

 private:
  ByteView bytes_;
  ObjectInfo info_;
};

// `doing` is a verb for the message: "cannot <doing> <path>: <reason>; <remedy>".
Status errno_status(int error, std::string_view doing, const std::string& path);

Result<File> open_for_reading(const std::string& path);
Result<ObjectInfo> stat_file(const File& file, const std::string& path);
Result<ObjectInfo> stat_path(const std::string& path);
Result<std::shared_ptr<const Mapping>> map_file(const std::string& path);
// Fills `into` from `offset`; Corrupt when the file ends before.
Status read_fully(const File& file, std::uint64_t offset, MutableBytes into,
                  const std::string& path);
// Makes missing directories; writes beside the target; fsync; rename. On failure the target is as
// it was and nothing is left over.
Result<ObjectInfo> replace_file(const std::string& path, std::string_view body,
                                bool only_if_absent);
Status remove_file(const std::string& path);

}  // namespace headrace::store
