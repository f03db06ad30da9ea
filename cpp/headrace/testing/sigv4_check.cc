#include "headrace/testing/sigv4_check.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <sstream>
#include <vector>

namespace headrace::testing {
namespace {

std::string hex(const std::string& raw) {
  std::string out;
  for (unsigned char c : raw) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[c / 16];
    out += kDigits[c % 16];
  }
  return out;
}

std::string digest(const std::string& text) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), out, &size, EVP_sha256(), nullptr);
  return std::string(reinterpret_cast<char*>(out), size);
}

std::string keyed(const std::string& key, const std::string& text) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), out, &size);
  return std::string(reinterpret_cast<char*>(out), size);
}

// Decodes and encodes again the way the specification says, so that a client that encodes too much
// or too little is found out.
std::string reencode(const std::string& text, bool is_path) {
  std::string raw;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      raw += static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16));
      i += 2;
    } else {
      raw += text[i];
    }
  }
  std::ostringstream out;
  for (unsigned char c : raw) {
    if (std::isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~' || (is_path && c == '/')) {
      out << static_cast<char>(c);
    } else {
      char buffer[4];
      std::snprintf(buffer, sizeof buffer, "%%%02X", c);
      out << buffer;
    }
  }
  return out.str();
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) out.push_back(part);
  return out;
}

std::string between(const std::string& text, const std::string& from) {
  const std::size_t start = text.find(from);
  if (start == std::string::npos) return {};
  const std::size_t first = start + from.size();
  return text.substr(first, text.find(',', first) - first);
}

std::string header(const SignedRequest& request, const std::string& name) {
  std::string out;
  auto [from, to] = request.headers.equal_range(name);
  for (; from != to; ++from) out += (out.empty() ? "" : ",") + from->second;
  return out;
}

std::string canonical(const SignedRequest& request, const std::vector<std::string>& names) {
  const std::size_t question = request.target.find('?');
  std::string out =
      request.method + "\n" + reencode(request.target.substr(0, question), true) + "\n";
  std::vector<std::string> pairs;
  if (question != std::string::npos) {
    for (const std::string& pair : split(request.target.substr(question + 1), '&')) {
      const std::size_t equals = pair.find('=');
      const std::string value =
          equals == std::string::npos ? "" : reencode(pair.substr(equals + 1), false);
      pairs.push_back(reencode(pair.substr(0, equals), false) + "=" + value);
    }
  }
  std::sort(pairs.begin(), pairs.end());
  for (std::size_t i = 0; i < pairs.size(); ++i) out += (i ? "&" : "") + pairs[i];
  out += "\n";
  std::string list;
  for (const std::string& name : names) {
    out += name + ":" + header(request, name) + "\n";
    list += (list.empty() ? "" : ";") + name;
  }
  return out + "\n" + list + "\n" + header(request, "x-amz-content-sha256");
}

}  // namespace

std::string check_signature(const SignedRequest& request, const ServerKeys& keys,
                            std::int64_t unix_now) {
  const std::string authorization = header(request, "authorization");
  if (!authorization.starts_with("AWS4-HMAC-SHA256 ")) return "AccessDenied";
  const auto scope = split(between(authorization, "Credential="), '/');
  const auto names = split(between(authorization, "SignedHeaders="), ';');
  if (scope.size() != 5 || scope[3] != "s3" || scope[4] != "aws4_request") {
    return "AuthorizationHeaderMalformed";
  }
  if (scope[0] != keys.access_key) return "InvalidAccessKeyId";
  if (header(request, "x-amz-security-token") != keys.session_token) return "InvalidToken";
  if (scope[2] != keys.region) return "AuthorizationHeaderMalformed";
  const std::string date = header(request, "x-amz-date");
  std::tm parsed{};
  if (!strptime(date.c_str(), "%Y%m%dT%H%M%SZ", &parsed)) return "AccessDenied";
  if (std::llabs(static_cast<std::int64_t>(timegm(&parsed)) - unix_now) > 15 * 60) {
    return "RequestTimeTooSkewed";
  }
  if (!std::is_sorted(names.begin(), names.end())) return "SignatureDoesNotMatch";
  for (const auto& [name, value] : request.headers) {
    const bool must = name == "host" || name.starts_with("x-amz-");
    if (must && std::find(names.begin(), names.end(), name) == names.end()) {
      return "SignatureDoesNotMatch";
    }
  }
  const std::string payload = header(request, "x-amz-content-sha256");
  if (payload != "UNSIGNED-PAYLOAD" && payload != hex(digest(request.body))) {
    return "XAmzContentSHA256Mismatch";
  }
  std::string key = "AWS4" + keys.secret_key;
  for (std::size_t i = 1; i < scope.size(); ++i) key = keyed(key, scope[i]);
  std::string text = "AWS4-HMAC-SHA256\n" + date;
  text += "\n" + scope[1] + "/" + scope[2] + "/" + scope[3] + "/" + scope[4] + "\n";
  text += hex(digest(canonical(request, names)));
  if (between(authorization, "Signature=") != hex(keyed(key, text))) {
    return "SignatureDoesNotMatch";
  }
  return {};
}

}  // namespace headrace::testing
