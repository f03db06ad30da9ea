// open_store: turns a URL or path into the store that serves it; the only place that parses URLs.
// Thread-safety: pure apart from reading what `StoreOptions` points to.
// Ownership: the store owns its connections and threads; executor and metrics outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/key.h"
#include "headrace/exec/executor.h"
#include "headrace/obs/log.h"
#include "headrace/obs/metrics.h"
#include "headrace/store/object_store.h"

namespace headrace::store {

struct StoreOptions {
  std::optional<std::string> endpoint;  // S3-compatible server, e.g. "http://127.0.0.1:8333"
  std::optional<std::string> region;
  std::optional<std::string> profile;     // of the shared config files; wins over environment keys
  bool anonymous = false;                 // send no signature
  std::optional<std::string> addressing;  // "path" | "virtual"; default: path for a given endpoint
  std::optional<std::string> ca_bundle;   // PEM file instead of the system's
  std::uint32_t connections = 16;         // requests in flight at once, at most; 1..1024
  std::uint32_t attempts = 6;             // per request, first included; 1..20
  Duration request_timeout = std::chrono::seconds(60);  // when the request names no deadline
  Duration stall_timeout = std::chrono::seconds(10);    // without one byte
};

struct StoreDeps {
  exec::Executor& executor;
  obs::Metrics& metrics;
  obs::LogSink log;
  // Looks up an environment variable; passed in so that tests and simulations decide.
  std::function<std::optional<std::string>(std::string_view)> env;
  std::uint64_t jitter_seed = 0;
};

// "s3://bucket/prefix", "http(s)://host/path", "file:///path" or a path. The store's root is that
// prefix; keys are relative to it.
Result<std::unique_ptr<ObjectStore>> open_store(std::string_view url, const StoreOptions& options,
                                                const StoreDeps& deps);

// The path when a URL names local files (a path or file://), nullopt when it names anything else.
Result<std::optional<std::string>> local_path(std::string_view url);

// Splits the name of one object into the URL of the store that holds it and its key there:
// "s3://bucket/a/b.bin" -> "s3://bucket/a", "b.bin"; "b.bin" -> ".", "b.bin".
struct ObjectUrl {
  std::string root;
  std::string key;
};
Result<ObjectUrl> split_object_url(std::string_view url);

// Everything that names a file inside a data set goes through the one check of base/key.h.
using headrace::check_key;

}  // namespace headrace::store
