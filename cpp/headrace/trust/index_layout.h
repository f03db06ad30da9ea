// The fixed structures of the index file, shared by its reader and its builder.
// Thread-safety: pure.
// Ownership: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "headrace/base/bytes.h"
#include "headrace/base/status.h"

namespace headrace::trust {

inline constexpr std::array<char, 8> kIndexMagic = {'H', 'E', 'A', 'D', 'R', 'I', 'D', 'X'};
inline constexpr std::size_t kIndexAlignment = 8;

// In the order in which they lie in the file.
enum class IndexSection : std::uint32_t { kMeta = 1, kStrings = 2, kShards = 3, kExtents = 4 };
inline constexpr std::uint32_t kIndexSections = 4;

struct IndexSectionEntry {
  std::uint32_t kind;
  std::uint32_t reserved;  // zero
  std::uint64_t offset;    // a multiple of 8
  std::uint64_t length;    // without the padding that follows
  std::uint64_t checksum;  // XXH3-64; zero for the extents, which have one for each shard
};
static_assert(sizeof(IndexSectionEntry) == 32);

struct IndexHeader {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t sections;
  std::uint64_t file_length;
  std::uint64_t shards;
  std::uint64_t samples;
  std::uint64_t checksum;  // XXH3-64 of this header with zero here
  std::array<IndexSectionEntry, kIndexSections> table;
};
static_assert(sizeof(IndexHeader) == 176);

struct IndexRecord {
  std::uint32_t name_offset;  // in the strings
  std::uint32_t name_length;
  std::uint32_t pin_offset;
  std::uint32_t pin_length;
  std::uint64_t bytes;
  std::uint64_t samples;
  std::uint64_t first_sample;
  std::uint64_t extents_checksum;  // XXH3-64 of this shard's extents
  std::array<std::byte, 32> sha256;
};
static_assert(sizeof(IndexRecord) == 80);

// An extent in the file is a ByteRange in memory.
static_assert(sizeof(ByteRange) == 16 && offsetof(ByteRange, length) == 8);

inline std::uint64_t align_index(std::uint64_t offset) {
  return (offset + kIndexAlignment - 1) / kIndexAlignment * kIndexAlignment;
}

std::uint64_t index_header_checksum(IndexHeader header);

// In order, not overlapping, not empty, inside `bytes`; Corrupt names the first that is not.
Status check_extents(std::span<const ByteRange> extents, std::uint64_t bytes);

}  // namespace headrace::trust
