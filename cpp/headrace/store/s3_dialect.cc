#include "headrace/store/s3_dialect.h"

#include <algorithm>
#include <utility>

#include "headrace/store/s3_error.h"
#include "headrace/store/sigv4.h"

namespace headrace::store {
namespace {

// S3 refuses signatures that are older or newer than this.
constexpr std::int64_t kSkewSecondsMax = 15 * 60;
// A server that is further off than this is not believed: its answer would sign requests for the
// far future.
constexpr std::int64_t kOffsetSecondsMax = 7 * 24 * 3600;

bool is_label_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

// A region goes into a host name and may come from a server: nothing but what regions are made of.
bool is_region(std::string_view text) {
  return !text.empty() && text.size() <= 40 && std::all_of(text.begin(), text.end(), is_label_char);
}

// Can stand as labels of a host name.
bool is_dns_bucket(std::string_view bucket) {
  return bucket.size() >= 3 && bucket.size() <= 63 && is_label_char(bucket.front()) &&
         is_label_char(bucket.back()) &&
         std::all_of(bucket.begin(), bucket.end(),
                     [](char c) { return is_label_char(c) || c == '.'; }) &&
         bucket.find("..") == std::string_view::npos;
}

Status check_bucket(std::string_view bucket) {
  if (bucket.starts_with("arn:")) {
    return unimplemented(
        "access point ARNs are not supported; use the bucket, or the alias of the "
        "access point");
  }
  if (bucket.ends_with("--x-s3") || bucket.ends_with("--xa-s3")) {
    return unimplemented("S3 Express directory buckets are not supported yet");
  }
  const bool ok = !bucket.empty() && bucket.size() <= 255 &&
                  std::all_of(bucket.begin(), bucket.end(), [](char c) {
                    return is_label_char(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '_';
                  });
  if (!ok) return invalid_argument("s3:// is not followed by the name of a bucket");
  return Status::ok();
}

std::string amazon_host(const std::string& region) {
  return "s3." + region + ".amazonaws.com" + (region.starts_with("cn-") ? ".cn" : "");
}

}  // namespace

Result<std::unique_ptr<S3Dialect>> S3Dialect::make(std::string_view url, S3Identity identity,
                                                   const Clock& clock) {
  std::string_view rest = url.substr(std::string_view("s3://").size());
  const std::size_t slash = rest.find('/');
  const std::string_view bucket = rest.substr(0, slash);
  HR_TRY(check_bucket(bucket));
  std::string prefix(slash == std::string_view::npos ? "" : rest.substr(slash + 1));
  while (prefix.ends_with('/')) prefix.pop_back();
  if (!prefix.empty()) HR_TRY(check_key(prefix));
  if (!is_region(identity.region)) {
    return invalid_argument("'" + identity.region.substr(0, 40) +
                            "' is not the name of a region, such as us-east-1");
  }
  std::unique_ptr<S3Dialect> out(new S3Dialect(std::move(identity), clock));
  out->bucket_ = bucket;
  out->prefix_ = prefix.empty() ? "" : prefix + "/";
  const auto& given = out->identity_.endpoint;
  out->endpoint_.scheme = "https";
  if (given) {
    const std::string full = given->find("://") == std::string::npos ? "https://" + *given : *given;
    auto parsed = parse_http_url(full);
    if (!parsed.is_ok()) return parsed.status().with_context("the S3 endpoint");
    out->endpoint_ = std::move(parsed).value();
    while (out->endpoint_.path.ends_with('/')) out->endpoint_.path.pop_back();
    out->endpoint_.query.clear();
  }
  const bool tls_dots =
      out->endpoint_.scheme == "https" && bucket.find('.') != std::string_view::npos;
  // A wildcard certificate covers one label, so dots over TLS need the path form.
  const std::string form = out->identity_.addressing.value_or(
      given || tls_dots || !is_dns_bucket(bucket) ? "path" : "virtual");
  if (form != "path" && form != "virtual") {
    return invalid_argument("addressing must be 'path' or 'virtual'");
  }
  out->in_host_ = form == "virtual";
  if (out->in_host_ && !is_dns_bucket(bucket)) {
    return invalid_argument("bucket '" + std::string(bucket) +
                            "' cannot stand in a host name; use addressing 'path'");
  }
  return out;
}

std::string S3Dialect::describe(std::string_view key) const {
  std::string out = "s3://" + bucket_ + "/" + prefix_ + std::string(key);
  if (!endpoint_.host.empty()) out += " at " + endpoint_.authority();
  return out;
}

Url S3Dialect::url_of(std::string_view key, const std::string& region) const {
  Url url = endpoint_;
  if (url.host.empty()) url.host = amazon_host(region);
  if (in_host_) {
    url.host = bucket_ + "." + url.host;
  } else {
    url.path += "/" + percent_encode(bucket_, false);
  }
  url.path += "/" + percent_encode(prefix_ + std::string(key), true);
  return url;
}

Result<HttpRequest> S3Dialect::build(const Ask& ask, const Trail&) {
  std::string region;
  std::int64_t now = clock_.unix_seconds();
  {
    MutexLock lock(mutex_);
    region = region_;
    now += clock_offset_;
  }
  const Url url = url_of(ask.key, region);
  const std::string query = canonical_query(ask.query);
  HttpRequest request;
  request.method = ask.method;
  request.url = url.without_query() + (query.empty() ? "" : "?" + query);
  request.body = ask.body;
  request.body_range = ask.body_range;
  for (const auto& [name, value] : ask.headers) request.headers.push_back(name + ": " + value);
  if (!identity_.keys) return request;

  SigV4Request to_sign{.method = ask.method, .path = url.path, .query = ask.query};
  to_sign.payload_sha256 = ask.body_sha256.empty() ? std::string(kEmptySha256) : ask.body_sha256;
  // Only what no proxy on the way rewrites is signed: range, user-agent and the like are not.
  to_sign.headers = {{"host", url.authority()},
                     {"x-amz-content-sha256", to_sign.payload_sha256},
                     {"x-amz-date", amz_date(now)}};
  if (!identity_.keys->session_token.empty()) {
    to_sign.headers.emplace_back("x-amz-security-token", identity_.keys->session_token);
  }
  for (std::size_t i = 1; i < to_sign.headers.size(); ++i) {
    request.headers.push_back(to_sign.headers[i].first + ": " + to_sign.headers[i].second);
  }
  for (const auto& header : ask.headers) {
    if (header.first.starts_with("x-amz-")) to_sign.headers.push_back(header);
  }
  request.headers.push_back(
      "authorization: " +
      sign_v4(to_sign, *identity_.keys, {.region = region, .service = "s3", .unix_seconds = now}));
  return request;
}

bool S3Dialect::correct_region(const HttpResponse& response, const std::string& told,
                               Trail& trail) {
  if (trail.region_corrected) return false;
  const std::string* header = response.head.find("x-amz-bucket-region");
  const std::string region = header ? *header : told;
  MutexLock lock(mutex_);
  if (!is_region(region) || region == region_) return false;
  trail.region_corrected = true;
  region_ = region;
  return true;
}

bool S3Dialect::correct_clock(const HttpResponse& response, std::string_view code, Trail& trail) {
  if (trail.clock_corrected || response.head.status != 403 || !identity_.keys) return false;
  const std::string* header = response.head.find("date");
  const auto date = header ? parse_http_date(*header) : std::nullopt;
  if (!date) return false;
  const std::int64_t offset = *date - clock_.unix_seconds();
  MutexLock lock(mutex_);
  // The answer to a HEAD has no body, so a large difference alone must do there.
  const std::int64_t wrong_by = std::abs(offset - clock_offset_);
  if (code != "RequestTimeTooSkewed" && code != "RequestExpired" &&
      !(code.empty() && wrong_by >= kSkewSecondsMax)) {
    return false;
  }
  if (std::abs(offset) > kOffsetSecondsMax) return false;
  trail.clock_corrected = true;
  clock_offset_ = offset;
  return true;
}

Verdict S3Dialect::refuse(const Ask&, const HttpResponse& response, Trail& trail) {
  const S3Error error = parse_s3_error(response.text);
  const int status = response.head.status;
  const bool elsewhere = response.head.is_redirect() || status == 400 || status == 403;
  if (elsewhere && correct_region(response, error.region, trail)) return {.again = true};
  if (correct_clock(response, error.code, trail)) return {.again = true};
  return final_refusal(response);
}

Verdict S3Dialect::final_refusal(const HttpResponse& response) const {
  const S3Error error = parse_s3_error(response.text);
  const int status = response.head.status;
  S3Meaning meaning = s3_meaning(status, error.code);
  if (response.head.is_redirect()) {
    meaning = {Code::kInvalidArgument,
               "the bucket lives in another region or at another endpoint; "
               "pass its region"};
  }
  std::string text = "the store answers " + std::to_string(status);
  if (!error.code.empty()) text += " " + error.code;
  if (!error.message.empty()) text += " (" + error.message + ")";
  if (const std::string* id = response.head.find("x-amz-request-id")) {
    text += ", request " + id->substr(0, 80);
  }
  if (!meaning.remedy.empty()) text += "; " + std::string(meaning.remedy);
  if (meaning.code == Code::kDenied) {
    text += identity_.keys ? "; the keys came from " + identity_.source
                           : "; the request was not signed";
  }
  Verdict verdict{.status = Status(meaning.code, text)};
  if (const std::string* pause = response.head.find("retry-after")) {
    verdict.retry_after = parse_retry_after(*pause, clock_.unix_seconds());
  }
  return verdict;
}

}  // namespace headrace::store
