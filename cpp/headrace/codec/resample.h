// Antialiased bilinear resize of 8-bit RGB in two fixed-point passes, as Pillow 13 does it.
// Thread-safety: a Taps belongs to one thread while it is built; the passes are pure.
// Ownership: a Taps owns its tables and keeps their memory from image to image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace::codec {

enum class Simd : std::uint8_t { kPortable, kAvx2 };

// The best this machine has. Every level gives the same bytes.
Simd simd_of_machine();

// One axis of a resize: source positions [offset, offset + length) of `source` become `resized`
// positions, of which [first, first + count) are wanted, in reverse order when `reverse` is set.
struct Axis {
  std::uint32_t source = 0;
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
  std::uint32_t resized = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool reverse = false;

  bool is_identity() const { return length == resized; }
};

// The filter of one axis: for each wanted output the source positions it reads and their weights.
// Weights have 22 fractional bits (up to 2^22), stored as 11 + 11 so that 16-bit multiply-adds are
// exact: weight = hi * 2048 + lo. Outputs are padded to a multiple of four and the taps of each to
// a multiple of two, with weight zero.
class Taps {
 public:
  void build(const Axis& axis);

  // The source positions read by any output: [begin, end).
  std::uint32_t begin() const { return begin_; }
  std::uint32_t end() const { return end_; }
  std::uint32_t count() const { return count_; }
  std::uint32_t pairs() const { return pairs_; }  // pairs of taps an output
  // First position an output reads, relative to begin(); reads go on for 2 * pairs() positions,
  // which may be more than end() - begin() allows.
  std::span<const std::uint32_t> starts() const { return starts_; }
  // Of pair p of output o: word 2 * (o * pairs + p) is the two hi parts, the next one the two lo
  // parts; in each word the first tap is in the lower 16 bits.
  std::span<const std::uint32_t> weights() const { return weights_; }

 private:
  void place_weights(const Axis& axis);

  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t pairs_ = 0;
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint32_t> sizes_;
  std::vector<std::uint32_t> weights_;
  std::vector<double> raw_;
};

// Pixels a source row must have readable behind its last one, for `horizontal`.
inline std::size_t pad_pixels(const Taps& taps) { return std::size_t{2} * taps.pairs() + 4; }
// Bytes of a row that `horizontal` may write: 3 an output, outputs padded to four, one vector
// store.
inline std::size_t row_bytes(const Taps& taps) {
  return (std::size_t{taps.count()} + 3) / 4 * 12 + 4;
}

// The horizontal pass over `rows` rows: from 4-byte pixels, the first at position taps.begin(), to
// packed 3-byte pixels. Rows are `from_stride` and `to_stride` bytes apart.
void horizontal(Simd simd, const Taps& taps, const std::uint8_t* from, std::size_t from_stride,
                std::size_t rows, std::uint8_t* to, std::size_t to_stride);

// The vertical pass: row 0 of `from` is position taps.begin(), and `bytes` bytes of each row are
// resampled, whatever they mean. Source rows must be readable up to the next multiple of 32 bytes.
void vertical(Simd simd, const Taps& taps, const std::uint8_t* from, std::size_t from_stride,
              std::size_t bytes, std::uint8_t* to, std::size_t to_stride);

namespace avx2 {

void horizontal(const Taps& taps, const std::uint8_t* from, std::size_t from_stride,
                std::size_t rows, std::uint8_t* to, std::size_t to_stride);
void vertical(const Taps& taps, const std::uint8_t* from, std::size_t from_stride,
              std::size_t bytes, std::uint8_t* to, std::size_t to_stride);

}  // namespace avx2
}  // namespace headrace::codec
