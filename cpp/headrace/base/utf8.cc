#include "headrace/base/utf8.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace headrace {
namespace {

constexpr std::uint64_t kHighBits = 0x8080808080808080;

bool is_tail(unsigned char c) { return (c & 0xc0) == 0x80; }

// Length of the well-formed sequence at the start of the `left` bytes at `p`, or 0.
std::size_t sequence(const unsigned char* p, std::size_t left) {
  const unsigned char c = p[0];
  if (c < 0x80) return 1;
  if (c >= 0xc2 && c <= 0xdf) return left >= 2 && is_tail(p[1]) ? 2 : 0;
  if (c >= 0xe0 && c <= 0xef) {
    if (left < 3 || !is_tail(p[1]) || !is_tail(p[2])) return 0;
    if (c == 0xe0 && p[1] < 0xa0) return 0;  // overlong
    if (c == 0xed && p[1] > 0x9f) return 0;  // surrogate
    return 3;
  }
  if (c >= 0xf0 && c <= 0xf4) {
    if (left < 4 || !is_tail(p[1]) || !is_tail(p[2]) || !is_tail(p[3])) return 0;
    if (c == 0xf0 && p[1] < 0x90) return 0;  // overlong
    if (c == 0xf4 && p[1] > 0x8f) return 0;  // past U+10FFFF
    return 4;
  }
  return 0;
}

}  // namespace

bool is_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t left = text.size();
  while (left > 0) {
    // 32 bytes a turn: four loads and one branch.
    while (left >= 32) {
      std::uint64_t words[4];
      std::memcpy(words, p, sizeof words);
      if (((words[0] | words[1] | words[2] | words[3]) & kHighBits) != 0) break;
      p += 32;
      left -= 32;
    }
    if (left == 0) break;
    const std::size_t step = sequence(p, left);
    if (step == 0) return false;
    p += step;
    left -= step;
  }
  return true;
}

}  // namespace headrace
