#include "headrace/order/keys.h"

#include <string>

#include "headrace/base/check.h"

namespace headrace::order {

KeySpace::KeySpace(std::uint64_t seed, std::string_view source_name)
    : seed_(seed), name_digest_(sha256(as_bytes(source_name))) {}

Key KeySpace::key(std::string_view purpose, std::uint64_t epoch) const {
  constexpr std::size_t kPurposeBytes = 16;
  HR_CHECK(purpose.size() <= kPurposeBytes, "a key purpose has at most 16 bytes");
  std::string message("headrace-1\0", 11);
  message.append(purpose);
  message.append(kPurposeBytes - purpose.size(), '\0');
  append_le(message, seed_);
  message.append(as_text(name_digest_));
  append_le(message, epoch);
  const Sha256Digest digest = sha256(as_bytes(message));
  return {load_le<std::uint64_t>(digest.data()), load_le<std::uint64_t>(digest.data() + 8)};
}

}  // namespace headrace::order
