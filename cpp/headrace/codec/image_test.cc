#include "headrace/codec/image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/base/sha256.h"

namespace {

std::atomic<std::uint64_t> allocations{0};

}  // namespace

// Counted, so that a test can claim that decoding does not allocate. Sanitizers still see malloc.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace headrace::codec {
namespace {

constexpr std::uint64_t kPixelsMax = std::uint64_t{1} << 27;

std::string read_file(const std::string& name) {
  std::ifstream file(std::string(HEADRACE_GOLDEN_DIR) + "/codec/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string digest(ByteView bytes) { return to_hex(sha256(bytes)); }

struct Decoded {
  Status status;
  std::string digest;
};

Decoded decode_whole(ImageDecoder& decoder, std::string_view data) {
  const Result<ImageInfo> info = probe_image(as_bytes(data));
  if (!info.is_ok()) return {info.status(), ""};
  const std::uint64_t pixels = std::uint64_t{info->width} * info->height;
  if (pixels > (1 << 20)) return {exhausted("too large for this test"), ""};
  std::vector<std::byte> out(pixels * 3);
  const ImageSpec spec{.height = 0, .width = 0, .crop = Crop::kNone};
  Status status = decoder.decode(as_bytes(data), spec, {}, out);
  return {status, status.is_ok() ? digest(out) : ""};
}

// What the decoder may say of damaged bytes.
bool is_refusal(const Status& status) {
  return status.code() == Code::kCorrupt || status.code() == Code::kUnimplemented ||
         status.code() == Code::kExhausted;
}

TEST(ImageDecoder, GivesPillowsBytesForEveryGoldenBox) {
  ImageDecoder decoder;
  std::istringstream lines(read_file("boxes.txt"));
  int boxes = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string name, expected;
    CropBox box;
    std::uint32_t height = 0, width = 0;
    fields >> name >> box.x >> box.y >> box.width >> box.height >> box.resized_width >>
        box.resized_height >> box.left >> box.top >> box.flip >> height >> width >> expected;
    ASSERT_TRUE(fields) << line;
    const std::string data = read_file(name);
    std::vector<std::byte> out(std::size_t{height} * width * 3);
    const Status status = decoder.decode_box(as_bytes(data), box, height, width, kPixelsMax, out);
    ASSERT_TRUE(status.is_ok()) << line << ": " << status.to_string();
    EXPECT_EQ(digest(out), expected) << line;
    ++boxes;
  }
  EXPECT_EQ(boxes, 280);
}

// Skipped rows and columns must not show: any part equals that part of the whole image.
TEST(ImageDecoder, DecodesAnyPartAsTheWholeImageHasIt) {
  ImageDecoder decoder;
  Rng rng(8);
  for (const char* name : {"420.jpg", "422.jpg", "440.jpg", "411.jpg", "mixed.jpg", "restart.jpg",
                           "progressive.jpg", "arithmetic.jpg", "grey.jpg", "tall.jpg"}) {
    const std::string data = read_file(name);
    const ImageInfo info = *probe_image(as_bytes(data));
    std::vector<std::byte> whole(std::size_t{info.width} * info.height * 3);
    const ImageSpec spec{.height = 0, .width = 0, .crop = Crop::kNone};
    ASSERT_TRUE(decoder.decode(as_bytes(data), spec, {}, whole).is_ok());
    for (int n = 0; n < 60; ++n) {
      CropBox box;
      box.x = static_cast<std::uint32_t>(rng.below(info.width));
      box.y = static_cast<std::uint32_t>(rng.below(info.height));
      box.width = box.resized_width = 1 + static_cast<std::uint32_t>(rng.below(info.width - box.x));
      box.height = box.resized_height =
          1 + static_cast<std::uint32_t>(rng.below(info.height - box.y));
      std::vector<std::byte> part(std::size_t{box.width} * box.height * 3);
      ASSERT_TRUE(
          decoder.decode_box(as_bytes(data), box, box.height, box.width, kPixelsMax, part).is_ok());
      const std::size_t row = std::size_t{box.width} * 3;
      for (std::uint32_t y = 0; y < box.height; ++y) {
        const std::byte* const want = &whole[(std::size_t{box.y + y} * info.width + box.x) * 3];
        ASSERT_TRUE(std::equal(want, want + row, &part[y * row])) << name << " row " << y;
      }
    }
  }
}

TEST(ImageDecoder, DecodesTheBoxThatTheKeyChooses) {
  ImageDecoder decoder;
  const std::string data = read_file("420.jpg");
  for (const Crop crop : {Crop::kRandomResized, Crop::kCenter, Crop::kWhole}) {
    const ImageSpec spec{.height = 48, .width = 64, .crop = crop, .flip_probability = 0.5};
    std::vector<std::byte> by_key(spec.bytes()), by_box(spec.bytes());
    for (std::uint64_t sample = 0; sample < 20; ++sample) {
      const SampleKey key{7, 2, sample};
      ASSERT_TRUE(decoder.decode(as_bytes(data), spec, key, by_key).is_ok());
      const CropBox box = *choose_box(spec, key, 161, 123);
      ASSERT_TRUE(decoder.decode_box(as_bytes(data), box, 48, 64, kPixelsMax, by_box).is_ok());
      EXPECT_EQ(by_key, by_box);
    }
  }
}

TEST(ImageDecoder, AllocatesNothingOnceItHasSeenTheLargestImage) {
  ImageDecoder decoder;
  const ImageSpec spec{.height = 64, .width = 64, .flip_probability = 0.5};
  std::vector<std::string> files;
  for (const char* name : {"420.jpg", "progressive.jpg", "cmyk.jpg", "tall.jpg", "arithmetic.jpg",
                           "rgba.png", "p.png", "17x9.jpg"}) {
    files.push_back(read_file(name));
  }
  std::vector<std::byte> out(spec.bytes());
  const auto round = [&] {
    for (std::uint64_t n = 0; n < 40 * files.size(); ++n) {
      const std::string& data = files[n % files.size()];
      const Status status = decoder.decode(as_bytes(data), spec, {1, 0, n}, out);
      ASSERT_TRUE(status.is_ok()) << status.to_string();
    }
  };
  round();
  const std::uint64_t held = decoder.scratch_bytes();
  const std::uint64_t before = allocations;
  round();
  EXPECT_EQ(allocations - before, 0u);
  EXPECT_EQ(decoder.scratch_bytes(), held);
  EXPECT_LT(held, 4u << 20);
}

TEST(ImageDecoder, RefusesEveryTruncationOfEveryKindOfFile) {
  ImageDecoder decoder;
  for (const char* name : {"420.jpg", "restart.jpg", "progressive.jpg", "arithmetic.jpg",
                           "grey.jpg", "rgb.png", "p.png"}) {
    const std::string data = read_file(name);
    const std::string whole = decode_whole(decoder, data).digest;
    ASSERT_FALSE(whole.empty());
    for (std::size_t size = 0; size < data.size(); size += size < 700 ? 1 : 37) {
      const Decoded got = decode_whole(decoder, std::string_view(data).substr(0, size));
      EXPECT_TRUE(is_refusal(got.status)) << name << " cut at " << size;
    }
    EXPECT_EQ(decode_whole(decoder, data).digest, whole) << "after damaged ones";
  }
}

// Damage may decode to other pixels (JPEG has no checksum) or be refused, and nothing else.
TEST(ImageDecoder, SurvivesFlippedBits) {
  ImageDecoder decoder;
  Rng rng(11);
  for (const char* name : {"422.jpg", "restart.jpg", "progressive.jpg", "cmyk.jpg", "rgba.png"}) {
    const std::string data = read_file(name);
    for (int n = 0; n < 300; ++n) {
      std::string bad = data;
      const std::size_t at =
          rng.below(n % 2 == 0 ? std::min<std::size_t>(bad.size(), 700) : bad.size());
      bad[at] = static_cast<char>(bad[at] ^ (1 << rng.below(8)));
      const Decoded got = decode_whole(decoder, bad);
      EXPECT_TRUE(got.status.is_ok() || is_refusal(got.status)) << got.status.to_string();
    }
  }
}

// JPEG marker segment positions: the bytes after FF xx.
std::size_t segment(const std::string& jpeg, unsigned char marker) {
  const std::string mark = {static_cast<char>(0xFF), static_cast<char>(marker)};
  const std::size_t at = jpeg.find(mark);
  EXPECT_NE(at, std::string::npos);
  return at;
}

std::string without_segments(std::string jpeg, unsigned char marker) {
  const std::string mark = {static_cast<char>(0xFF), static_cast<char>(marker)};
  const std::size_t scan = segment(jpeg, 0xDA);
  for (std::size_t at = jpeg.find(mark); at < scan; at = jpeg.find(mark)) {
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(jpeg[at + 2])) * 256 +
                        static_cast<unsigned char>(jpeg[at + 3]);
    jpeg.erase(at, length + 2);
    if (jpeg.find(mark) > segment(jpeg, 0xDA)) break;
  }
  return jpeg;
}

TEST(ImageDecoder, NeverUsesTablesOfAnEarlierFile) {
  ImageDecoder decoder;
  const std::string data = read_file("420.jpg");
  ASSERT_TRUE(decode_whole(decoder, data).status.is_ok());
  const Decoded got = decode_whole(decoder, without_segments(data, 0xDB));
  EXPECT_EQ(got.status.code(), Code::kCorrupt);
  EXPECT_NE(got.status.message().find("uantization table"), std::string::npos)
      << got.status.to_string();
}

TEST(ImageDecoder, RefusesHostileHeaders) {
  ImageDecoder decoder;
  const std::string jpeg = read_file("420.jpg");
  const std::size_t frame = segment(jpeg, 0xC0);
  const auto patched = [&](std::size_t at, std::string_view bytes) {
    std::string copy = jpeg;
    copy.replace(at, bytes.size(), bytes);
    return copy;
  };
  using namespace std::string_view_literals;
  const struct {
    const char* what;
    std::string data;
    Code code;
  } kCases[] = {
      {"nothing", "", Code::kUnimplemented},
      {"text", "hello, world", Code::kUnimplemented},
      {"GIF", "GIF89a....", Code::kUnimplemented},
      {"start marker alone", "\xFF\xD8\xFF", Code::kCorrupt},
      {"zero height", patched(frame + 5, "\0\0"sv), Code::kCorrupt},
      {"zero width", patched(frame + 7, "\0\0"sv), Code::kCorrupt},
      {"huge size", patched(frame + 5, "\xFF\xFF\xFF\xFF"sv), Code::kExhausted},
      {"twelve bits", patched(frame + 4, "\x0C"sv), Code::kUnimplemented},
      {"lossless", patched(frame + 1, "\xC3"sv), Code::kUnimplemented},
      {"two components", patched(frame + 9, "\x02"sv), Code::kCorrupt},
      {"sampling of zero", patched(frame + 11, "\0"sv), Code::kCorrupt},
      {"segment of length 0", patched(segment(jpeg, 0xDB) + 2, "\0\0"sv), Code::kCorrupt},
      {"bad Huffman table", patched(segment(jpeg, 0xC4) + 5, "\xFF\xFF\xFF"sv), Code::kCorrupt},
      {"no Huffman bits", patched(segment(jpeg, 0xDA) + 14, std::string(500, '\xFF')),
       Code::kCorrupt},
  };
  for (const auto& c : kCases) {
    const Result<ImageInfo> info = probe_image(as_bytes(c.data));
    const ImageSpec spec{.height = 16, .width = 16, .crop = Crop::kWhole};
    std::vector<std::byte> out(spec.bytes());
    const Status status = decoder.decode(as_bytes(c.data), spec, {}, out);
    EXPECT_EQ(status.code(), c.code) << c.what << ": " << status.to_string();
    EXPECT_FALSE(status.message().empty());
    EXPECT_TRUE(info.is_ok() || info.status().code() == c.code) << c.what;
  }
}

TEST(ImageDecoder, RefusesDamagedPngs) {
  ImageDecoder decoder;
  const std::string png = read_file("rgb.png");
  using namespace std::string_view_literals;
  const auto patched = [&](std::size_t at, std::string_view bytes) {
    std::string copy = png;
    copy.replace(at, bytes.size(), bytes);
    return decode_whole(decoder, copy).status;
  };
  const std::size_t data = png.find("IDAT");
  EXPECT_EQ(patched(29, "\0\0\0\0"sv).code(), Code::kCorrupt) << "header checksum";
  EXPECT_EQ(patched(16, "\0\0\0\0"sv).code(), Code::kCorrupt) << "no width";
  EXPECT_EQ(patched(16, "\x7F\xFF\xFF\xFF"sv).code(), Code::kExhausted) << "2^31 columns";
  EXPECT_EQ(patched(25, "\x05"sv).code(), Code::kCorrupt) << "colour type";
  EXPECT_EQ(patched(data + 40, "\x01\x02\x03"sv).code(), Code::kCorrupt) << "data checksum";
  EXPECT_EQ(patched(png.size() - 16, "\x01\x02"sv).code(), Code::kCorrupt) << "last checksum";
  EXPECT_EQ(patched(data, "iDAT"sv).code(), Code::kCorrupt) << "no data";
}

TEST(ImageDecoder, RefusesWrongOutputsAndBoxes) {
  ImageDecoder decoder;
  const std::string data = read_file("17x9.jpg");
  std::vector<std::byte> out(16 * 16 * 3);
  const ImageSpec spec{.height = 16, .width = 16};
  EXPECT_EQ(decoder.decode(as_bytes(data), spec, {}, MutableBytes(out).first(767)).code(),
            Code::kInvalidArgument);
  const auto boxed = [&](CropBox box) {
    return decoder.decode_box(as_bytes(data), box, 16, 16, kPixelsMax, out).code();
  };
  EXPECT_EQ(boxed({0, 0, 17, 9, 16, 16, 0, 0, false}), Code::kOk);
  EXPECT_EQ(boxed({1, 0, 17, 9, 16, 16, 0, 0, false}), Code::kInvalidArgument);
  EXPECT_EQ(boxed({0, 0xFFFFFFFF, 17, 9, 16, 16, 0, 0, false}), Code::kInvalidArgument);
  EXPECT_EQ(boxed({0, 0, 0, 9, 16, 16, 0, 0, false}), Code::kInvalidArgument);
  EXPECT_EQ(boxed({0, 0, 17, 9, 16, 16, 1, 0, false}), Code::kInvalidArgument);
  EXPECT_EQ(decoder.decode_box(as_bytes(data), {0, 0, 17, 9, 16, 16, 0, 0, false}, 16, 16, 152, out)
                .code(),
            Code::kExhausted);
}

TEST(ProbeImage, ReadsSizesWithoutDecoding) {
  const Result<ImageInfo> grey = probe_image(as_bytes(read_file("grey_progressive.jpg")));
  ASSERT_TRUE(grey.is_ok());
  EXPECT_EQ(grey->width, 161u);
  EXPECT_EQ(grey->height, 123u);
  EXPECT_EQ(grey->components, 1u);
  EXPECT_EQ(probe_image(as_bytes(read_file("cmyk.jpg")))->components, 4u);
  const Result<ImageInfo> png = probe_image(as_bytes(read_file("la.png")));
  ASSERT_TRUE(png.is_ok());
  EXPECT_EQ(png->format, ImageFormat::kPng);
  EXPECT_EQ(png->width, 61u);
  EXPECT_EQ(png->components, 2u);
}

}  // namespace
}  // namespace headrace::codec
