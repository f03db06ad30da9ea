#include <algorithm>
#include <array>
#include <string>

#include "headrace/codec/image.h"

namespace headrace::codec {
namespace {

constexpr std::array<std::uint8_t, 8> kPngMagic = {0x89, 'P', 'N', 'G', 0x0D, 0x0A, 0x1A, 0x0A};

std::uint32_t be(ByteView bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  }
  return value;
}

Status truncated(std::size_t size) {
  return corrupt("JPEG header: no frame within its " + std::to_string(size) +
                 " bytes; the file is cut short");
}

// Frame headers are FFC0 .. FFCF without DHT (C4), JPG (C8) and DAC (CC).
bool is_frame(std::uint32_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

Result<ImageInfo> read_frame(ByteView jpeg, std::size_t at, std::uint32_t length) {
  if (length < 8) return corrupt("JPEG header: frame of " + std::to_string(length) + " bytes");
  ImageInfo info;
  info.format = ImageFormat::kJpeg;
  info.height = be(jpeg, at + 3, 2);
  info.width = be(jpeg, at + 5, 2);
  info.components = be(jpeg, at + 7, 1);
  if (info.width == 0 || info.height == 0 || info.components == 0) {
    return corrupt("JPEG header: a frame of " + std::to_string(info.width) + " x " +
                   std::to_string(info.height) + " with " + std::to_string(info.components) +
                   " components");
  }
  return info;
}

// Walks the marker segments up to the first frame; each step moves forward, so the work is bounded
// by the size of the file.
Result<ImageInfo> probe_jpeg(ByteView jpeg) {
  std::size_t at = 2;
  while (true) {
    while (at < jpeg.size() && be(jpeg, at, 1) != 0xFF) ++at;  // decoders skip such bytes too
    while (at < jpeg.size() && be(jpeg, at, 1) == 0xFF) ++at;
    if (at >= jpeg.size()) return truncated(jpeg.size());
    const std::uint32_t marker = be(jpeg, at, 1);
    ++at;
    // A stuffed zero, TEM, RSTn and SOI stand alone.
    if (marker == 0x00 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) continue;
    if (marker == 0xD9 || marker == 0xDA) {
      return corrupt("JPEG header: image data begin or end before any frame, at byte " +
                     std::to_string(at - 2));
    }
    if (jpeg.size() - at < 2) return truncated(jpeg.size());
    const std::uint32_t length = be(jpeg, at, 2);
    if (length < 2) {
      return corrupt("JPEG header: segment of length " + std::to_string(length) + " at byte " +
                     std::to_string(at));
    }
    if (jpeg.size() - at < length) return truncated(jpeg.size());
    if (is_frame(marker)) return read_frame(jpeg, at, length);
    at += length;
  }
}

Result<ImageInfo> probe_png(ByteView png) {
  // Signature 8, chunk length 4, "IHDR" 4, then width, height, depth, colour type.
  if (png.size() < 33 || as_text(png.subspan(12, 4)) != "IHDR") {
    return corrupt("PNG header: the first chunk is not a whole IHDR");
  }
  ImageInfo info;
  info.format = ImageFormat::kPng;
  info.width = be(png, 16, 4);
  info.height = be(png, 20, 4);
  const std::uint32_t colour = be(png, 25, 1);
  if (info.width == 0 || info.height == 0 || info.width > 0x7FFFFFFF || info.height > 0x7FFFFFFF) {
    return corrupt("PNG header: an image of " + std::to_string(info.width) + " x " +
                   std::to_string(info.height));
  }
  switch (colour) {
    case 0:
    case 3: info.components = 1; break;
    case 4: info.components = 2; break;
    case 2: info.components = 3; break;
    case 6: info.components = 4; break;
    default: return corrupt("PNG header: colour type " + std::to_string(colour));
  }
  return info;
}

}  // namespace

Result<ImageInfo> probe_image(ByteView encoded) {
  if (encoded.size() >= 3 && be(encoded, 0, 3) == 0xFFD8FF) return probe_jpeg(encoded);
  const bool png = encoded.size() >= kPngMagic.size() &&
                   std::equal(kPngMagic.begin(), kPngMagic.end(), encoded.begin(),
                              [](std::uint8_t a, std::byte b) { return std::byte{a} == b; });
  if (png) return probe_png(encoded);
  return unimplemented("neither JPEG nor PNG: " + std::to_string(encoded.size()) +
                       " bytes beginning with " +
                       to_hex(encoded.first(std::min<std::size_t>(encoded.size(), 8))));
}

}  // namespace headrace::codec
