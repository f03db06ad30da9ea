// A folder that appears with all its files at once, or not at all.
// Thread-safety: one thread at a time; processes keep out of each other's way by a lock.
// Ownership: owns the folder `<out>.partial` until publish() renames it; the destructor removes it.
#pragma once

#include <memory>
#include <string>

#include "headrace/base/status.h"

namespace headrace::loader {

class Staging {
 public:
  // Makes and locks `<out>.partial`. What a killed run left there is recognised by its marker and
  // removed; anything else is left alone and refused. InvalidArgument when `out` exists and is not
  // empty, unless `overwrite` is set and it is a data set; Unavailable when another process is
  // writing there.
  static Result<std::unique_ptr<Staging>> open(std::string out, bool overwrite);

  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Where the files go.
  const std::string& path() const { return partial_; }

  // Renames the folder to `out`. With `overwrite` the old folder is swapped out first and removed
  // last, so that there is a whole data set at any time.
  Status publish();

 private:
  Staging(std::string out, std::string partial, int fd, bool overwrite)
      : out_(std::move(out)), partial_(std::move(partial)), fd_(fd), overwrite_(overwrite) {}

  const std::string out_;
  const std::string partial_;
  const int fd_;  // of the folder; holds the lock
  const bool overwrite_;
  bool is_published_ = false;
};

}  // namespace headrace::loader
