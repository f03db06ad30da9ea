// Any bytes as headrace.index. A wrong checksum would stop nearly every input at the door, so the
// checksums are put right first: what is tested is the structure behind them.
#include <cstdint>
#include <cstring>
#include <vector>

#include "headrace/base/check.h"
#include "headrace/base/key.h"
#include "headrace/trust/hasher.h"
#include "headrace/trust/index.h"
#include "headrace/trust/index_layout.h"

namespace {

using headrace::ByteView;
using headrace::trust::IndexHeader;

void repair(std::vector<std::byte>& file) {
  IndexHeader header;
  if (file.size() < sizeof header) return;
  std::memcpy(&header, file.data(), sizeof header);
  header.file_length = file.size();
  for (std::size_t i = 0; i + 1 < header.table.size(); ++i) {
    auto& entry = header.table[i];
    if (entry.offset > file.size() || entry.length > file.size() - entry.offset) continue;
    entry.checksum = headrace::trust::xxh3_64(ByteView(file).subspan(entry.offset, entry.length));
  }
  header.checksum = headrace::trust::index_header_checksum(header);
  std::memcpy(file.data(), &header, sizeof header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView input = std::as_bytes(std::span(data, size));
  std::vector<std::byte> file(input.begin(), input.end());
  repair(file);
  const auto index = headrace::trust::IndexFile::parse(nullptr, file);
  if (!index.is_ok()) return 0;
  std::uint64_t samples = 0;
  for (std::uint32_t s = 0; s < (*index)->shard_count(); ++s) {
    const auto& shard = (*index)->shard(s);
    HR_CHECK(headrace::check_key(shard.name).is_ok(), "a name leaves the root");
    HR_CHECK(shard.first_sample == samples, "samples are not counted through");
    samples += shard.samples;
    const auto extents = (*index)->extents(s);
    if (!extents.is_ok()) continue;
    for (const headrace::ByteRange& range : *extents) {
      HR_CHECK(range.end() <= shard.bytes, "a sample leaves its shard");
    }
  }
  HR_CHECK(samples == (*index)->samples(), "samples are lost");
  return 0;
}
