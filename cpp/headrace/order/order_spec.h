// What defines an order apart from the data: the resolved spec, and how defaults are resolved.
// Thread-safety: pure functions and values.
// Ownership: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/status.h"

namespace headrace::order {

inline constexpr std::uint64_t kLanesMax = 16384;
inline constexpr std::uint64_t kSamplesMax = std::uint64_t{1} << 48;
// A lane is not made shorter than this many samples: small data sets get fewer lanes (R1).
inline constexpr std::uint64_t kLaneSamplesMin = 256;
inline constexpr std::uint64_t kSourceNameBytesMax = 256;

// What moves as one piece inside a lane: fixed runs of neighbouring samples, or the units in which
// the data can be decoded at all (compressed shards, row groups).
enum class Layout : std::uint8_t { kChunk = 0, kUnit = 1 };
std::string_view layout_name(Layout layout);  // "chunk" or "unit"
std::optional<Layout> layout_from_name(std::string_view name);

// Fully resolved, in samples; together with the shard sizes it fixes the order of the whole run.
struct OrderSpec {
  std::uint64_t seed = 0;
  bool shuffle = true;                // false: as stored, shard after shard
  std::uint32_t lanes = 64;           // a power of two, 1 .. kLanesMax
  std::uint64_t chunk_samples = 1;    // 1 .. kSamplesMax; unused in the unit layout
  std::uint64_t window_samples = 64;  // lanes .. kSamplesMax
  Layout layout = Layout::kChunk;
  std::string source_name;  // empty outside mixtures; UTF-8

  Status validate() const;
  friend bool operator==(const OrderSpec&, const OrderSpec&) = default;
};

// A length given in samples or in stored bytes.
struct Amount {
  enum class Unit : std::uint8_t { kSamples, kBytes };
  std::uint64_t value = 0;
  Unit unit = Unit::kSamples;

  static Amount samples(std::uint64_t n) { return {n, Unit::kSamples}; }
  static Amount bytes(std::uint64_t n) { return {n, Unit::kBytes}; }
};

// What a user says; what is left out follows from the data alone, never from the machine or the
// number of ranks.
struct OrderRequest {
  std::uint64_t seed = 0;
  bool shuffle = true;
  std::uint64_t lanes = 64;
  std::optional<Amount> chunk;   // default: 1 MiB
  std::optional<Amount> window;  // default: 2 GiB, and at least lanes * chunk
  Layout layout = Layout::kChunk;
  std::string source_name;
};

// `stored_bytes` is the size of all samples as they lie in the shards. A mean below one byte counts
// as one byte.
Result<OrderSpec> resolve_order(const OrderRequest& request, std::uint64_t samples,
                                std::uint64_t stored_bytes);

}  // namespace headrace::order
