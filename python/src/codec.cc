// What to make of a picture, as decode= says it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "array.h"
#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "headrace/codec/image.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {
namespace {

using Pair = std::pair<double, double>;

codec::ImageSpec make_spec(const std::string& crop, std::uint32_t height, std::uint32_t width,
                           Pair scale, Pair ratio, std::uint32_t resize_shorter, double flip,
                           std::uint64_t pixels_max) {
  codec::ImageSpec spec;
  if (crop == "none") {
    spec.crop = codec::Crop::kNone;
  } else if (crop == "whole") {
    spec.crop = codec::Crop::kWhole;
  } else if (crop == "center") {
    spec.crop = codec::Crop::kCenter;
  } else if (crop == "random-resized") {
    spec.crop = codec::Crop::kRandomResized;
  } else {
    raise(invalid_argument("crop=\"" + crop +
                           "\" is none of \"random-resized\", \"center\", \"whole\" and None"));
  }
  spec.height = height;
  spec.width = width;
  spec.scale_min = scale.first;
  spec.scale_max = scale.second;
  spec.ratio_min = ratio.first;
  spec.ratio_max = ratio.second;
  spec.resize_shorter = resize_shorter;
  spec.flip_probability = flip;
  spec.pixels_max = pixels_max;
  check(spec.validate());
  return spec;
}

// Decodes one picture as a loader would: an array [height, width, 3] of bytes.
Array decode_image(const nb::bytes& encoded, const codec::ImageSpec& spec, std::uint64_t seed,
                   std::uint64_t epoch, std::uint64_t sample) {
  const ByteView view{reinterpret_cast<const std::byte*>(encoded.data()), encoded.size()};
  std::uint64_t height = spec.height;
  std::uint64_t width = spec.width;
  if (spec.crop == codec::Crop::kNone) {
    const codec::ImageInfo info = check(codec::probe_image(view));
    height = info.height;
    width = info.width;
    if (height * width > spec.pixels_max) {
      raise(exhausted("a picture of " + std::to_string(width) + " x " + std::to_string(height) +
                      " pixels is above the limit of " + std::to_string(spec.pixels_max)));
    }
  }
  auto memory = std::make_shared<std::vector<std::byte>>(height * width * 3);
  Status status;
  {
    const GilRelease release;
    codec::ImageDecoder decoder;
    status = decoder.decode(view, spec, {seed, epoch, sample}, *memory);
  }
  check(status);
  return Array(memory, *memory, element_type(format::DType::kU8),
               {static_cast<std::int64_t>(height), static_cast<std::int64_t>(width), 3});
}

}  // namespace

void bind_codec(nb::module_& m) {
  nb::class_<codec::ImageSpec>(m, "ImageSpec")
      .def_static("make", &make_spec, "crop"_a, "height"_a, "width"_a, "scale"_a, "ratio"_a,
                  "resize_shorter"_a, "flip"_a, "pixels_max"_a);
  m.def("decode_image", &decode_image, "encoded"_a, "spec"_a, "seed"_a, "epoch"_a, "sample"_a);
}

}  // namespace headrace::python
