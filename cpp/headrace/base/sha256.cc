#include "headrace/base/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "headrace/base/check.h"

namespace headrace {
namespace {

const unsigned char* raw(ByteView bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

struct Sha256::Impl {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~Impl() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {
  HR_CHECK(impl_->context && EVP_DigestInit_ex(impl_->context, EVP_sha256(), nullptr) == 1,
           "OpenSSL offers no SHA-256");
}
Sha256::~Sha256() = default;

void Sha256::update(ByteView bytes) {
  HR_CHECK(EVP_DigestUpdate(impl_->context, bytes.data(), bytes.size()) == 1, "SHA-256 update");
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  unsigned length = 0;
  HR_CHECK(EVP_DigestFinal_ex(impl_->context, reinterpret_cast<unsigned char*>(digest.data()),
                              &length) == 1 &&
               length == digest.size(),
           "SHA-256 final");
  return digest;
}

Sha256Digest sha256(ByteView bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

Sha256Digest hmac_sha256(ByteView key, ByteView message) {
  Sha256Digest digest;
  unsigned length = 0;
  HR_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), raw(message),
                message.size(), reinterpret_cast<unsigned char*>(digest.data()), &length) &&
               length == digest.size(),
           "HMAC-SHA-256");
  return digest;
}

}  // namespace headrace
