// What the JPEG and PNG readers share: a region to read and a sink for its rows, band by band.
// Thread-safety: none; one thread at a time.
// Ownership: pixels are lent to the sink for the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "headrace/base/bytes.h"
#include "headrace/base/status.h"
#include "headrace/codec/image.h"
#include "headrace/codec/scratch.h"

namespace headrace::codec {

// Columns [x, x + width) and rows [y, y + height), not empty and inside the image. `pad` pixels
// behind the last of each row are readable too, with any values.
struct Region {
  std::uint32_t x = 0, y = 0, width = 0, height = 0;
  std::size_t pad = 0;
};

// Takes the rows of a region from top to bottom. Readers call it inside a frame that errors jump
// out of (never while the sink runs), so it must not throw.
class RowSink {
 public:
  // `rows` rows of 4-byte pixels (R, G, B, anything), `stride` bytes apart, from column x.
  virtual void take(const std::uint8_t* pixels, std::size_t stride, std::size_t rows) noexcept = 0;

 protected:
  ~RowSink() = default;
};

class JpegReader {
 public:
  JpegReader();
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // `info` is what probe_image said of the same bytes. All memory comes from `scratch`.
  Status read(ByteView jpeg, const ImageInfo& info, const Region& region, Scratch& scratch,
              RowSink& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Status read_png(ByteView png, const ImageInfo& info, const Region& region, Scratch& scratch,
                RowSink& sink);

// Rows of 4-byte pixels. They start 16 bytes off a 32-byte boundary: libjpeg-turbo writes aligned
// rows past the caches, and the resize that reads them next would then wait for memory.
struct Band {
  static constexpr std::size_t kRows = 16;
  static constexpr std::size_t kOffset = 16;

  std::uint8_t* base = nullptr;
  std::size_t stride = 0;

  // `width` pixels are written and `pad` more may be read. False when there is no memory.
  bool allocate(Scratch& scratch, std::size_t width, std::size_t pad, std::size_t rows);
  std::uint8_t* row(std::size_t n) const { return base + n * stride; }
};

}  // namespace headrace::codec
