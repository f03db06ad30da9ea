#include "headrace/codec/resample.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

// Two source rows share a 256-bit register, one in each half. Bytes are widened to 16 bits with the
// two taps of a pair side by side, so that one multiply-add yields tap0 * w0 + tap1 * w1 for four
// channels of both rows. Weights come as 11 + 11 bits: sums of hi parts stay below 2^20 and are
// shifted by 11 at the end, so nothing is rounded before the one rounding that counts.
//
// Only functions marked HR_AVX2 hold AVX2 code, and callers ask the machine first; a compiler flag
// for the whole file would also put it into inline functions that the linker shares with others.
#define HR_AVX2 __attribute__((target("avx2")))
#define HR_AVX2_INLINE __attribute__((target("avx2"), always_inline)) inline

namespace headrace::codec::avx2 {
namespace {

struct Sums {
  __m256i hi;
  __m256i lo;
};

HR_AVX2_INLINE __m256i weight_word(const std::uint32_t* word) {
  return _mm256_set1_epi32(static_cast<int>(*word));
}

HR_AVX2_INLINE __m256i finish(Sums s) {
  const __m256i half = _mm256_set1_epi32(1 << 21);
  const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(s.hi, 11), _mm256_add_epi32(s.lo, half));
  return _mm256_srai_epi32(sum, 22);
}

HR_AVX2_INLINE void add_pair(Sums& s, __m256i taps, const std::uint32_t* words) {
  s.hi = _mm256_add_epi32(s.hi, _mm256_madd_epi16(taps, weight_word(words)));
  s.lo = _mm256_add_epi32(s.lo, _mm256_madd_epi16(taps, weight_word(words + 1)));
}

// One output pixel of two rows. kPairs = 0 means `pairs`, known only at run time.
template <std::uint32_t kPairs>
HR_AVX2_INLINE __m256i pixel(const std::uint8_t* a, const std::uint8_t* b,
                             const std::uint32_t* words, std::uint32_t pairs) {
  const __m256i first = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1));
  const __m256i second = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1));
  const std::uint32_t n = kPairs != 0 ? kPairs : pairs;
  Sums s = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (std::uint32_t p = 0; p < n; p += 2) {
    const __m256i four = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + p * 8))),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + p * 8)), 1);
    add_pair(s, _mm256_shuffle_epi8(four, first), words + p * 2);
    if (p + 1 < n) add_pair(s, _mm256_shuffle_epi8(four, second), words + p * 2 + 2);
  }
  return finish(s);
}

template <std::uint32_t kPairs>
HR_AVX2 void two_rows(const std::uint32_t* starts, const std::uint32_t* words, std::uint32_t count,
                      std::uint32_t pairs, const std::uint8_t* a, const std::uint8_t* b,
                      std::uint8_t* to_a, std::uint8_t* to_b) {
  // Drops the fourth byte of each of four pixels.
  const __m256i pack = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  const std::size_t step = std::size_t{2} * pairs;
  for (std::uint32_t o = 0; o < count; o += 4, words += 4 * step, to_a += 12, to_b += 12) {
    __m256i v[4];
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::size_t at = std::size_t{starts[o + i]} * 4;
      v[i] = pixel<kPairs>(a + at, b + at, words + i * step, pairs);
    }
    const __m256i bytes = _mm256_shuffle_epi8(
        _mm256_packus_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3])), pack);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to_a), _mm256_castsi256_si128(bytes));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to_b), _mm256_extracti128_si256(bytes, 1));
  }
}

using TwoRows = void (*)(const std::uint32_t*, const std::uint32_t*, std::uint32_t, std::uint32_t,
                         const std::uint8_t*, const std::uint8_t*, std::uint8_t*, std::uint8_t*);

// Adds one pair of taps to 16 bytes of a row: s[0] holds bytes 0-3 and 8-11, s[1] the others.
HR_AVX2_INLINE void add_rows(Sums* s, __m128i a, __m128i b, __m256i hi, __m256i lo) {
  const __m256i wide_a = _mm256_cvtepu8_epi16(a);
  const __m256i wide_b = _mm256_cvtepu8_epi16(b);
  const __m256i low = _mm256_unpacklo_epi16(wide_a, wide_b);
  const __m256i high = _mm256_unpackhi_epi16(wide_a, wide_b);
  s[0].hi = _mm256_add_epi32(s[0].hi, _mm256_madd_epi16(low, hi));
  s[0].lo = _mm256_add_epi32(s[0].lo, _mm256_madd_epi16(low, lo));
  s[1].hi = _mm256_add_epi32(s[1].hi, _mm256_madd_epi16(high, hi));
  s[1].lo = _mm256_add_epi32(s[1].lo, _mm256_madd_epi16(high, lo));
}

HR_AVX2_INLINE __m128i load16(const std::uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// 32 bytes of one output row. Taps past the last row have weight zero and read that row again.
HR_AVX2_INLINE void block(const std::uint8_t* from, std::size_t stride, std::uint32_t start,
                          std::uint32_t last, const std::uint32_t* words, std::uint32_t pairs,
                          std::uint8_t* to) {
  const __m256i zero = _mm256_setzero_si256();
  Sums s[4] = {{zero, zero}, {zero, zero}, {zero, zero}, {zero, zero}};
  for (std::uint32_t p = 0; p < pairs; ++p) {
    const std::uint32_t first = start + 2 * p;
    const std::uint8_t* const a = from + (first < last ? first : last) * stride;
    const std::uint8_t* const b = from + (first + 1 < last ? first + 1 : last) * stride;
    const __m256i hi = weight_word(words + 2 * p);
    const __m256i lo = weight_word(words + 2 * p + 1);
    add_rows(s, load16(a), load16(b), hi, lo);
    add_rows(s + 2, load16(a + 16), load16(b + 16), hi, lo);
  }
  // Packing undoes the unpacking within each half; the permutation undoes the halves.
  const __m256i x = _mm256_packs_epi32(finish(s[0]), finish(s[1]));
  const __m256i y = _mm256_packs_epi32(finish(s[2]), finish(s[3]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_permute4x64_epi64(_mm256_packus_epi16(x, y), 0xD8));
}

}  // namespace

HR_AVX2 void horizontal(const Taps& taps, const std::uint8_t* from, std::size_t from_stride,
                        std::size_t rows, std::uint8_t* to, std::size_t to_stride) {
  static constexpr TwoRows kKernels[] = {two_rows<0>, two_rows<1>, two_rows<2>, two_rows<3>,
                                         two_rows<4>};
  const std::uint32_t pairs = taps.pairs();
  const TwoRows kernel = kKernels[pairs <= 4 ? pairs : 0];
  for (std::size_t row = 0; row < rows; row += 2) {
    const std::size_t other = row + 1 < rows ? row + 1 : row;  // an odd last row is done twice
    kernel(taps.starts().data(), taps.weights().data(), taps.count(), pairs,
           from + row * from_stride, from + other * from_stride, to + row * to_stride,
           to + other * to_stride);
  }
}

HR_AVX2 void vertical(const Taps& taps, const std::uint8_t* from, std::size_t from_stride,
                      std::size_t bytes, std::uint8_t* to, std::size_t to_stride) {
  const std::uint32_t last = taps.end() - taps.begin() - 1;
  const std::uint32_t pairs = taps.pairs();
  const std::uint32_t* words = taps.weights().data();
  const std::size_t step = std::size_t{2} * pairs;
  for (std::uint32_t o = 0; o < taps.count(); ++o, words += step, to += to_stride) {
    const std::uint32_t start = taps.starts()[o];
    std::size_t b = 0;
    for (; b + 32 <= bytes; b += 32) {
      block(from + b, from_stride, start, last, words, pairs, to + b);
    }
    if (b == bytes) continue;
    // The rest goes through a buffer: source rows are padded, output rows need not be.
    std::uint8_t rest[32];
    block(from + b, from_stride, start, last, words, pairs, rest);
    std::memcpy(to + b, rest, bytes - b);
  }
}

}  // namespace headrace::codec::avx2

#endif  // __x86_64__
