#include <algorithm>
#include <cmath>
#include <string>

#include "headrace/base/rng.h"
#include "headrace/codec/image.h"

// Compiled with -ffp-contract=off (CMakeLists.txt): a fused multiply-add would round differently
// and two kinds of machine could then choose different crops for the same key.
namespace headrace::codec {
namespace {

constexpr double kLn2 = 0.69314718055994530942;

// ln x for normal positive x, by the series of 2 atanh((m - 1) / (m + 1)) with m in [1/sqrt 2,
// sqrt 2): |z| < 0.172, so 12 terms reach double precision.
double stable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact: m in [0.5, 1)
  if (m < 0.70710678118654752440) {
    m *= 2.0;
    exponent -= 1;
  }
  const double z = (m - 1.0) / (m + 1.0);
  const double z2 = z * z;
  double sum = 0.0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * z2 + 1.0 / k;
  return 2.0 * z * sum + exponent * kLn2;
}

// e^x for |x| below 700: x = n ln 2 + r, |r| <= 0.35, Taylor to r^14.
double stable_exp(double x) {
  const double n = std::floor(x / kLn2 + 0.5);
  const double r = x - n * kLn2;
  double sum = 1.0;
  for (int k = 14; k >= 1; --k) sum = 1.0 + r * sum / k;
  return std::ldexp(sum, static_cast<int>(n));
}

// Rounds halves to even, whatever the rounding mode of the thread; x is not negative here.
double round_even(double x) {
  const double low = std::floor(x);
  const double rest = x - low;
  if (rest < 0.5 || (rest == 0.5 && std::fmod(low, 2.0) == 0.0)) return low;
  return low + 1.0;
}

std::uint32_t half_even(std::uint32_t difference) {
  const std::uint32_t half = difference / 2;
  return half + (difference % 2 == 1 && half % 2 == 1 ? 1 : 0);
}

Rng rng_of(SampleKey key) {
  std::uint64_t s = mix64(key.seed + kGoldenGamma);
  s = mix64((s ^ key.epoch) + kGoldenGamma);
  s = mix64((s ^ key.sample) + kGoldenGamma);
  return Rng(s);
}

std::uint32_t clamp_side(double side, std::uint32_t limit) {
  return static_cast<std::uint32_t>(std::clamp(side, 1.0, static_cast<double>(limit)));
}

void choose_random_part(const ImageSpec& spec, Rng& rng, std::uint32_t width, std::uint32_t height,
                        CropBox& box) {
  const double area = static_cast<double>(width) * static_cast<double>(height);
  const double log_min = stable_log(spec.ratio_min);
  const double log_max = stable_log(spec.ratio_max);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double part = area * (spec.scale_min + rng.uniform() * (spec.scale_max - spec.scale_min));
    const double ratio = stable_exp(log_min + rng.uniform() * (log_max - log_min));
    const double w = round_even(std::sqrt(part * ratio));
    const double h = round_even(std::sqrt(part / ratio));
    if (w < 1.0 || h < 1.0 || w > width || h > height) continue;
    box.width = static_cast<std::uint32_t>(w);
    box.height = static_cast<std::uint32_t>(h);
    // uniform() < 1 has 53 bits and sides have 16, so the floors stay within range.
    box.y = static_cast<std::uint32_t>(rng.uniform() * (height - box.height + 1));
    box.x = static_cast<std::uint32_t>(rng.uniform() * (width - box.width + 1));
    return;
  }
  const double ratio = static_cast<double>(width) / height;
  box.width = width;
  box.height = height;
  if (ratio < spec.ratio_min) {
    box.height = clamp_side(round_even(width / spec.ratio_min), height);
  } else if (ratio > spec.ratio_max) {
    box.width = clamp_side(round_even(height * spec.ratio_max), width);
  }
  box.x = (width - box.width) / 2;
  box.y = (height - box.height) / 2;
}

std::uint32_t shorter_side(const ImageSpec& spec) {
  if (spec.resize_shorter != 0) return spec.resize_shorter;
  return (std::max(spec.height, spec.width) * 256 + 112) / 224;
}

// The resized longer side may be huge for a long thin image; only its window is ever computed.
Status choose_center(const ImageSpec& spec, std::uint32_t width, std::uint32_t height,
                     CropBox& box) {
  const std::uint64_t shorter = shorter_side(spec);
  const std::uint64_t longer = shorter * std::max(width, height) / std::min(width, height);
  if (longer > (std::uint64_t{1} << 28)) {
    return invalid_argument("an image of " + std::to_string(width) + " x " +
                            std::to_string(height) + " is too thin for a centre crop");
  }
  box.resized_width = static_cast<std::uint32_t>(width <= height ? shorter : longer);
  box.resized_height = static_cast<std::uint32_t>(width <= height ? longer : shorter);
  box.left = half_even(box.resized_width - spec.width);
  box.top = half_even(box.resized_height - spec.height);
  return Status::ok();
}

// NaN fails every comparison, so each test is written to pass only for good values.
Status validate_random(const ImageSpec& spec) {
  if (!(spec.scale_min > 0.0 && spec.scale_min <= spec.scale_max && spec.scale_max <= 1.0)) {
    return invalid_argument("image scale must satisfy 0 < scale_min <= scale_max <= 1, not " +
                            std::to_string(spec.scale_min) + " and " +
                            std::to_string(spec.scale_max));
  }
  if (!(spec.ratio_min >= 1e-3 && spec.ratio_min <= spec.ratio_max && spec.ratio_max <= 1e3)) {
    return invalid_argument("image ratio must be 0.001 <= ratio_min <= ratio_max <= 1000, not " +
                            std::to_string(spec.ratio_min) + " and " +
                            std::to_string(spec.ratio_max));
  }
  return Status::ok();
}

}  // namespace

Status ImageSpec::validate() const {
  if (!(flip_probability >= 0.0 && flip_probability <= 1.0)) {
    return invalid_argument("flip probability must be within [0, 1], not " +
                            std::to_string(flip_probability));
  }
  if (pixels_max == 0 || pixels_max > kPixelsLimit) {
    return invalid_argument("pixels_max must be 1 .. 2^32, not " + std::to_string(pixels_max));
  }
  if (crop == Crop::kNone) {
    if (height == 0 && width == 0) return Status::ok();
    return invalid_argument(
        "without a crop the image keeps its size: set height and width to 0, "
        "or choose a crop");
  }
  if (height == 0 || width == 0 || height > kImageSideMax || width > kImageSideMax) {
    return invalid_argument("image size must be 1 .. 65535 a side, not " + std::to_string(height) +
                            " x " + std::to_string(width));
  }
  if (crop == Crop::kRandomResized) return validate_random(*this);
  if (crop == Crop::kCenter) {
    const std::uint32_t shorter = shorter_side(*this);
    if (shorter < std::max(height, width) || shorter > 2 * kImageSideMax) {
      return invalid_argument("resize_shorter must be between the longer output side, " +
                              std::to_string(std::max(height, width)) + ", and 131070, not " +
                              std::to_string(shorter));
    }
  }
  return Status::ok();
}

Result<CropBox> choose_box(const ImageSpec& spec, SampleKey key, std::uint32_t width,
                           std::uint32_t height) {
  HR_TRY(spec.validate());
  if (width == 0 || height == 0) {
    return invalid_argument("an image of " + std::to_string(width) + " x " +
                            std::to_string(height) + " has no pixels");
  }
  const std::uint64_t pixels = std::uint64_t{width} * height;
  if (pixels > spec.pixels_max) {
    return exhausted("an image of " + std::to_string(width) + " x " + std::to_string(height) +
                     " has more than pixels_max = " + std::to_string(spec.pixels_max) +
                     " pixels; raise pixels_max if it is meant to");
  }
  Rng rng = rng_of(key);
  CropBox box;
  box.flip = rng.uniform() < spec.flip_probability;
  box.width = width;
  box.height = height;
  box.resized_width = spec.crop == Crop::kNone ? width : spec.width;
  box.resized_height = spec.crop == Crop::kNone ? height : spec.height;
  if (spec.crop == Crop::kRandomResized) choose_random_part(spec, rng, width, height, box);
  if (spec.crop == Crop::kCenter) HR_TRY(choose_center(spec, width, height, box));
  return box;
}

}  // namespace headrace::codec
