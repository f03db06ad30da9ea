// XML answers of S3 stores: parsing ends, keeps its bounds, and never lets control characters out.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headrace/base/check.h"
#include "headrace/store/s3_error.h"

using namespace headrace::store;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view xml(reinterpret_cast<const char*>(data), size);
  const S3Error error = parse_s3_error(xml);
  HR_CHECK(error.message.size() <= 300 && error.code.size() <= 100, "texts are bounded");
  for (const char c : error.message) {
    HR_CHECK(static_cast<unsigned char>(c) >= 0x20, "messages are printable");
  }
  HR_CHECK(is_error_document(xml) || error.code.empty(), "only error documents have codes");
  for (const std::string_view name : {"UploadId", "ETag", "Code"}) {
    if (const auto text = xml_text(xml, name)) {
      HR_CHECK(text->size() <= xml.size(), "entities never grow");
    }
  }
  (void)s3_meaning(500, error.code);
  return 0;
}
