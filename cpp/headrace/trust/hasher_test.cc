#include "headrace/trust/hasher.h"

#include <gtest/gtest.h>

namespace headrace::trust {
namespace {

// Of "headrace", from Python's hashlib and from libxxhash called by itself.
TEST(Hasher, AgreesWithHashlibAndXxhash) {
  const struct {
    const char* name;
    const char* hex;
  } known[] = {
      {"blake2b",
       "f2ad51edefc2ab1bdb2f801a9d969162a5cb16f1ecd3200b074dd95f4d1bf320"
       "9d46cccb41de38a08616a0788b0777e27fc40a7f1caa168822ced8052c4c344b"},
      {"blake2s", "d2107e587f8bb6464f95d9628146fe1c48788a3ce0869cc058d1be5eb7d5f96d"},
      {"md5", "266e92e90be7439e97c2b27d5515ee18"},
      {"sha1", "09e6131c9d41e18e9950f787cac9933035994e45"},
      {"sha224", "165913f9e65de6e786654271106d32b549bcf0c4ae32270631d7b88d"},
      {"sha256", "a09d5e23da520b4829e421f51dfd6dc537494db598b35da05c2e74e1a587cc08"},
      {"sha384",
       "2b304134e88767b847427f43b4eecd712230adf26930223d90e63b0388bf38e0"
       "f36d7e4b8db22fb089531c16c37c0b6f"},
      {"sha3_224", "d08c5cfd9947c2fb5640c1109f290ddf896b30ab70ea39d8bd6b2659"},
      {"sha3_256", "878c132986d6049e1e2f482debf551984e1fba9804b06a82f02dc4f001fe7225"},
      {"sha3_384",
       "6055b5c68877b9017ac45d63ed600ac4c770bdb9d1beb65e5a2bc70e32d040e1"
       "5aa36f3dfc90af8afc6ba463c58c25c6"},
      {"sha3_512",
       "554dc4593d50100b1e79cc52b58edbe92b817f40a625d5ba2be7865365e5ea6a"
       "db8b5d02e15e0f316672b6bc838f7c63ba62663dd61ec2deddbc4f59a5897f08"},
      {"sha512",
       "530b350febe712b5e0cb320d03cb817b4bc62ef1666038d3b0b179eefdad455f"
       "e035b151c0a54c4800478f30caf3664c76d93188e7b544dfc938a13a44e67ea9"},
      {"sha512_224", "680661bba7d5dd7d9f59edde7c98a3354a2abd05be688b8ce4d4a89b"},
      {"sha512_256", "f6d61401542962e0f788b602881325001da7a5db2595b8b58e178a82b4decac9"},
      {"sm3", "118d123c6dd017246dcaaa531a7ccc7d982995188e0fd01d307df2822c57e68c"},
      {"xxh128", "d204bc6c7a983ece79778286cfaaea08"},
      {"xxh32", "7820896e"},
      {"xxh3_128", "d204bc6c7a983ece79778286cfaaea08"},
      {"xxh3_64", "cb57e9962b2bf0aa"},
      {"xxh64", "740b00387bc0bde3"},
  };
  EXPECT_EQ(std::size(known), hash_names().size());
  for (const auto& hash : known) {
    EXPECT_EQ(*hash_hex(hash.name, as_bytes("headrace")), hash.hex) << hash.name;
  }
}

TEST(Hasher, GivesTheSameInPieces) {
  std::string data;
  for (int i = 0; i < 5000; ++i) data.push_back(static_cast<char>(i * 37));
  for (const std::string_view name : hash_names()) {
    auto hasher = std::move(Hasher::make(name)).value();
    for (std::size_t at = 0; at < data.size(); at += 777) {
      hasher->update(as_bytes(std::string_view(data).substr(at, 777)));
    }
    EXPECT_EQ(hasher->finish_hex(), *hash_hex(name, as_bytes(data))) << name;
  }
}

TEST(Hasher, NamesTheKnownOnesWhenOneIsNot) {
  const Status status = hash_hex("crc7", {}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("'crc7'"), std::string::npos);
  EXPECT_NE(status.message().find("sha256"), std::string::npos);
  EXPECT_NE(status.message().find("xxh3_64"), std::string::npos);
}

}  // namespace
}  // namespace headrace::trust
