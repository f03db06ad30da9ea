// FaultServer: an HTTP or S3 server on loopback that can do everything wrong that servers do wrong.
// Thread-safety: any thread.
// Ownership: owns its objects and threads; the destructor ends every connection.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/testing/sigv4_check.h"

namespace headrace::testing {

// One thing to go wrong with the next matching requests; the first that matches is played.
struct Fault {
  std::string method{};       // empty: any
  std::string target_part{};  // of path and query; empty: any
  int skip = 0;               // so many matching requests go well first
  int times = 1;              // -1: for ever

  Duration delay{0};            // before the answer
  bool never = false;           // no answer at all, connection left open
  std::optional<int> status{};  // instead of the real answer, with `body` and `headers`
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};  // added to the answer, or replacing
  std::optional<std::uint64_t> cut_at{};      // closes the connection after so many body bytes
  bool reset = false;                         // closes it with RST instead
  bool stall = false;                         // stops there instead, connection left open
  std::optional<std::uint64_t> flip_at{};     // this body byte inverted
  std::optional<std::uint64_t> shorten_to{};  // a well-formed answer of so many bytes only
  bool ignore_range = false;                  // 200 and the whole object
  std::optional<std::string> replace_by{};    // after the answer the object has other bytes
  std::uint64_t drip_bytes = 0;               // body in pieces of this size, 5 ms apart
  std::optional<std::string> raw{};           // these bytes instead of an answer, then close
};

struct FaultServerOptions {
  std::optional<std::string> bucket{};  // an S3 server with this bucket; none: plain HTTP
  ServerKeys keys{};                    // empty access key: requests need no signature
  std::int64_t clock_offset = 0;        // seconds the server's clock is ahead
  bool has_ranges = true;
  bool has_head = true;
  std::string etags = "strong";  // "strong" | "weak" | "none"
  // False: 416 does not tell the size of the object.
  bool tells_size = true;
};

class FaultServer {
 public:
  explicit FaultServer(FaultServerOptions options = {});
  ~FaultServer();

  int port() const;
  std::string url() const;  // "http://127.0.0.1:PORT"
  void set(const std::string& key, std::string bytes);
  std::optional<std::string> get(const std::string& key) const;
  void add(Fault fault);

  struct Seen {
    std::string method;
    std::string target;
    std::multimap<std::string, std::string> headers;
  };
  std::vector<Seen> seen() const;
  std::size_t connections() const;   // accepted so far
  std::size_t open_uploads() const;  // multipart uploads neither completed nor aborted
  int requests_at_once_max() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::testing
