// SigV4: signs requests the way S3 wants it (AWS Signature Version 4). Pure.
// Thread-safety: pure functions.
// Ownership: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::store {

struct SigV4Keys {
  std::string access_key;
  std::string secret_key;
  std::string session_token{};  // empty: keys of a user, not of a session
};

struct SigV4Request {
  std::string method;
  // Percent-encoded exactly as sent. S3 signs it like that; other services would normalise it and
  // encode it once more.
  std::string path;
  std::vector<std::pair<std::string, std::string>> query{};    // not encoded
  std::vector<std::pair<std::string, std::string>> headers{};  // all of them are signed
  std::string payload_sha256{};  // lower-case hexadecimal, or UNSIGNED-PAYLOAD
};

struct SigV4Scope {
  std::string region;
  std::string service;
  std::int64_t unix_seconds = 0;
};

// SHA-256 of nothing: the payload of every request without a body.
inline constexpr std::string_view kEmptySha256 =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// "20130524T000000Z", the value of x-amz-date.
std::string amz_date(std::int64_t unix_seconds);
// The query as it goes into the URL: encoded, sorted, "name=" for names without a value.
std::string canonical_query(const std::vector<std::pair<std::string, std::string>>& query);
std::string canonical_request(const SigV4Request& request);
// The value of the Authorization header.
std::string sign_v4(const SigV4Request& request, const SigV4Keys& keys, const SigV4Scope& scope);

}  // namespace headrace::store
