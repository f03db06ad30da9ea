#include "headrace/store/sigv4.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "headrace/store/url.h"

namespace headrace::store {
namespace {

const SigV4Keys kExampleKeys{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
// 24 May 2013, midnight UTC; region and service of the four examples in the S3 documentation
// ("Signature Calculations for the Authorization Header").
const SigV4Scope kExampleScope{"us-east-1", "s3", 1369353600};
const std::string kHost = "examplebucket.s3.amazonaws.com";
const std::string kDate = "20130524T000000Z";

std::string signature_of(const std::string& authorization) {
  return authorization.substr(authorization.find("Signature=") + 10);
}

SigV4Request example(const std::string& method, const std::string& path,
                     const std::string& payload = std::string(kEmptySha256)) {
  SigV4Request out{.method = method, .path = path};
  out.payload_sha256 = payload;
  out.headers = {{"Host", kHost}, {"x-amz-content-sha256", payload}, {"x-amz-date", kDate}};
  return out;
}

TEST(SigV4, GivesTheSignaturesThatAmazonPublished) {
  SigV4Request get = example("GET", "/test.txt");
  get.headers.emplace_back("Range", "bytes=0-9");
  EXPECT_EQ(sign_v4(get, kExampleKeys, kExampleScope),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");

  SigV4Request put = example("PUT", "/test%24file.text",
                             "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
  put.headers.emplace_back("Date", "Fri, 24 May 2013 00:00:00 GMT");
  put.headers.emplace_back("x-amz-storage-class", "REDUCED_REDUNDANCY");
  EXPECT_EQ(signature_of(sign_v4(put, kExampleKeys, kExampleScope)),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");

  SigV4Request lifecycle = example("GET", "/");
  lifecycle.query = {{"lifecycle", ""}};
  EXPECT_EQ(signature_of(sign_v4(lifecycle, kExampleKeys, kExampleScope)),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");

  SigV4Request list = example("GET", "/");
  list.query = {{"prefix", "J"}, {"max-keys", "2"}};
  EXPECT_EQ(signature_of(sign_v4(list, kExampleKeys, kExampleScope)),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::size_t start = 0;
  while (true) {
    const std::size_t end = text.find(at, start);
    out.push_back(text.substr(start, end - start));
    if (end == std::string::npos) return out;
    start = end + 1;
  }
}

std::vector<std::pair<std::string, std::string>> pairs_of(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> out;
  if (text.empty()) return out;
  for (const std::string& pair : split(text, '|')) {
    const std::size_t equals = pair.find('=');
    out.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return out;
}

// Made by tests/golden/sigv4/make.py.
TEST(SigV4, AgreesWithBotocore) {
  std::ifstream file(std::string(HEADRACE_GOLDEN_DIR) + "/sigv4/botocore.txt");
  ASSERT_TRUE(file.good());
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    SCOPED_TRACE(line);
    const auto f = split(line, '\t');
    ASSERT_EQ(f.size(), 11U);
    SigV4Request request{.method = f[0],
                         .path = f[1],
                         .query = pairs_of(f[9]),
                         .headers = pairs_of(f[8]),
                         .payload_sha256 = f[7]};
    const SigV4Keys keys{f[4], f[5], f[6]};
    EXPECT_EQ(sign_v4(request, keys, {f[3], "s3", std::stoll(f[2])}), f[10]);
    ++rows;
  }
  EXPECT_EQ(rows, 120);
}

TEST(SigV4, OrdersAndCleansHeadersAsTheRulesSay) {
  SigV4Request request{.method = "GET", .path = "/"};
  request.headers = {{"x-amz-meta-a-b", "2"}, {"X-Amz-Meta-A", "  a   b "}, {"x-amz-meta-a", "c"}};
  request.payload_sha256 = "UNSIGNED-PAYLOAD";
  EXPECT_EQ(canonical_request(request),
            "GET\n/\n\nx-amz-meta-a:a b,c\nx-amz-meta-a-b:2\n\nx-amz-meta-a;x-amz-meta-a-b\n"
            "UNSIGNED-PAYLOAD");
  EXPECT_EQ(canonical_query({{"b", ""}, {"a b", "/+="}, {"a", "~"}}), "a=~&a%20b=%2F%2B%3D&b=");
  EXPECT_EQ(amz_date(0), "19700101T000000Z");
  EXPECT_EQ(amz_date(4102444799), "20991231T235959Z");
}

TEST(PercentEncode, KeepsOnlyUnreservedCharactersAndDecodesBack) {
  std::string every;
  for (int c = 0; c < 256; ++c) every.push_back(static_cast<char>(c));
  for (bool keep_slash : {false, true}) {
    const std::string encoded = percent_encode(every, keep_slash);
    EXPECT_EQ(encoded.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                        "0123456789-._~%/"),
              std::string::npos);
    EXPECT_EQ(encoded.find('/') != std::string::npos, keep_slash);
    EXPECT_EQ(*percent_decode(encoded), every);
  }
}

}  // namespace
}  // namespace headrace::store
