// SHA-256, one-shot and incremental (OpenSSL underneath, with the CPU's own instructions).
// Thread-safety: the function is pure; a Sha256 belongs to one thread at a time.
// Ownership: a Sha256 owns its hashing state.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "headrace/base/bytes.h"

namespace headrace {

using Sha256Digest = std::array<std::byte, 32>;

Sha256Digest sha256(ByteView bytes);
// RFC 2104 with SHA-256.
Sha256Digest hmac_sha256(ByteView key, ByteView message);

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(ByteView bytes);
  // The digest of everything so far; the object must not be updated afterwards.
  Sha256Digest finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
