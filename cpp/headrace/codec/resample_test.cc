#include "headrace/codec/resample.h"

#include <gtest/gtest.h>

#include <vector>

#include "headrace/base/rng.h"
#include "headrace/codec/scratch.h"

namespace headrace::codec {
namespace {

std::uint32_t one_to(Rng& rng, std::uint32_t n) {
  return 1 + static_cast<std::uint32_t>(rng.below(n));
}

Axis random_axis(Rng& rng) {
  Axis axis;
  axis.source = one_to(rng, 400);
  axis.length = one_to(rng, axis.source);
  axis.offset = one_to(rng, axis.source - axis.length + 1) - 1;
  axis.resized = one_to(rng, rng.below(2) == 0 ? 20 : 300);
  axis.count = one_to(rng, axis.resized);
  axis.first = one_to(rng, axis.resized - axis.count + 1) - 1;
  axis.reverse = rng.below(2) == 0;
  return axis;
}

std::vector<std::uint8_t> noise(Rng& rng, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(rng.next());
  return bytes;
}

std::size_t round_up(std::size_t n) { return (n + 63) / 64 * 64; }

TEST(Resample, VectorCodeEqualsPortableCode) {
  if (simd_of_machine() == Simd::kPortable) return;  // there is nothing to compare
  Rng rng(3);
  Taps taps;
  for (int n = 0; n < 400; ++n) {
    taps.build(random_axis(rng));
    const std::size_t source = taps.end() - taps.begin();
    const std::size_t rows = one_to(rng, 5);
    const std::size_t stride = (source + pad_pixels(taps)) * 4;
    const std::vector<std::uint8_t> pixels = noise(rng, stride * rows);
    std::vector<std::uint8_t> a(row_bytes(taps) * rows), b(a.size());
    horizontal(Simd::kPortable, taps, pixels.data(), stride, rows, a.data(), row_bytes(taps));
    horizontal(simd_of_machine(), taps, pixels.data(), stride, rows, b.data(), row_bytes(taps));
    const std::size_t used = std::size_t{taps.count()} * 3;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const bool is_padding = i % row_bytes(taps) >= used;
      ASSERT_TRUE(is_padding || a[i] == b[i]) << "round " << n << ", byte " << i;
    }

    const std::size_t bytes = one_to(rng, 200);
    const std::vector<std::uint8_t> columns = noise(rng, round_up(bytes) * source);
    std::vector<std::uint8_t> c(bytes * taps.count()), d(c.size());
    vertical(Simd::kPortable, taps, columns.data(), round_up(bytes), bytes, c.data(), bytes);
    vertical(simd_of_machine(), taps, columns.data(), round_up(bytes), bytes, d.data(), bytes);
    ASSERT_EQ(c, d) << "round " << n;
  }
}

TEST(Resample, KeepsAConstantAndTheIdentity) {
  Rng rng(4);
  Taps taps;
  for (int n = 0; n < 50; ++n) {
    taps.build(random_axis(rng));
    const std::size_t source = taps.end() - taps.begin();
    const std::vector<std::uint8_t> white((source + pad_pixels(taps)) * 4, 255);
    std::vector<std::uint8_t> out(row_bytes(taps));
    horizontal(simd_of_machine(), taps, white.data(), 0, 1, out.data(), 0);
    for (std::size_t i = 0; i < taps.count() * 3; ++i) ASSERT_EQ(out[i], 255);
  }
  taps.build({50, 7, 30, 30, 0, 30, false});
  const std::vector<std::uint8_t> pixels = noise(rng, (50 + pad_pixels(taps)) * 4);
  std::vector<std::uint8_t> out(row_bytes(taps));
  horizontal(Simd::kPortable, taps, pixels.data(), 0, 1, out.data(), 0);
  for (std::size_t i = 0; i < 90; ++i) {
    ASSERT_EQ(out[i], pixels[(i / 3 + 7 - taps.begin()) * 4 + i % 3]);
  }
}

TEST(Scratch, HoldsItsLimitAndJoinsPieces) {
  Scratch scratch;
  scratch.reset(1 << 20);
  EXPECT_NE(scratch.allocate(0), nullptr);
  EXPECT_EQ(scratch.allocate((1 << 20) + 1), nullptr);
  EXPECT_EQ(scratch.allocate(SIZE_MAX), nullptr);
  for (int n = 0; n < 9; ++n) {
    void* const memory = scratch.allocate(100000);
    ASSERT_NE(memory, nullptr) << n;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % Scratch::kAlign, 0u);
  }
  EXPECT_EQ(scratch.allocate(200000), nullptr);
  const std::uint64_t held = scratch.held_bytes();
  EXPECT_LE(held, 1u << 20);
  scratch.reset(1 << 20);
  EXPECT_NE(scratch.allocate(held), nullptr) << "the pieces are one now";
  EXPECT_EQ(scratch.held_bytes(), held);
}

TEST(Scratch, GivesLargeMemoryBack) {
  Scratch scratch;
  scratch.reset(std::uint64_t{1} << 30);
  ASSERT_NE(scratch.allocate(Scratch::kKeepMax + 1), nullptr);
  scratch.reset(std::uint64_t{1} << 30);
  EXPECT_EQ(scratch.held_bytes(), 0u);
}

}  // namespace
}  // namespace headrace::codec
