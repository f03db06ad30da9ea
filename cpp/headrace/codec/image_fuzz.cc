// Eight bytes that choose a crop, then any bytes as an image: pixels or a Status, twice the same.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "headrace/base/check.h"
#include "headrace/codec/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headrace;
  if (size < 8) return 0;
  // One decoder for all inputs: what one file leaves behind must not reach the next.
  static codec::ImageDecoder reused;
  codec::ImageDecoder fresh;
  codec::ImageSpec spec;
  spec.crop = static_cast<codec::Crop>(1 + data[0] % 3);
  spec.height = 1 + data[1];
  spec.width = 1 + data[2];
  spec.scale_min = 1.0 / (1 + data[3]);
  spec.flip_probability = data[4] / 255.0;
  spec.pixels_max = 1 << 18;
  const codec::SampleKey key{data[5], data[6], data[7]};
  const ByteView image = std::as_bytes(std::span(data + 8, size - 8));
  std::vector<std::byte> a(spec.bytes()), b(spec.bytes());
  const Status first = reused.decode(image, spec, key, a);
  const Status second = fresh.decode(image, spec, key, b);
  HR_CHECK(first == second,
           "a decoder remembers an earlier file: " + first.to_string() + "; " + second.to_string());
  HR_CHECK(!first.is_ok() || a == b, "two decodes of one file differ");
  HR_CHECK(first.code() != Code::kInternal, "an error of our own");
  return 0;
}
