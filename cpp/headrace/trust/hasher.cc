#include "headrace/trust/hasher.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <array>

namespace headrace::trust {
namespace {

constexpr std::string_view kNames[] = {
    "blake2b",  "blake2s",  "md5",      "sha1",     "sha224",  "sha256",     "sha384",
    "sha3_224", "sha3_256", "sha3_384", "sha3_512", "sha512",  "sha512_224", "sha512_256",
    "sm3",      "xxh128",   "xxh32",    "xxh3_128", "xxh3_64", "xxh64"};

// OpenSSL's spelling where it differs from hashlib's.
struct Spelling {
  std::string_view ours;
  const char* openssl;
};
constexpr Spelling kSpellings[] = {{"blake2b", "BLAKE2B-512"},   {"blake2s", "BLAKE2S-256"},
                                   {"sha3_224", "SHA3-224"},     {"sha3_256", "SHA3-256"},
                                   {"sha3_384", "SHA3-384"},     {"sha3_512", "SHA3-512"},
                                   {"sha512_224", "SHA512-224"}, {"sha512_256", "SHA512-256"}};

class OpenSslHasher final : public Hasher {
 public:
  OpenSslHasher(EVP_MD* algorithm, EVP_MD_CTX* context)
      : algorithm_(algorithm), context_(context) {}
  OpenSslHasher(const OpenSslHasher&) = delete;
  OpenSslHasher& operator=(const OpenSslHasher&) = delete;
  ~OpenSslHasher() override {
    EVP_MD_CTX_free(context_);
    EVP_MD_free(algorithm_);
  }

  void update(ByteView bytes) override {
    HR_CHECK(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1, "hash update");
  }
  std::string finish_hex() override {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned length = 0;
    HR_CHECK(EVP_DigestFinal_ex(context_, digest.data(), &length) == 1, "hash final");
    return to_hex(std::as_bytes(std::span(digest)).first(length));
  }

 private:
  EVP_MD* algorithm_;
  EVP_MD_CTX* context_;
};

class Xxh32Hasher final : public Hasher {
 public:
  Xxh32Hasher() { XXH32_reset(state_.get(), 0); }
  void update(ByteView bytes) override { XXH32_update(state_.get(), bytes.data(), bytes.size()); }
  std::string finish_hex() override {
    XXH32_canonical_t out;
    XXH32_canonicalFromHash(&out, XXH32_digest(state_.get()));
    return to_hex(std::as_bytes(std::span(out.digest)));
  }

 private:
  std::unique_ptr<XXH32_state_t, XXH_errorcode (*)(XXH32_state_t*)> state_{XXH32_createState(),
                                                                           XXH32_freeState};
};

std::string canonical_hex(XXH64_hash_t hash) {
  XXH64_canonical_t out;
  XXH64_canonicalFromHash(&out, hash);
  return to_hex(std::as_bytes(std::span(out.digest)));
}

class Xxh64Hasher final : public Hasher {
 public:
  Xxh64Hasher() { XXH64_reset(state_.get(), 0); }
  void update(ByteView bytes) override { XXH64_update(state_.get(), bytes.data(), bytes.size()); }
  std::string finish_hex() override { return canonical_hex(XXH64_digest(state_.get())); }

 private:
  std::unique_ptr<XXH64_state_t, XXH_errorcode (*)(XXH64_state_t*)> state_{XXH64_createState(),
                                                                           XXH64_freeState};
};

// XXH3 with 64 or 128 bits.
class Xxh3Hasher final : public Hasher {
 public:
  explicit Xxh3Hasher(bool is_wide) : is_wide_(is_wide) {
    if (is_wide_) {
      XXH3_128bits_reset(state_.get());
    } else {
      XXH3_64bits_reset(state_.get());
    }
  }
  void update(ByteView bytes) override {
    if (is_wide_) {
      XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
    } else {
      XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
    }
  }
  std::string finish_hex() override {
    if (!is_wide_) return canonical_hex(XXH3_64bits_digest(state_.get()));
    XXH128_canonical_t out;
    XXH128_canonicalFromHash(&out, XXH3_128bits_digest(state_.get()));
    return to_hex(std::as_bytes(std::span(out.digest)));
  }

 private:
  const bool is_wide_;
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_{XXH3_createState(),
                                                                         XXH3_freeState};
};

Result<std::unique_ptr<Hasher>> make_openssl(std::string_view algorithm) {
  std::string name(algorithm);
  for (const Spelling& spelling : kSpellings) {
    if (spelling.ours == algorithm) name = spelling.openssl;
  }
  EVP_MD* digest = EVP_MD_fetch(nullptr, name.c_str(), nullptr);
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  if (digest == nullptr || context == nullptr ||
      EVP_DigestInit_ex2(context, digest, nullptr) != 1) {
    EVP_MD_CTX_free(context);
    EVP_MD_free(digest);
    return unimplemented("this machine's OpenSSL does not offer the hash '" +
                         std::string(algorithm) + "'");
  }
  return std::unique_ptr<Hasher>(std::make_unique<OpenSslHasher>(digest, context));
}

}  // namespace

Result<std::unique_ptr<Hasher>> Hasher::make(std::string_view algorithm) {
  if (algorithm == "xxh32") return std::unique_ptr<Hasher>(std::make_unique<Xxh32Hasher>());
  if (algorithm == "xxh64") return std::unique_ptr<Hasher>(std::make_unique<Xxh64Hasher>());
  if (algorithm == "xxh3_64") return std::unique_ptr<Hasher>(std::make_unique<Xxh3Hasher>(false));
  // Python's xxhash calls the same function by two names.
  if (algorithm == "xxh128" || algorithm == "xxh3_128") {
    return std::unique_ptr<Hasher>(std::make_unique<Xxh3Hasher>(true));
  }
  std::string known;
  for (const std::string_view name : kNames) {
    if (name == algorithm) return make_openssl(algorithm);
    known.append(known.empty() ? "" : ", ").append(name);
  }
  return invalid_argument("the hash '" + std::string(algorithm.substr(0, 40)) +
                          "' is unknown; known are " + known);
}

std::span<const std::string_view> hash_names() { return kNames; }

Result<std::string> hash_hex(std::string_view algorithm, ByteView bytes) {
  HR_ASSIGN(const auto hasher, Hasher::make(algorithm));
  hasher->update(bytes);
  return hasher->finish_hex();
}

std::uint64_t xxh3_64(ByteView bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace headrace::trust
