// Checks SigV4 signatures as a server does, from the bytes on the wire; shares no code with the
// signer of the store layer.
// Thread-safety: pure.
// Ownership: values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace headrace::testing {

struct SignedRequest {
  std::string method;
  std::string target;                               // path and query as sent
  std::multimap<std::string, std::string> headers;  // names in lower case
  std::string body;
};

struct ServerKeys {
  std::string access_key;
  std::string secret_key;
  std::string session_token;
  std::string region;
};

// The S3 error code a server would answer with, or nothing when the signature is right.
std::string check_signature(const SignedRequest& request, const ServerKeys& keys,
                            std::int64_t unix_now);

}  // namespace headrace::testing
