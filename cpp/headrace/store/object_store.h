// ObjectStore: a ByteSource that holds objects: they can be looked up, written whole, and removed.
// Thread-safety: every member may be called from any thread.
// Ownership: as ByteSource; bodies are owned by the request until it is done.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "headrace/store/byte_source.h"

namespace headrace::store {

using HeadDone = std::function<void(Result<ObjectInfo>)>;
using PutDone = std::function<void(Result<ObjectInfo>)>;
using RemoveDone = std::function<void(Status)>;

struct HeadRequest {
  std::string key;
  TimePoint deadline = kForever;
  std::stop_token stop{};
  HeadDone done;
};

struct PutRequest {
  std::string key;
  std::shared_ptr<const std::string> body;
  // Fails with InvalidArgument when the object exists already (S3: If-None-Match: *).
  bool only_if_absent = false;
  TimePoint deadline = kForever;
  std::stop_token stop{};
  PutDone done;
};

struct RemoveRequest {
  std::string key;
  TimePoint deadline = kForever;
  RemoveDone done;
};

class ObjectStore : public ByteSource {
 public:
  virtual void head(HeadRequest request) = 0;
  // Readers see the old object or the whole new one, never a part; a failed put leaves no trace
  // (an upload in parts is aborted). Large bodies go up in parts where the store wants that.
  virtual void put(PutRequest request) = 0;
  // Removing what is not there is ok.
  virtual void remove(RemoveRequest request) = 0;
};

}  // namespace headrace::store
