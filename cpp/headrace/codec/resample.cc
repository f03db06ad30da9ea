#include "headrace/codec/resample.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "headrace/base/check.h"

// The filter is Pillow's antialiased bilinear one: a triangle as wide as two output pixels seen
// from the source (at least two source pixels), weights normalised to one in double precision and
// then rounded to 22 fractional bits; the sum of each pass is rounded to nearest and clipped to a
// byte. The order of floating-point operations is part of the result, so this file is compiled
// without contraction to fused multiply-adds (CMakeLists.txt).
namespace headrace::codec {
namespace {

constexpr int kFraction = 22;
constexpr std::uint32_t kHalf = 1u << (kFraction - 1);
// Weights are rounded by adding this and cutting off, as Pillow does.
constexpr double kRound = 0.5;
constexpr std::uint32_t kLowMask = (1u << 11) - 1;

double triangle(double x) {
  const double distance = std::abs(x);
  return distance < 1.0 ? 1.0 - distance : 0.0;
}

// The weight of tap t (0 or 1) of a stored pair.
std::uint32_t weight_of(const std::uint32_t* pair, int t) {
  const std::uint32_t hi = pair[0] >> (16 * t) & 0xFFFF;
  const std::uint32_t lo = pair[1] >> (16 * t) & 0xFFFF;
  return (hi << 11) + lo;
}

// Weights sum to 2^22 within one unit a tap, so a sum of bytes stays below 2^31 for any image side.
std::uint8_t to_byte(std::uint32_t sum) {
  return static_cast<std::uint8_t>(std::min<std::uint32_t>((sum + kHalf) >> kFraction, 255));
}

// Bytes of one output row that are summed together; compilers turn the loop into vector code.
constexpr std::size_t kBlock = 128;

void add_scaled(const std::uint8_t* from, std::uint32_t weight, std::size_t n,
                std::array<std::uint32_t, kBlock>& sums) {
  if (n == kBlock) {
    for (std::size_t i = 0; i < kBlock; ++i) sums[i] += from[i] * weight;
  } else {
    for (std::size_t i = 0; i < n; ++i) sums[i] += from[i] * weight;
  }
}

}  // namespace

Simd simd_of_machine() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return Simd::kAvx2;
#endif
  return Simd::kPortable;
}

void Taps::build(const Axis& axis) {
  HR_CHECK(axis.length > 0 && axis.count > 0 && axis.first + axis.count <= axis.resized,
           "a resize axis has something to read and to write");
  const double scale = static_cast<double>(axis.length) / axis.resized;
  const double support = std::max(scale, 1.0);
  const std::size_t padded = (std::size_t{axis.count} + 3) / 4 * 4;
  starts_.assign(padded, 0);
  sizes_.assign(padded, 0);
  std::uint32_t most = 0;
  begin_ = axis.source;
  end_ = 0;
  for (std::uint32_t o = 0; o < axis.count; ++o) {
    const std::uint32_t at = axis.first + (axis.reverse ? axis.count - 1 - o : o);
    const double centre = axis.offset + (at + 0.5) * scale;
    const double low = std::max(centre - support + 0.5, 0.0);
    const double high = std::min(centre + support + 0.5, static_cast<double>(axis.source));
    starts_[o] = static_cast<std::uint32_t>(low);
    sizes_[o] = static_cast<std::uint32_t>(high) - starts_[o];
    most = std::max(most, sizes_[o]);
    begin_ = std::min(begin_, starts_[o]);
    end_ = std::max(end_, starts_[o] + sizes_[o]);
  }
  count_ = axis.count;
  pairs_ = (most + 1) / 2;
  place_weights(axis);
  for (std::uint32_t o = 0; o < axis.count; ++o) starts_[o] -= begin_;
}

void Taps::place_weights(const Axis& axis) {
  const double scale = static_cast<double>(axis.length) / axis.resized;
  const double inverse = 1.0 / std::max(scale, 1.0);
  weights_.assign(starts_.size() * pairs_ * 2, 0);
  raw_.resize(std::size_t{2} * pairs_);
  for (std::uint32_t o = 0; o < axis.count; ++o) {
    const std::uint32_t at = axis.first + (axis.reverse ? axis.count - 1 - o : o);
    const double centre = axis.offset + (at + 0.5) * scale;
    double sum = 0.0;
    for (std::uint32_t t = 0; t < sizes_[o]; ++t) {
      raw_[t] = triangle((t + starts_[o] - centre + 0.5) * inverse);
      sum += raw_[t];
    }
    std::uint32_t* const pairs = &weights_[std::size_t{o} * pairs_ * 2];
    for (std::uint32_t t = 0; t < sizes_[o]; ++t) {
      const double share = sum != 0.0 ? raw_[t] / sum : raw_[t];
      const auto weight = static_cast<std::uint32_t>(kRound + share * (1 << kFraction));
      pairs[t / 2 * 2] |= (weight >> 11) << (16 * (t % 2));
      pairs[t / 2 * 2 + 1] |= (weight & kLowMask) << (16 * (t % 2));
    }
  }
}

void horizontal(Simd simd, const Taps& taps, const std::uint8_t* from, std::size_t from_stride,
                std::size_t rows, std::uint8_t* to, std::size_t to_stride) {
#if defined(__x86_64__)
  if (simd == Simd::kAvx2) return avx2::horizontal(taps, from, from_stride, rows, to, to_stride);
#endif
  static_cast<void>(simd);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint8_t* const source = from + row * from_stride;
    std::uint8_t* target = to + row * to_stride;
    const std::uint32_t* pair = taps.weights().data();
    for (std::uint32_t o = 0; o < taps.count(); ++o, target += 3) {
      const std::uint8_t* pixel = source + std::size_t{taps.starts()[o]} * 4;
      std::uint32_t red = 0, green = 0, blue = 0;
      for (std::uint32_t p = 0; p < taps.pairs(); ++p, pixel += 8, pair += 2) {
        const std::uint32_t w0 = weight_of(pair, 0);
        const std::uint32_t w1 = weight_of(pair, 1);
        red += pixel[0] * w0 + pixel[4] * w1;
        green += pixel[1] * w0 + pixel[5] * w1;
        blue += pixel[2] * w0 + pixel[6] * w1;
      }
      target[0] = to_byte(red);
      target[1] = to_byte(green);
      target[2] = to_byte(blue);
    }
  }
}

void vertical(Simd simd, const Taps& taps, const std::uint8_t* from, std::size_t from_stride,
              std::size_t bytes, std::uint8_t* to, std::size_t to_stride) {
#if defined(__x86_64__)
  if (simd == Simd::kAvx2) return avx2::vertical(taps, from, from_stride, bytes, to, to_stride);
#endif
  static_cast<void>(simd);
  const std::uint32_t last = taps.end() - taps.begin() - 1;
  for (std::uint32_t o = 0; o < taps.count(); ++o, to += to_stride) {
    const std::uint32_t* const pairs = &taps.weights()[std::size_t{o} * taps.pairs() * 2];
    for (std::size_t b = 0; b < bytes; b += kBlock) {
      const std::size_t n = std::min(kBlock, bytes - b);
      std::array<std::uint32_t, kBlock> sums{};
      for (std::uint32_t t = 0; t < 2 * taps.pairs(); ++t) {
        const std::size_t row = std::min(taps.starts()[o] + t, last);
        const std::uint32_t weight = weight_of(pairs + t / 2 * 2, static_cast<int>(t % 2));
        add_scaled(from + row * from_stride + b, weight, n, sums);
      }
      for (std::size_t i = 0; i < n; ++i) to[b + i] = to_byte(sums[i]);
    }
  }
}

}  // namespace headrace::codec
