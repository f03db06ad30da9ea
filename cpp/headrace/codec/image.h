// Encoded images (JPEG, PNG) to RGB pixels: keyed crop, antialiased resize and flip in one call.
// Thread-safety: the functions are pure; an ImageDecoder belongs to one thread at a time.
// Ownership: views are borrowed for the call; an ImageDecoder owns and reuses its scratch memory.
#pragma once

#include <cstdint>
#include <memory>

#include "headrace/base/bytes.h"
#include "headrace/base/status.h"

namespace headrace::codec {

enum class ImageFormat : std::uint8_t { kJpeg, kPng };

// What the header of an encoded image says.
struct ImageInfo {
  ImageFormat format = ImageFormat::kJpeg;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t components = 0;  // as stored: 1 grey or palette, 2 grey + alpha, 3, 4
};

// Reads the header only: neither allocates nor decodes. Corrupt when no size can be found,
// Unimplemented when the bytes are neither JPEG nor PNG.
Result<ImageInfo> probe_image(ByteView encoded);

enum class Crop : std::uint8_t {
  kNone,           // the whole image at its own size; height and width of the spec are 0
  kWhole,          // the whole image resized to height x width, whatever its aspect
  kCenter,         // the shorter side resized to resize_shorter, then the middle height x width
  kRandomResized,  // a random part of the image resized to height x width
};

inline constexpr std::uint32_t kImageSideMax = 65535;
// No pixels_max may be larger, so that sizes in bytes always fit 64 bits.
inline constexpr std::uint64_t kPixelsLimit = std::uint64_t{1} << 32;

// What to make of every image. Output is RGB, 8 bits a sample, height x width x 3 (HWC).
struct ImageSpec {
  std::uint32_t height = 224;
  std::uint32_t width = 224;
  Crop crop = Crop::kRandomResized;
  // kRandomResized: the part's share of the image's area, and its width over its height.
  double scale_min = 0.08;
  double scale_max = 1.0;
  double ratio_min = 3.0 / 4.0;
  double ratio_max = 4.0 / 3.0;
  // kCenter: 0 means the longer output side times 256 / 224, rounded to nearest.
  std::uint32_t resize_shorter = 0;
  // Probability of a left-right flip, under any crop.
  double flip_probability = 0.0;
  // Images of more pixels are refused (Exhausted) before anything is allocated for them. A PNG
  // or a progressive JPEG may need up to 16 bytes of scratch memory a pixel, others mostly a few
  // rows.
  std::uint64_t pixels_max = std::uint64_t{1} << 27;

  Status validate() const;
  // Bytes of one decoded image; 0 under kNone, where they depend on the image.
  std::uint64_t bytes() const { return std::uint64_t{height} * width * 3; }
};

// All random choices for a sample follow from this and nothing else.
struct SampleKey {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t sample = 0;
};

// One way to look at one image, in Pillow's words (b is the box, h x w the output):
//   image.convert("RGB")
//        .resize((resized_width, resized_height), BILINEAR,
//                box=(b.x, b.y, b.x + b.width, b.y + b.height))
//        .crop((left, top, left + w, top + h))
// and then mirrored when flip is set. Decoding gives the bytes of Pillow 13 exactly. (Earlier ones
// resize tall images in the other order of passes, which rounds some samples differently by one.)
struct CropBox {
  std::uint32_t x = 0, y = 0, width = 0, height = 0;    // the part of the source, in its pixels
  std::uint32_t resized_width = 0, resized_height = 0;  // what that part is resized to
  std::uint32_t left = 0, top = 0;                      // where the output begins in that
  bool flip = false;

  friend bool operator==(const CropBox&, const CropBox&) = default;
};

// Chooses the box for an image of that size. Pure, and the same on every machine: only IEEE
// addition, multiplication, division and square root are used, no libm. The algorithm:
//
//   s0 = mix64(seed + G), s1 = mix64((s0 ^ epoch) + G), s2 = mix64((s1 ^ sample) + G) with mix64
//   and G = kGoldenGamma of base/rng.h; draws are uniform() of Rng(s2), in this order:
//   1. flip = draw < flip_probability (drawn for every crop, so it never depends on the crop).
//   2. kRandomResized as in torchvision, at most 10 tries:
//      area = width * height * (scale_min + draw * (scale_max - scale_min)),
//      ratio = exp(log ratio_min + draw * (log ratio_max - log ratio_min)),
//      w = round(sqrt(area * ratio)), h = round(sqrt(area / ratio)), halves to even;
//      if 0 < w <= width and 0 < h <= height: y = floor(draw * (height - h + 1)),
//      x = floor(draw * (width - w + 1)), done.
//      When no try fits: the largest centred part whose ratio is allowed.
//   3. kCenter draws nothing: the longer side becomes floor(resize_shorter * longer / shorter),
//      and the window's corner is half the difference, halves to even.
//
// Fails with InvalidArgument when the spec is invalid or a size is 0, Exhausted above pixels_max.
Result<CropBox> choose_box(const ImageSpec& spec, SampleKey key, std::uint32_t width,
                           std::uint32_t height);

// Decodes JPEG (baseline, extended, progressive; grey, YCbCr, RGB, CMYK, YCCK as Pillow converts
// them) and PNG (every colour type; alpha is dropped, 16 bits keep the upper 8) to RGB. Orientation
// tags, colour profiles and gamma are ignored, as Pillow does unless asked. For JPEG only the rows
// and columns that the box needs are decoded, so damage below the last row needed is not seen.
//
// Corrupt: damaged, truncated or not an image. Unimplemented: valid, but of a kind not built here.
// Exhausted: above a limit of the spec. After a failure `out` holds unspecified pixels and the
// decoder is ready for the next image. Nothing is allocated for an image no larger than an earlier
// one, except by libpng inside a PNG.
class ImageDecoder {
 public:
  ImageDecoder();
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  // Decodes as `spec` and `key` say. `out` must be exactly spec.bytes() long, or width * height * 3
  // of the image under kNone.
  Status decode(ByteView encoded, const ImageSpec& spec, SampleKey key, MutableBytes out);

  // Decodes a box chosen by the caller into out = height x width x 3. The box must lie inside the
  // image and the output inside the resized part.
  Status decode_box(ByteView encoded, const CropBox& box, std::uint32_t height, std::uint32_t width,
                    std::uint64_t pixels_max, MutableBytes out);

  // Scratch memory held at present, for the memory budget of the caller.
  std::uint64_t scratch_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::codec
