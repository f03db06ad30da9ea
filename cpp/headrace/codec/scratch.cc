#include "headrace/codec/scratch.h"

#include <algorithm>
#include <new>

namespace headrace::codec {
namespace {

constexpr std::size_t kPieceMin = std::size_t{1} << 18;

}  // namespace

void Scratch::reset(std::uint64_t limit) {
  limit_ = limit;
  used_ = 0;
  if (count_ <= 1 && held_ <= std::min<std::uint64_t>(kKeepMax, limit)) return;
  const std::uint64_t wanted = held_;
  for (std::size_t i = 0; i < count_; ++i) pieces_[i] = Piece{};
  count_ = 0;
  held_ = 0;
  if (wanted <= std::min<std::uint64_t>(kKeepMax, limit)) {
    add_piece(static_cast<std::size_t>(wanted));
  }
}

bool Scratch::add_piece(std::size_t bytes) {
  if (count_ == pieces_.size() || held_ + bytes > limit_) return false;
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes + kAlign]());
  if (memory == nullptr) return false;
  const std::size_t off = reinterpret_cast<std::uintptr_t>(memory.get()) % kAlign;
  Piece& piece = pieces_[count_++];
  piece.base = memory.get() + (off == 0 ? 0 : kAlign - off);
  piece.memory = std::move(memory);
  piece.size = bytes;
  held_ += bytes;
  used_ = 0;
  return true;
}

void* Scratch::allocate(std::size_t bytes) {
  if (bytes > limit_) return nullptr;  // also keeps the rounding below from overflowing
  const std::size_t rounded = (bytes + kAlign - 1) / kAlign * kAlign;
  if (count_ == 0 || pieces_[count_ - 1].size - used_ < rounded) {
    // Doubling bounds the number of pieces; near the limit only what is asked for is taken.
    const std::uint64_t want = std::max<std::uint64_t>({rounded, held_, kPieceMin});
    if (!add_piece(static_cast<std::size_t>(want)) && !add_piece(rounded)) return nullptr;
  }
  std::byte* const at = pieces_[count_ - 1].base + used_;
  used_ += rounded;
  return at;
}

}  // namespace headrace::codec
