#include "headrace/store/curl_transfer.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "headrace/store/url.h"

namespace headrace::store {
namespace {

// Text of an answer (an error document) is kept up to here; what follows is read and dropped.
constexpr std::size_t kTextBytesMax = 64 * 1024;
// 2.8 times less CPU per byte than libcurl's default of 16 KiB on plain HTTP.
constexpr long kReceiveBytes = 512 * 1024;
// S3 closes idle connections after 5 seconds or so; one that may be closed is not used again.
constexpr long kIdleSecondsMax = 4;
// Bodies above this ask for permission first, so that a refusal comes before the upload.
constexpr std::uint64_t kExpectBytes = 1 << 20;

long milliseconds_of(Duration d) {
  return std::max<long>(
      1, static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(d).count()));
}

// Calls that can only fail for lack of memory or a wrong build of libcurl.
template <typename T>
Status set(CURL* easy, CURLoption option, T value) {
  const CURLcode code = curl_easy_setopt(easy, option, value);
  if (code == CURLE_OK) return Status::ok();
  return internal_error("libcurl refuses option " + std::to_string(option) + ": " +
                        curl_easy_strerror(code));
}

std::string host_of(const std::string& url) {
  const auto parsed = parse_http_url(url);
  return parsed.is_ok() ? parsed->authority() : "the server";
}

std::optional<std::string> first_of(const TransportOptions& options,
                                    std::initializer_list<std::string_view> names) {
  if (!options.env) return std::nullopt;
  for (std::string_view name : names) {
    if (auto value = options.env(name); value && !value->empty()) return value;
  }
  return std::nullopt;
}

}  // namespace

Status CurlTransfer::start(CURL* easy) {
  easy_ = easy;
  progress_ = clock_.now();
  HR_TRY(set(easy_, CURLOPT_URL, request_.url.c_str()));
  HR_TRY(set(easy_, CURLOPT_ERRORBUFFER, error_text_.data()));
  HR_TRY(set(easy_, CURLOPT_PRIVATE, static_cast<void*>(this)));
  HR_TRY(set(easy_, CURLOPT_HEADERFUNCTION, &CurlTransfer::on_header));
  HR_TRY(set(easy_, CURLOPT_HEADERDATA, static_cast<void*>(this)));
  HR_TRY(set(easy_, CURLOPT_WRITEFUNCTION, &CurlTransfer::on_body));
  HR_TRY(set(easy_, CURLOPT_WRITEDATA, static_cast<void*>(this)));
  HR_TRY(set_connection());
  HR_TRY(set_method());
  for (const std::string& line : request_.headers) {
    curl_slist* longer = curl_slist_append(headers_, line.c_str());
    if (!longer) return exhausted("no memory for the headers of a request");
    headers_ = longer;
  }
  return set(easy_, CURLOPT_HTTPHEADER, headers_);
}

Status CurlTransfer::set_connection() {
  HR_TRY(set(easy_, CURLOPT_PROTOCOLS_STR, "http,https"));
  HR_TRY(set(easy_, CURLOPT_NOSIGNAL, 1L));
  HR_TRY(set(easy_, CURLOPT_BUFFERSIZE, kReceiveBytes));
  HR_TRY(set(easy_, CURLOPT_MAXAGE_CONN, kIdleSecondsMax));
  HR_TRY(set(easy_, CURLOPT_CONNECTTIMEOUT_MS, milliseconds_of(options_.connect_timeout)));
  HR_TRY(set(easy_, CURLOPT_FOLLOWLOCATION, 0L));
  HR_TRY(set(easy_, CURLOPT_PATH_AS_IS, 1L));
  HR_TRY(set(easy_, CURLOPT_HTTP_CONTENT_DECODING, 0L));
  HR_TRY(set(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1)));
  HR_TRY(set(easy_, CURLOPT_TCP_NODELAY, 1L));
  if (!options_.ca_bundle.empty()) {
    HR_TRY(set(easy_, CURLOPT_CAINFO, options_.ca_bundle.c_str()));
    HR_TRY(set(easy_, CURLOPT_CAPATH, static_cast<const char*>(nullptr)));
  }
  const bool tls = request_.url.starts_with("https:");
  // Upper-case HTTP_PROXY is left out as curl does: a CGI client could set it by a header.
  const auto proxy =
      tls ? first_of(options_, {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
          : first_of(options_, {"http_proxy", "all_proxy", "ALL_PROXY"});
  const auto no_proxy = first_of(options_, {"no_proxy", "NO_PROXY"});
  // Empty strings keep libcurl from looking at the environment itself.
  HR_TRY(set(easy_, CURLOPT_PROXY, proxy.value_or("").c_str()));
  return set(easy_, CURLOPT_NOPROXY, no_proxy.value_or("").c_str());
}

Status CurlTransfer::set_method() {
  const std::string& method = request_.method;
  if (method == "GET") return set(easy_, CURLOPT_HTTPGET, 1L);
  if (method == "HEAD") return set(easy_, CURLOPT_NOBODY, 1L);
  if (method == "DELETE") return set(easy_, CURLOPT_CUSTOMREQUEST, "DELETE");
  if (method != "PUT" && method != "POST") {
    return internal_error("the transport has no method " + method);
  }
  const std::uint64_t size = request_.body_range.length;
  HR_TRY(set(easy_, CURLOPT_UPLOAD, 1L));
  if (method == "POST") HR_TRY(set(easy_, CURLOPT_CUSTOMREQUEST, "POST"));
  HR_TRY(set(easy_, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(size)));
  HR_TRY(set(easy_, CURLOPT_READFUNCTION, &CurlTransfer::on_upload));
  HR_TRY(set(easy_, CURLOPT_READDATA, static_cast<void*>(this)));
  HR_TRY(set(easy_, CURLOPT_SEEKFUNCTION, &CurlTransfer::on_seek));
  HR_TRY(set(easy_, CURLOPT_SEEKDATA, static_cast<void*>(this)));
  request_.headers.emplace_back(size > kExpectBytes ? "Expect: 100-continue" : "Expect:");
  return Status::ok();
}

TimePoint CurlTransfer::due() const {
  const Duration patience =
      answered_ ? options_.stall_timeout : request_.answer_timeout.value_or(options_.stall_timeout);
  return std::min(request_.deadline, progress_ + patience);
}

Status CurlTransfer::overdue(TimePoint now) const {
  const std::string host = host_of(request_.url);
  if (now >= request_.deadline) {
    return deadline_exceeded("the deadline passed " +
                             std::string(answered_ ? "while the answer of " : "waiting for ") +
                             host + (answered_ ? " arrived" : ""));
  }
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - progress_);
  return unavailable(host + " sent nothing for " + std::to_string(waited.count()) + " ms");
}

Status CurlTransfer::plan() {
  planned_ = true;
  if (!request_.on_head) return Status::ok();
  HR_ASSIGN(plan_, request_.on_head(response_.head));
  return Status::ok();
}

std::size_t CurlTransfer::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  return static_cast<CurlTransfer*>(self)->take_header({data, size * count});
}

std::size_t CurlTransfer::take_header(std::string_view line) {
  progress_ = clock_.now();
  answered_ = true;
  head_bytes_ += line.size();
  if (head_bytes_ > kHeadBytesMax) {
    failed_ = corrupt("the header of the answer is longer than 64 KiB");
  } else {
    failed_ = parse_head_line(line, response_.head);
  }
  // Any other count than what came makes libcurl end the transfer.
  return failed_.is_ok() ? line.size() : 0;
}

std::size_t CurlTransfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  return static_cast<CurlTransfer*>(self)->take_body(headrace::as_bytes({data, size * count}));
}

std::size_t CurlTransfer::take_body(ByteView bytes) {
  progress_ = clock_.now();
  if (!planned_) failed_ = plan();
  if (!failed_.is_ok()) return 0;
  if (!plan_.into) {
    const std::size_t room = kTextBytesMax - std::min(kTextBytesMax, response_.text.size());
    response_.text.append(as_text(bytes.first(std::min(room, bytes.size()))));
    return bytes.size();
  }
  const std::size_t room = plan_.into->size() - response_.delivered;
  const std::size_t taken = std::min(room, bytes.size());
  if (taken > 0) std::memcpy(plan_.into->data() + response_.delivered, bytes.data(), taken);
  response_.delivered += taken;
  if (taken == bytes.size() && !(plan_.cut && taken == room)) return bytes.size();
  if (plan_.cut) {
    was_cut_ = true;
  } else {
    failed_ = corrupt("the answer is longer than its header said");
  }
  return 0;
}

std::size_t CurlTransfer::on_upload(char* out, std::size_t size, std::size_t count, void* self) {
  auto* transfer = static_cast<CurlTransfer*>(self);
  transfer->progress_ = transfer->clock_.now();
  const ByteRange& range = transfer->request_.body_range;
  const std::size_t n = std::min<std::size_t>(size * count, range.length - transfer->uploaded_);
  if (n > 0) {
    std::memcpy(out, transfer->request_.body->data() + range.offset + transfer->uploaded_, n);
  }
  transfer->uploaded_ += n;
  return n;
}

int CurlTransfer::on_seek(void* self, curl_off_t offset, int origin) {
  auto* transfer = static_cast<CurlTransfer*>(self);
  if (origin != SEEK_SET || offset < 0 ||
      static_cast<std::uint64_t>(offset) > transfer->request_.body_range.length) {
    return CURL_SEEKFUNC_FAIL;
  }
  transfer->uploaded_ = static_cast<std::uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

Status CurlTransfer::outcome(CURLcode code) const {
  const std::string host = host_of(request_.url);
  const std::string detail = error_text_[0] ? error_text_.data() : curl_easy_strerror(code);
  switch (code) {
    case CURLE_OK: return Status::ok();
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return unavailable("the name of " + host + " cannot be resolved (" + detail +
                         "); check the endpoint and the network");
    case CURLE_COULDNT_CONNECT:
      return unavailable("cannot connect to " + host + " (" + detail +
                         "); check the endpoint, and that the server runs");
    case CURLE_OPERATION_TIMEDOUT:
      return unavailable("connecting to " + host + " took too long (" + detail + ")");
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
      return denied("the certificate of " + host + " is not trusted (" + detail +
                    "); pass its authority as ca_bundle");
    case CURLE_SSL_CACERT_BADFILE:
      return invalid_argument("the ca_bundle " + options_.ca_bundle + " cannot be used (" + detail +
                              ")");
    case CURLE_PARTIAL_FILE:
      return unavailable("the answer of " + host + " ended after " +
                         std::to_string(response_.delivered) + " bytes of it (" + detail + ")");
    // What libcurl says of an answer that does not start with "HTTP/"; our own URLs are http(s).
    case CURLE_UNSUPPORTED_PROTOCOL:
      return unavailable(host + " answers with something that is not HTTP (" + detail + ")");
    case CURLE_URL_MALFORMAT:
      return invalid_argument("the URL of a request to " + host + " cannot be used");
    case CURLE_OUT_OF_MEMORY: return exhausted("no memory for a request to " + host);
    default: return unavailable("the exchange with " + host + " failed: " + detail);
  }
}

void CurlTransfer::finish(CURLcode code, const Status& stopped) {
  if (!stopped.is_ok()) {
    response_.transport = stopped;
  } else if (was_cut_) {
    response_.transport = Status::ok();
  } else if (!failed_.is_ok()) {
    response_.transport = failed_;
  } else {
    response_.transport = outcome(code);
    if (response_.transport.is_ok() && !planned_) response_.transport = plan();
    if (response_.transport.is_ok() && plan_.into && response_.delivered < plan_.into->size()) {
      response_.transport = unavailable("the answer of " + host_of(request_.url) + " ended after " +
                                        std::to_string(response_.delivered) + " of " +
                                        std::to_string(plan_.into->size()) + " bytes");
    }
  }
  auto done = std::move(request_.done);
  request_.on_head = nullptr;
  done(std::move(response_));
}

}  // namespace headrace::store
