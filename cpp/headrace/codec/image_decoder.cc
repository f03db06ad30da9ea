#include <algorithm>
#include <cstring>
#include <string>

#include "headrace/codec/image.h"
#include "headrace/codec/image_reader.h"
#include "headrace/codec/resample.h"
#include "headrace/codec/scratch.h"

// One image: the box says which outputs are wanted, the filters say which source columns and rows
// those read, and the reader decodes just these in bands of a few rows. Usually each band is
// resized horizontally while it is still in the cache and the vertical pass comes last. Each pass
// rounds to bytes, so the order of the two is part of the result; Pillow 13 takes the vertical pass
// first when that removes many rows (its rule was found by experiment: 700 of 700 random sizes
// agreed).
namespace headrace::codec {
namespace {

// Beyond what grows with the image and the output: tables of the decoders, bands of rows.
constexpr std::uint64_t kScratchBase = std::uint64_t{64} << 20;
constexpr std::uint64_t kScratchPixelBytes = 16;
// Decoders round sides up to whole coding units, at most 32 pixels, and read a little beyond.
constexpr std::uint64_t kScratchSide = 64;

class ResizeSink final : public RowSink {
 public:
  ResizeSink(const Taps& taps, std::uint8_t* to, std::size_t stride)
      : simd_(simd_of_machine()), taps_(taps), to_(to), stride_(stride) {}

  void take(const std::uint8_t* pixels, std::size_t stride, std::size_t rows) noexcept override {
    horizontal(simd_, taps_, pixels, stride, rows, to_, stride_);
    to_ += rows * stride_;
  }

 private:
  Simd simd_;
  const Taps& taps_;
  std::uint8_t* to_;
  std::size_t stride_;
};

// Keeps the rows, which must be readable on behind their pixels, as the vertical pass wants them.
class KeepSink final : public RowSink {
 public:
  KeepSink(std::size_t bytes, std::uint8_t* to, std::size_t stride)
      : bytes_(bytes), to_(to), stride_(stride) {}

  void take(const std::uint8_t* pixels, std::size_t stride, std::size_t rows) noexcept override {
    for (std::size_t row = 0; row < rows; ++row, pixels += stride, to_ += stride_) {
      std::memcpy(to_, pixels, bytes_);
    }
  }

 private:
  std::size_t bytes_;
  std::uint8_t* to_;
  std::size_t stride_;
};

// Without a resize pixels only lose their fourth byte and perhaps their order.
class CopySink final : public RowSink {
 public:
  CopySink(std::uint32_t width, bool flip, std::byte* to) : width_(width), flip_(flip), to_(to) {}

  void take(const std::uint8_t* pixels, std::size_t stride, std::size_t rows) noexcept override {
    for (std::size_t row = 0; row < rows; ++row, pixels += stride) {
      const std::uint8_t* from = flip_ ? pixels + std::size_t{width_ - 1} * 4 : pixels;
      const std::ptrdiff_t step = flip_ ? -4 : 4;
      for (std::uint32_t x = 0; x < width_; ++x, from += step, to_ += 3) std::memcpy(to_, from, 3);
    }
  }

 private:
  std::uint32_t width_;
  bool flip_;
  std::byte* to_;
};

std::size_t round_up(std::size_t bytes) {
  return (bytes + Scratch::kAlign - 1) / Scratch::kAlign * Scratch::kAlign;
}

bool is_vertical_first(const ImageInfo& info, const CropBox& box) {
  const std::int64_t rows = std::int64_t{info.height} - box.resized_height;
  const std::int64_t columns = std::int64_t{info.width} - box.resized_width;
  return rows > 0 && (rows > 2 * columns || info.height > 100 * std::uint64_t{info.width});
}

Status no_scratch(std::uint64_t bytes) {
  return exhausted("resizing needs " + std::to_string(bytes) +
                   " bytes of scratch memory, out of proportion to the image and the output");
}

std::string size_text(std::uint64_t width, std::uint64_t height) {
  return std::to_string(width) + " x " + std::to_string(height);
}

Status check_box(const CropBox& box, std::uint32_t height, std::uint32_t width,
                 const ImageInfo& info) {
  if (box.width == 0 || box.height == 0 || std::uint64_t{box.x} + box.width > info.width ||
      std::uint64_t{box.y} + box.height > info.height) {
    return invalid_argument("a box of " + size_text(box.width, box.height) + " at " +
                            size_text(box.x, box.y) + " does not lie inside an image of " +
                            size_text(info.width, info.height));
  }
  if (height == 0 || width == 0 || std::uint64_t{box.left} + width > box.resized_width ||
      std::uint64_t{box.top} + height > box.resized_height) {
    return invalid_argument("an output of " + size_text(width, height) + " at " +
                            size_text(box.left, box.top) + " does not lie inside " +
                            size_text(box.resized_width, box.resized_height));
  }
  return Status::ok();
}

}  // namespace

struct ImageDecoder::Impl {
  Scratch scratch;
  JpegReader jpeg;
  Taps columns;
  Taps rows;

  Status read(ByteView encoded, const ImageInfo& info, const Region& region, RowSink& sink) {
    if (info.format == ImageFormat::kPng) return read_png(encoded, info, region, scratch, sink);
    return jpeg.read(encoded, info, region, scratch, sink);
  }

  Status decode(ByteView encoded, const ImageInfo& info, const CropBox& box, std::uint32_t height,
                std::uint32_t width, MutableBytes out);
  Status resize(ByteView encoded, const ImageInfo& info, std::uint8_t* out);
  Status resize_vertical_first(ByteView encoded, const ImageInfo& info, std::uint8_t* out);

  Region region() const {
    return {columns.begin(), rows.begin(), columns.end() - columns.begin(),
            rows.end() - rows.begin(), pad_pixels(columns)};
  }
};

Status ImageDecoder::Impl::decode(ByteView encoded, const ImageInfo& info, const CropBox& box,
                                  std::uint32_t height, std::uint32_t width, MutableBytes out) {
  HR_TRY(check_box(box, height, width, info));
  if (out.size() % 3 != 0 || out.size() / 3 != std::uint64_t{height} * width) {
    return invalid_argument("the output of " + size_text(width, height) +
                            " pixels takes three bytes a pixel, not " + std::to_string(out.size()) +
                            " in all");
  }
  scratch.reset(kScratchBase + 8 * out.size() +
                kScratchPixelBytes * (info.width + kScratchSide) * (info.height + kScratchSide));
  if (box.width == box.resized_width && box.height == box.resized_height) {
    const Region region{box.x + box.left, box.y + box.top, width, height, 0};
    CopySink sink(width, box.flip, out.data());
    return read(encoded, info, region, sink);
  }
  columns.build({info.width, box.x, box.width, box.resized_width, box.left, width, box.flip});
  rows.build({info.height, box.y, box.height, box.resized_height, box.top, height, false});
  auto* const to = reinterpret_cast<std::uint8_t*>(out.data());
  return is_vertical_first(info, box) ? resize_vertical_first(encoded, info, to)
                                      : resize(encoded, info, to);
}

Status ImageDecoder::Impl::resize(ByteView encoded, const ImageInfo& info, std::uint8_t* out) {
  const Region source = region();
  const std::size_t stride = round_up(row_bytes(columns));
  auto* const middle = static_cast<std::uint8_t*>(scratch.allocate(stride * source.height));
  if (middle == nullptr) return no_scratch(stride * source.height);
  ResizeSink sink(columns, middle, stride);
  HR_TRY(read(encoded, info, source, sink));
  const std::size_t bytes = std::size_t{columns.count()} * 3;
  vertical(simd_of_machine(), rows, middle, stride, bytes, out, bytes);
  return Status::ok();
}

Status ImageDecoder::Impl::resize_vertical_first(ByteView encoded, const ImageInfo& info,
                                                 std::uint8_t* out) {
  const Region source = region();
  const std::size_t stride = round_up((source.width + source.pad) * 4);
  const std::size_t out_stride = round_up(row_bytes(columns));
  const std::size_t total =
      stride * (std::size_t{source.height} + rows.count()) + out_stride * Band::kRows;
  auto* const all = static_cast<std::uint8_t*>(scratch.allocate(total));
  if (all == nullptr) return no_scratch(total);
  KeepSink sink(std::size_t{source.width} * 4, all, stride);
  HR_TRY(read(encoded, info, source, sink));
  const Simd simd = simd_of_machine();
  std::uint8_t* const middle = all + stride * source.height;
  vertical(simd, rows, all, stride, std::size_t{source.width} * 4, middle, stride);
  // The horizontal pass writes whole vectors beyond its rows, so it cannot write to `out` itself.
  std::uint8_t* const band = middle + stride * rows.count();
  const std::size_t bytes = std::size_t{columns.count()} * 3;
  for (std::uint32_t row = 0; row < rows.count(); row += Band::kRows) {
    const std::size_t n = std::min<std::size_t>(Band::kRows, rows.count() - row);
    horizontal(simd, columns, middle + row * stride, stride, n, band, out_stride);
    for (std::size_t i = 0; i < n; ++i, out += bytes) {
      std::memcpy(out, band + i * out_stride, bytes);
    }
  }
  return Status::ok();
}

ImageDecoder::ImageDecoder() : impl_(std::make_unique<Impl>()) {}
ImageDecoder::~ImageDecoder() = default;
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;

Status ImageDecoder::decode(ByteView encoded, const ImageSpec& spec, SampleKey key,
                            MutableBytes out) {
  HR_ASSIGN(const ImageInfo info, probe_image(encoded));
  HR_ASSIGN(const CropBox box, choose_box(spec, key, info.width, info.height));
  const bool whole = spec.crop == Crop::kNone;
  return impl_->decode(encoded, info, box, whole ? info.height : spec.height,
                       whole ? info.width : spec.width, out);
}

Status ImageDecoder::decode_box(ByteView encoded, const CropBox& box, std::uint32_t height,
                                std::uint32_t width, std::uint64_t pixels_max, MutableBytes out) {
  HR_ASSIGN(const ImageInfo info, probe_image(encoded));
  if (pixels_max > kPixelsLimit) return invalid_argument("pixels_max is above 2^32");
  if (std::uint64_t{info.width} * info.height > pixels_max) {
    return exhausted("an image of " + size_text(info.width, info.height) +
                     " has more than pixels_max = " + std::to_string(pixels_max) + " pixels");
  }
  return impl_->decode(encoded, info, box, height, width, out);
}

std::uint64_t ImageDecoder::scratch_bytes() const { return impl_->scratch.held_bytes(); }

}  // namespace headrace::codec
