#include "headrace/store/sigv4.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>

#include "headrace/base/bytes.h"
#include "headrace/base/sha256.h"
#include "headrace/store/url.h"

namespace headrace::store {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Blanks at the ends go, inner runs become one blank.
std::string squeeze(std::string_view text) {
  std::string out;
  for (char c : text) {
    const bool blank = c == ' ' || c == '\t';
    if (blank && (out.empty() || out.back() == ' ')) continue;
    out.push_back(blank ? ' ' : c);
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// Lower-case names in order, repeated ones joined by a comma in the order they were given.
Pairs canonical_headers(const Pairs& headers) {
  std::map<std::string, std::string> joined;
  for (const auto& [name, value] : headers) {
    const auto [at, is_new] = joined.try_emplace(lower(name), squeeze(value));
    if (!is_new) at->second += "," + squeeze(value);
  }
  return {joined.begin(), joined.end()};
}

std::string signed_names(const Pairs& canonical) {
  std::string out;
  for (const auto& [name, value] : canonical) out += (out.empty() ? "" : ";") + name;
  return out;
}

Sha256Digest hmac(ByteView key, std::string_view message) {
  return hmac_sha256(key, as_bytes(message));
}

}  // namespace

std::string amz_date(std::int64_t unix_seconds) {
  const std::chrono::sys_seconds time{std::chrono::seconds(unix_seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> out{};
  std::snprintf(out.data(), out.size(), "%04d%02u%02uT%02d%02d%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return out.data();
}

std::string canonical_query(const Pairs& query) {
  Pairs encoded;
  for (const auto& [name, value] : query) {
    encoded.emplace_back(percent_encode(name, false), percent_encode(value, false));
  }
  std::sort(encoded.begin(), encoded.end());
  std::string out;
  for (const auto& [name, value] : encoded) out += (out.empty() ? "" : "&") + name + "=" + value;
  return out;
}

std::string canonical_request(const SigV4Request& request) {
  const Pairs headers = canonical_headers(request.headers);
  std::string out = request.method + "\n" + (request.path.empty() ? "/" : request.path) + "\n" +
                    canonical_query(request.query) + "\n";
  for (const auto& [name, value] : headers) out += name + ":" + value + "\n";
  out += "\n" + signed_names(headers) + "\n" + request.payload_sha256;
  return out;
}

std::string sign_v4(const SigV4Request& request, const SigV4Keys& keys, const SigV4Scope& scope) {
  const std::string time = amz_date(scope.unix_seconds);
  const std::string date = time.substr(0, 8);
  const std::string credential_scope =
      date + "/" + scope.region + "/" + scope.service + "/aws4_request";
  const std::string text = "AWS4-HMAC-SHA256\n" + time + "\n" + credential_scope + "\n" +
                           to_hex(sha256(as_bytes(canonical_request(request))));
  const std::string secret = "AWS4" + keys.secret_key;
  const Sha256Digest of_date = hmac(as_bytes(secret), date);
  const Sha256Digest of_region = hmac(of_date, scope.region);
  const Sha256Digest of_service = hmac(of_region, scope.service);
  const Sha256Digest key = hmac(of_service, "aws4_request");
  return "AWS4-HMAC-SHA256 Credential=" + keys.access_key + "/" + credential_scope +
         ", SignedHeaders=" + signed_names(canonical_headers(request.headers)) +
         ", Signature=" + to_hex(hmac(key, text));
}

}  // namespace headrace::store
