// Scratch memory for one image at a time: allocate by moving a pointer, give all back at once.
// Thread-safety: none; one thread at a time.
// Ownership: owns its memory; pointers handed out live until the next reset().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace headrace::codec {

class Scratch {
 public:
  // Vector loads and libjpeg-turbo want 32; whole cache lines keep rows apart.
  static constexpr std::size_t kAlign = 64;
  // More than this is given back to the system after the image that needed it.
  static constexpr std::size_t kKeepMax = std::size_t{64} << 20;

  // Starts a new image that may use up to `limit` bytes. After an image that needed several pieces
  // they become one of their joint size, so a stream of like images soon allocates nothing.
  void reset(std::uint64_t limit);

  // Uninitialised memory (it may hold bytes of earlier images), or null at the limit or when the
  // system has none. allocate(0) is a valid pointer.
  void* allocate(std::size_t bytes);

  std::uint64_t held_bytes() const { return held_; }

 private:
  struct Piece {
    std::unique_ptr<std::byte[]> memory;
    std::byte* base = nullptr;  // memory, aligned
    std::size_t size = 0;
  };
  bool add_piece(std::size_t bytes);

  // Pieces double, so this many span any address space.
  std::array<Piece, 40> pieces_;
  std::size_t count_ = 0;
  std::size_t used_ = 0;  // of the last piece
  std::uint64_t held_ = 0;
  std::uint64_t limit_ = 0;
};

}  // namespace headrace::codec
