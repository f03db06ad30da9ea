// S3 answers in XML: the few elements a client needs, and what each error code means.
// Thread-safety: pure.
// Ownership: values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/status.h"

namespace headrace::store {

// The text of the first element of that name (prefixes aside) which holds nothing but text. Nothing
// when there is none, or when what precedes it is no well-formed markup. No DTD, no entities but
// the five of XML.
std::optional<std::string> xml_text(std::string_view xml, std::string_view name);

struct S3Error {
  std::string code{};     // "NoSuchKey"; empty when there is none
  std::string message{};  // cut to 300 printable characters
  std::string region{};   // of PermanentRedirect and AuthorizationHeaderMalformed
};
// True also for an error document in an answer with status 200.
bool is_error_document(std::string_view xml);
S3Error parse_s3_error(std::string_view xml);

// What a status and an error code mean: the code of the Status, and what to try.
struct S3Meaning {
  Code code = Code::kUnavailable;
  std::string_view remedy{};
};
S3Meaning s3_meaning(int status, std::string_view code);

}  // namespace headrace::store
