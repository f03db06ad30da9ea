// Any bytes as a tar archive, whole and in pieces: the same samples or the same error, and every
// sample that is found can be viewed where it lies.
#include <algorithm>
#include <cstdint>

#include "headrace/base/check.h"
#include "headrace/format/tar_reader.h"
#include "headrace/format/tar_scanner.h"

namespace {

using namespace headrace;

Status scan(ByteView archive, std::size_t step, std::vector<format::TarSample>& out) {
  format::TarScanner scanner("archive");
  for (std::size_t at = 0; at < archive.size(); at += step) {
    HR_TRY(scanner.feed(archive.subspan(at, std::min(step, archive.size() - at)), out));
  }
  return scanner.finish(out);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView archive = std::as_bytes(std::span(data, size));
  std::vector<format::TarSample> whole;
  std::vector<format::TarSample> pieces;
  const Status status = scan(archive, size + 1, whole);
  HR_CHECK(status == scan(archive, 97, pieces), "pieces change the outcome");
  HR_CHECK(whole.size() == pieces.size(), "pieces change the samples");
  format::WdsSchemaBuilder schema;
  for (const format::TarSample& sample : whole) {
    HR_CHECK(sample.begin < sample.end, "an empty sample");
    schema.add(sample);
  }
  if (!status.is_ok()) return 0;
  auto fields = schema.finish();
  if (!fields.is_ok()) return 0;
  format::TarTables tables;
  tables.schema = *fields;
  const auto reader = format::make_tar_reader(std::move(tables));
  HR_CHECK(reader.is_ok(), "a gathered schema is refused");
  std::vector<format::FieldValue> values(fields->fields.size());
  for (const format::TarSample& sample : whole) {
    HR_CHECK(sample.end <= size, "a sample leaves the archive");
    const Status viewed =
        (*reader)->view(archive.subspan(sample.begin, sample.end - sample.begin), 0, values);
    // Texts are not looked at by the scanner.
    HR_CHECK(viewed.is_ok() || viewed.message().find("UTF-8") != std::string::npos,
             "a scanned sample cannot be viewed: " + viewed.to_string());
  }
  return 0;
}
