#include "headrace/store/s3_error.h"

#include <algorithm>
#include <array>

namespace headrace::store {
namespace {

std::string_view local_name(std::string_view tag) {
  const std::size_t end = tag.find_first_of(" \t\r\n/");
  std::string_view name = tag.substr(0, end);
  const std::size_t colon = name.find(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

void append_utf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xc0 | (c >> 6)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | (c >> 12)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else {
    out.push_back(static_cast<char>(0xf0 | (c >> 18)));
    out.push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3f)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  }
}

// "#10" or "#x0a"; nothing for what is no character.
std::optional<std::uint32_t> character_reference(std::string_view name) {
  const bool hex = name.starts_with("#x");
  std::string_view digits = name.substr(hex ? 2 : 1);
  if (digits.empty() || digits.size() > 7) return std::nullopt;
  std::uint32_t value = 0;
  for (char c : digits) {
    std::uint32_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<std::uint32_t>(c - '0');
    } else if (hex && c >= 'a' && c <= 'f') {
      digit = static_cast<std::uint32_t>(c - 'a' + 10);
    } else if (hex && c >= 'A' && c <= 'F') {
      digit = static_cast<std::uint32_t>(c - 'A' + 10);
    } else {
      return std::nullopt;
    }
    value = value * (hex ? 16 : 10) + digit;
  }
  if (value == 0 || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return std::nullopt;
  return value;
}

std::optional<std::string> decode_entities(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, char>, 5> kNamed = {
      {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}}};
  std::string out;
  while (!text.empty()) {
    if (text.front() != '&') {
      out.push_back(text.front());
      text.remove_prefix(1);
      continue;
    }
    const std::size_t end = text.find(';');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view name = text.substr(1, end - 1);
    const auto* named =
        std::find_if(kNamed.begin(), kNamed.end(), [&](const auto& n) { return n.first == name; });
    if (named != kNamed.end()) {
      out.push_back(named->second);
    } else if (name.starts_with('#')) {
      const auto character = character_reference(name);
      if (!character) return std::nullopt;
      append_utf8(out, *character);
    } else {
      return std::nullopt;
    }
    text.remove_prefix(end + 1);
  }
  return out;
}

// The next tag from `pos` on, without its angle brackets; passes over comments and instructions.
std::optional<std::string_view> next_tag(std::string_view xml, std::size_t& pos) {
  while (true) {
    const std::size_t open = xml.find('<', pos);
    if (open == std::string_view::npos) return std::nullopt;
    const std::string_view rest = xml.substr(open);
    const bool comment = rest.starts_with("<!--");
    // Of a DTD nothing is understood and nothing trusted.
    if (!comment && rest.starts_with("<!")) return std::nullopt;
    const std::string_view close = comment ? "-->" : rest.starts_with("<?") ? "?>" : ">";
    const std::size_t end = xml.find(close, open + (comment ? 4 : 1));
    if (end == std::string_view::npos) return std::nullopt;
    pos = end + close.size();
    if (close == ">") return xml.substr(open + 1, end - open - 1);
  }
}

}  // namespace

std::optional<std::string> xml_text(std::string_view xml, std::string_view name) {
  std::size_t pos = 0;
  while (const auto tag = next_tag(xml, pos)) {
    if (tag->starts_with('/') || tag->ends_with('/') || local_name(*tag) != name) continue;
    const std::size_t end = xml.find('<', pos);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = xml.substr(pos, end - pos);
    std::size_t after = end;
    const auto closing = next_tag(xml, after);
    if (!closing || !closing->starts_with('/') || local_name(closing->substr(1)) != name) continue;
    return decode_entities(text);
  }
  return std::nullopt;
}

bool is_error_document(std::string_view xml) {
  std::size_t pos = 0;
  const auto root = next_tag(xml, pos);
  return root && local_name(*root) == "Error";
}

S3Error parse_s3_error(std::string_view xml) {
  S3Error out;
  if (!is_error_document(xml)) return out;
  out.code = xml_text(xml, "Code").value_or("").substr(0, 100);
  out.region = xml_text(xml, "Region").value_or("").substr(0, 100);
  for (char c : xml_text(xml, "Message").value_or("").substr(0, 300)) {
    out.message.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c);
  }
  return out;
}

S3Meaning s3_meaning(int status, std::string_view code) {
  struct Row {
    std::string_view code;
    S3Meaning meaning;
  };
  constexpr std::string_view kSlow = "the store asks for fewer requests";
  constexpr std::string_view kToken = "the session has ended; get new credentials";
  constexpr std::string_view kKeys = "check the access key and secret key";
  static constexpr std::array<Row, 34> kRows = {{
      {"SlowDown", {Code::kThrottled, kSlow}},
      {"Throttling", {Code::kThrottled, kSlow}},
      {"ThrottlingException", {Code::kThrottled, kSlow}},
      {"ThrottledException", {Code::kThrottled, kSlow}},
      {"RequestThrottled", {Code::kThrottled, kSlow}},
      {"RequestThrottledException", {Code::kThrottled, kSlow}},
      {"RequestLimitExceeded", {Code::kThrottled, kSlow}},
      {"BandwidthLimitExceeded", {Code::kThrottled, kSlow}},
      {"TooManyRequestsException", {Code::kThrottled, kSlow}},
      {"TooManyRequests", {Code::kThrottled, kSlow}},
      {"KMS.ThrottlingException", {Code::kThrottled, kSlow}},
      {"ServiceUnavailable", {Code::kThrottled, kSlow}},
      {"InternalError", {Code::kUnavailable, ""}},
      {"RequestTimeout", {Code::kUnavailable, ""}},
      {"OperationAborted", {Code::kUnavailable, ""}},
      {"ConditionalRequestConflict", {Code::kUnavailable, ""}},
      {"IncompleteBody", {Code::kUnavailable, ""}},
      {"BadDigest", {Code::kUnavailable, ""}},
      {"XAmzContentSHA256Mismatch", {Code::kUnavailable, ""}},
      {"NoSuchBucket",
       {Code::kNotFound, "there is no such bucket; check its name and the endpoint"}},
      {"NoSuchKey", {Code::kNotFound, "there is no such object; check the URL"}},
      {"NoSuchUpload", {Code::kNotFound, "the upload was ended by somebody else"}},
      {"SignatureDoesNotMatch", {Code::kDenied, kKeys}},
      {"InvalidAccessKeyId", {Code::kDenied, kKeys}},
      {"AccessDenied",
       {Code::kDenied,
        "the credentials may not do this; check the policy of bucket and user (a requester-pays "
        "bucket answers like this as well)"}},
      {"AllAccessDisabled", {Code::kDenied, "the bucket is closed to everybody"}},
      {"AccountProblem", {Code::kDenied, "the account is blocked"}},
      {"ExpiredToken", {Code::kDenied, kToken}},
      {"InvalidToken", {Code::kDenied, kToken}},
      {"TokenRefreshRequired", {Code::kDenied, kToken}},
      {"RequestTimeTooSkewed", {Code::kDenied, "set the clock of this machine"}},
      {"InvalidObjectState", {Code::kDenied, "the object is archived; restore it first"}},
      {"PreconditionFailed", {Code::kInvalidArgument, ""}},
      {"NotImplemented", {Code::kUnimplemented, "this store does not have it"}},
  }};
  for (const Row& row : kRows) {
    if (row.code == code) return row.meaning;
  }
  if (status == 429 || status == 503) return {Code::kThrottled, kSlow};
  if (status == 404) {
    return {Code::kNotFound, "there is no such object or bucket; check the URL and the endpoint"};
  }
  if (status == 401 || status == 403) {
    return {Code::kDenied, "check credentials, and the policy of the bucket"};
  }
  if (status == 405 || status == 501) return {Code::kUnimplemented, "this store does not have it"};
  if (status == 408 || status >= 500) return {Code::kUnavailable, ""};
  return {Code::kInvalidArgument, "the store does not take this request"};
}

}  // namespace headrace::store
