// Hashes by name, as Mosaic data sets and people spell them.
// Thread-safety: functions are pure; a Hasher belongs to one thread at a time.
// Ownership: a Hasher owns its state.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headrace/base/bytes.h"
#include "headrace/base/status.h"

namespace headrace::trust {

class Hasher {
 public:
  // One of hash_names(); InvalidArgument names them all otherwise.
  static Result<std::unique_ptr<Hasher>> make(std::string_view algorithm);

  virtual ~Hasher() = default;
  virtual void update(ByteView bytes) = 0;
  // Lower-case hex of everything so far; no update() afterwards.
  virtual std::string finish_hex() = 0;
};

// Python's hashlib names of fixed length ("sha256", "sha3_512", "blake2b", ...) and xxhash's
// ("xxh32", "xxh64", "xxh128", "xxh3_64", "xxh3_128").
std::span<const std::string_view> hash_names();

Result<std::string> hash_hex(std::string_view algorithm, ByteView bytes);

// The checksum of Headrace's own structures: it finds accidents, not attacks.
std::uint64_t xxh3_64(ByteView bytes);

}  // namespace headrace::trust
