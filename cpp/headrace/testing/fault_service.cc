#include "headrace/testing/fault_service.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <ctime>

#include "headrace/base/bytes.h"
#include "headrace/base/sha256.h"

namespace headrace::testing {
namespace {

std::string decode(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string etag_of(const std::string& bytes) {
  return "\"" + to_hex(sha256(as_bytes(bytes))).substr(0, 32) + "\"";
}

std::string http_date(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 64> out{};
  std::strftime(out.data(), out.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return out.data();
}

std::map<std::string, std::string> query_of(const std::string& target) {
  std::map<std::string, std::string> out;
  const std::size_t question = target.find('?');
  if (question == std::string::npos) return out;
  std::size_t at = question + 1;
  while (at <= target.size()) {
    const std::size_t end = std::min(target.find('&', at), target.size());
    const std::string pair = target.substr(at, end - at);
    const std::size_t equals = pair.find('=');
    out[decode(pair.substr(0, equals))] =
        equals == std::string::npos ? "" : decode(pair.substr(equals + 1));
    at = end + 1;
  }
  return out;
}

// "bytes=A-B" with both ends, as the stores here send it; nothing for any other form.
std::optional<std::pair<std::uint64_t, std::uint64_t>> range_of(const SignedRequest& request) {
  const std::string text = header_of(request, "range");
  const std::size_t dash = text.find('-');
  if (!text.starts_with("bytes=") || dash == std::string::npos) return std::nullopt;
  return std::pair{std::strtoull(text.c_str() + 6, nullptr, 10),
                   std::strtoull(text.c_str() + dash + 1, nullptr, 10)};
}

}  // namespace

std::string header_of(const SignedRequest& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? std::string() : found->second;
}

void Answer::set(const std::string& name, const std::string& value) {
  for (auto& [key, old] : headers) {
    if (key == name) {
      old = value;
      return;
    }
  }
  headers.emplace_back(name, value);
}

std::int64_t FaultService::now() const {
  return steady_clock().unix_seconds() + options_.clock_offset;
}

void FaultService::set(const std::string& key, std::string bytes) {
  const std::string etag = etag_of(bytes);
  MutexLock lock(mutex_);
  objects_[key] = {std::move(bytes), etag};
}

std::optional<std::string> FaultService::get(const std::string& key) const {
  MutexLock lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  return found->second.bytes;
}

std::size_t FaultService::open_uploads() const {
  MutexLock lock(mutex_);
  return uploads_.size();
}

std::optional<std::string> FaultService::key_of(const SignedRequest& request) const {
  const std::string path = decode(request.target.substr(0, request.target.find('?')));
  if (!options_.bucket) return path.substr(1);
  if (header_of(request, "host").starts_with(*options_.bucket + ".")) return path.substr(1);
  const std::string start = "/" + *options_.bucket + "/";
  if (!path.starts_with(start)) return std::nullopt;
  return path.substr(start.size());
}

Answer FaultService::error(int status, const std::string& code, const std::string& extra) const {
  Answer out;
  out.status = status;
  if (options_.bucket) {
    out.set("content-type", "application/xml");
    out.body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" + code +
               "</Code><Message>" + code + " was scripted &amp; tested</Message>" + extra +
               "</Error>";
  } else {
    out.body = code;
  }
  return out;
}

void FaultService::add_version(Answer& answer, const std::string& etag) const {
  if (options_.etags == "strong") answer.set("etag", etag);
  if (options_.etags == "weak") answer.set("etag", "W/" + etag);
}

Answer FaultService::serve(const SignedRequest& request, const std::string& key,
                           bool ignore_range) const {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return error(404, "NoSuchKey");
  const auto& [bytes, etag] = found->second;
  const std::string wanted = header_of(request, "if-match");
  if (!wanted.empty() && options_.etags == "strong" && wanted != etag) {
    return error(412, "PreconditionFailed");
  }
  Answer out;
  add_version(out, etag);
  const auto range = range_of(request);
  if (!range || ignore_range || !options_.has_ranges || request.method == "HEAD") {
    out.body = bytes;
    return out;
  }
  const std::string size = std::to_string(bytes.size());
  if (range->first >= bytes.size()) {
    Answer refused = error(416, "InvalidRange");
    if (options_.tells_size) refused.set("content-range", "bytes */" + size);
    return refused;
  }
  const std::uint64_t last = std::min<std::uint64_t>(range->second, bytes.size() - 1);
  out.status = 206;
  out.body = bytes.substr(range->first, last - range->first + 1);
  out.set("content-range",
          "bytes " + std::to_string(range->first) + "-" + std::to_string(last) + "/" + size);
  return out;
}

Answer FaultService::write(const SignedRequest& request, const std::string& key) {
  if (header_of(request, "if-none-match") == "*" && objects_.contains(key)) {
    return error(412, "PreconditionFailed");
  }
  const std::string etag = etag_of(request.body);
  objects_[key] = {request.body, etag};
  Answer out;
  add_version(out, etag);
  return out;
}

Answer FaultService::multipart(const SignedRequest& request, const std::string& key,
                               const Query& query) {
  Answer out;
  if (query.contains("uploads")) {
    const std::string id = "upload/" + std::to_string(next_upload_++) + "+=";
    uploads_[id];
    out.body =
        "<?xml version=\"1.0\"?><InitiateMultipartUploadResult xmlns=\"urn:x\"><Key>k</Key>"
        "<UploadId>" +
        id + "</UploadId></InitiateMultipartUploadResult>";
    return out;
  }
  const auto upload = uploads_.find(query.at("uploadId"));
  if (upload == uploads_.end()) return error(404, "NoSuchUpload");
  if (request.method == "PUT") {
    upload->second[std::atoi(query.at("partNumber").c_str())] = request.body;
    add_version(out, etag_of(request.body));
  } else if (request.method == "DELETE") {
    uploads_.erase(upload);
    out.status = 204;
  } else {
    if (header_of(request, "if-none-match") == "*" && objects_.contains(key)) {
      return error(412, "PreconditionFailed");
    }
    std::string whole;
    for (const auto& [number, part] : upload->second) {
      const std::string line = "<PartNumber>" + std::to_string(number) + "</PartNumber><ETag>" +
                               etag_of(part) + "</ETag>";
      if (request.body.find(line) == std::string::npos) return error(400, "InvalidPart");
      whole += part;
    }
    const std::string etag = etag_of(whole);
    out.body =
        "<CompleteMultipartUploadResult><ETag>" + etag + "</ETag></CompleteMultipartUploadResult>";
    objects_[key] = {std::move(whole), etag};
    uploads_.erase(upload);
  }
  return out;
}

Answer FaultService::answer(const SignedRequest& request, bool ignore_range) {
  Answer out;
  const auto key = key_of(request);
  MutexLock lock(mutex_);
  std::string refusal;
  if (!options_.keys.access_key.empty()) refusal = check_signature(request, options_.keys, now());
  if (refusal == "AuthorizationHeaderMalformed") {
    out = error(400, refusal, "<Region>" + options_.keys.region + "</Region>");
    if (request.method == "HEAD") out.set("x-amz-bucket-region", options_.keys.region);
  } else if (refusal == "XAmzContentSHA256Mismatch") {
    out = error(400, refusal);
  } else if (!refusal.empty()) {
    out = error(403, refusal);
  } else if (!key) {
    out = error(404, "NoSuchBucket");
  } else if (request.method == "HEAD" && !options_.has_head) {
    out = error(405, "MethodNotAllowed");
  } else if (request.method == "GET" || request.method == "HEAD") {
    out = serve(request, *key, ignore_range);
  } else if (!options_.bucket) {
    out = error(405, "MethodNotAllowed");
  } else if (const auto query = query_of(request.target);
             query.contains("uploads") || query.contains("uploadId")) {
    out = multipart(request, *key, query);
  } else if (request.method == "PUT") {
    out = write(request, *key);
  } else if (request.method == "DELETE") {
    objects_.erase(*key);
    out.status = 204;
  } else {
    out = error(501, "NotImplemented");
  }
  out.set("date", http_date(now()));
  out.is_head = request.method == "HEAD";
  return out;
}

}  // namespace headrace::testing
