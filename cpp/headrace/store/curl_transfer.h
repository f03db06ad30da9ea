// CurlTransfer: one request on one libcurl easy handle: options, callbacks, timers, outcome.
// Thread-safety: belongs to the reactor thread once it is started.
// Ownership: the handle is lent by the reactor's pool and goes back to it.
#pragma once

#include <curl/curl.h>

#include <array>
#include <cstdint>
#include <string>

#include "headrace/store/http_transport.h"

namespace headrace::store {

class CurlTransfer {
 public:
  CurlTransfer(std::uint64_t id, HttpRequest request, const TransportOptions& options,
               const Clock& clock)
      : id_(id), request_(std::move(request)), options_(options), clock_(clock) {}
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;
  ~CurlTransfer() { curl_slist_free_all(headers_); }

  std::uint64_t id() const { return id_; }
  const HttpRequest& request() const { return request_; }
  CURL* easy() const { return easy_; }

  // Sets every option of `easy`, which was reset before.
  Status start(CURL* easy);
  // The next moment at which waiting any longer is in vain.
  TimePoint due() const;
  // Ends the request with what libcurl said, or with `stopped` when that is not ok.
  void finish(CURLcode code, const Status& stopped);
  // Why it is late at `now`.
  Status overdue(TimePoint now) const;

 private:
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_upload(char* out, std::size_t size, std::size_t count, void* self);
  static int on_seek(void* self, curl_off_t offset, int origin);

  std::size_t take_header(std::string_view line);
  std::size_t take_body(ByteView bytes);
  Status plan();
  Status set_method();
  Status set_connection();
  Status outcome(CURLcode code) const;

  const std::uint64_t id_;
  HttpRequest request_;
  const TransportOptions& options_;
  const Clock& clock_;
  CURL* easy_ = nullptr;
  curl_slist* headers_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
  HttpResponse response_;
  bool planned_ = false;
  bool answered_ = false;  // a byte of the answer has arrived
  bool was_cut_ = false;   // ended on purpose, with all that was wanted
  Status failed_;          // why a callback stopped the transfer
  BodyPlan plan_;
  std::size_t head_bytes_ = 0;
  std::uint64_t uploaded_ = 0;
  TimePoint progress_;  // when the last byte moved in either direction
};

}  // namespace headrace::store
