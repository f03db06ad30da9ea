// S3Upload: writes one object, whole or in parts, and leaves nothing behind when it fails.
// Thread-safety: its functions run one after the other, or under its mutex.
// Ownership: keeps itself alive until `done` was called; caller and dialect outlive it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/store/http_call.h"
#include "headrace/store/s3_dialect.h"

namespace headrace::store {

// Bodies above this go up in parts: a part that fails is sent again alone, and S3 serves the parts
// of an object from several places.
inline constexpr std::uint64_t kWholeBytesMax = 64ULL << 20;

class S3Upload : public std::enable_shared_from_this<S3Upload> {
 public:
  S3Upload(Port& port, HttpCaller& caller, Dialect& dialect, PutRequest request, TimePoint deadline,
           std::function<void(Result<ObjectInfo>)> done);

  // On the executor, because it hashes the body.
  void begin();

 private:
  struct Step;

  void put_whole();
  void create_upload();
  void send_parts() HR_EXCLUDES(mutex_);
  void send_part(std::size_t i);
  void part_done(std::size_t i, const std::string& etag, const Status& status) HR_EXCLUDES(mutex_);
  void complete() HR_EXCLUDES(mutex_);
  void abort(const Status& why);
  void end(Result<ObjectInfo> result);
  // One call of the upload; `accept` judges a success, everything else is judged here.
  void call(std::string what, Ask ask, std::function<Verdict(const HttpResponse&)> accept,
            std::function<void(Status)> done);
  Verdict judge(Step& step, const HttpResponse& response);
  ByteRange part_range(std::size_t i) const;

  Port& port_;
  HttpCaller& caller_;
  Dialect& dialect_;
  const PutRequest request_;
  const TimePoint deadline_;
  const std::string name_;
  std::function<void(Result<ObjectInfo>)> done_;
  std::uint64_t part_bytes_ = 0;
  std::string upload_id_;
  std::string final_etag_;
  std::stop_source stop_source_;  // stops the other parts once one has failed
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;

  Mutex mutex_;
  std::vector<std::string> etags_ HR_GUARDED_BY(mutex_);
  std::size_t open_ HR_GUARDED_BY(mutex_) = 0;
  Status error_ HR_GUARDED_BY(mutex_);
};

}  // namespace headrace::store
