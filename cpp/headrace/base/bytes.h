// Byte views, half-open byte ranges, little-endian loads and stores, and checked arithmetic.
// Thread-safety: pure functions and values.
// Ownership: ByteView and MutableBytes borrow; they never outlive the call they are passed to.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headrace {

using ByteView = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

inline ByteView as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Bytes [offset, offset + length) of one object.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  std::uint64_t end() const { return offset + length; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

template <std::integral T>
T load_le(const std::byte* from) {
  static_assert(std::endian::native == std::endian::little, "ported to little-endian hosts only");
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <std::integral T>
void store_le(std::byte* to, T value) {
  static_assert(std::endian::native == std::endian::little, "ported to little-endian hosts only");
  std::memcpy(to, &value, sizeof value);
}

template <std::integral T>
void append_le(std::string& out, T value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  out.append(raw, sizeof value);
}

// Sums and products of untrusted sizes; nullopt when they leave 64 bits.
inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}
inline std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Lower-case hexadecimal of any bytes.
std::string to_hex(ByteView bytes);

}  // namespace headrace
