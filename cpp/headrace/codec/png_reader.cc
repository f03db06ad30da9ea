#include <setjmp.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include <png.h>

#include "headrace/codec/image_reader.h"

// Errors jump out of libpng as in jpeg_reader.cc, over frames without destructors; libpng's memory
// is Scratch, so a jump leaks nothing. The whole file is read and every critical checksum checked,
// even when the region ends early.
namespace headrace::codec {
namespace {

struct PngState {
  jmp_buf jump;
  Code code = Code::kCorrupt;
  char text[128] = {};

  ByteView data;
  std::size_t at = 0;
  ImageInfo info;
  Region region;
  Scratch* scratch = nullptr;
  RowSink* sink = nullptr;
  Band band;
};

[[noreturn]] void fail(PngState& s, Code code, const char* text) {
  s.code = code;
  std::snprintf(s.text, sizeof s.text, "%s", text);
  longjmp(s.jump, 1);
}

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  PngState& s = *static_cast<PngState*>(png_get_error_ptr(png));
  // libpng says so when its allocator, ours, gives nothing.
  const bool memory = std::strstr(text, "emory") != nullptr;
  fail(s, memory ? Code::kExhausted : Code::kCorrupt, text);
}

void on_warning(png_structp, png_const_charp) {}

void* on_malloc(png_structp png, png_alloc_size_t bytes) {
  return static_cast<PngState*>(png_get_mem_ptr(png))->scratch->allocate(bytes);
}

void on_free(png_structp, void*) {}

void on_read(png_structp png, png_bytep to, std::size_t count) {
  PngState& s = *static_cast<PngState*>(png_get_io_ptr(png));
  if (count > s.data.size() - s.at) fail(s, Code::kCorrupt, "the data end before the image does");
  std::memcpy(to, s.data.data() + s.at, count);
  s.at += count;
}

// Only the chunks that make pixels are looked at: profiles, texts and gamma change nothing here and
// could otherwise ask for memory.
void ignore_other_chunks(png_structp png) {
  static const png_byte kNames[] =
      "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0"
      "sBIT\0sCAL\0sPLT\0sRGB\0tEXt\0tIME\0zTXt";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, kNames,
                              static_cast<int>(sizeof kNames / 5));
}

// To R, G, B, anything: 4 bytes a pixel whatever the file holds.
void ask_for_rgbx(png_structp png, png_infop info) {
  const int colour = png_get_color_type(png, info);
  png_set_strip_16(png);
  if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if ((colour & PNG_COLOR_MASK_COLOR) == 0) {
    png_set_expand_gray_1_2_4_to_8(png);
    png_set_gray_to_rgb(png);
  }
  png_set_strip_alpha(png);
  png_set_filler(png, 0xFF, PNG_FILLER_AFTER);
}

void read_in_bands(PngState& s, png_structp png) {
  const Region& r = s.region;
  for (std::uint32_t y = 0; y < s.info.height;) {
    const bool wanted = y >= r.y && y < r.y + r.height;
    const std::uint32_t end = wanted ? r.y + r.height : y < r.y ? r.y : s.info.height;
    const std::size_t rows = std::min<std::size_t>(Band::kRows, end - y);
    for (std::size_t i = 0; i < rows; ++i) png_read_row(png, s.band.row(i), nullptr);
    if (wanted) s.sink->take(s.band.base + std::size_t{r.x} * 4, s.band.stride, rows);
    y += static_cast<std::uint32_t>(rows);
  }
}

// Each pass of an interlaced image adds pixels to rows that must be kept whole.
void read_interlaced(PngState& s, png_structp png, int passes) {
  for (int pass = 0; pass < passes; ++pass) {
    for (std::uint32_t y = 0; y < s.info.height; ++y) png_read_row(png, s.band.row(y), nullptr);
  }
  const Region& r = s.region;
  s.sink->take(s.band.row(r.y) + std::size_t{r.x} * 4, s.band.stride, r.height);
}

void read_image(PngState& s) {
  png_structp png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &s, on_error, on_warning, &s,
                                             on_malloc, on_free);
  if (png == nullptr) fail(s, Code::kExhausted, "out of scratch memory");
  png_infop info = png_create_info_struct(png);
  if (info == nullptr) fail(s, Code::kExhausted, "out of scratch memory");
  png_set_read_fn(png, &s, on_read);
  png_set_user_limits(png, 0x7FFFFFFF, 0x7FFFFFFF);  // pixels_max has been checked by the caller
  ignore_other_chunks(png);
  png_read_info(png, info);
  ask_for_rgbx(png, info);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != std::size_t{s.info.width} * 4) {
    fail(s, Code::kUnimplemented, "a pixel layout of its own");
  }
  const std::size_t rows = passes > 1 ? s.info.height : Band::kRows;
  if (!s.band.allocate(*s.scratch, s.info.width, s.region.pad, rows)) {
    fail(s, Code::kExhausted, "out of scratch memory");
  }
  passes > 1 ? read_interlaced(s, png, passes) : read_in_bands(s, png);
  png_read_end(png, nullptr);
  png_destroy_read_struct(&png, &info, nullptr);
}

// Nothing in this frame changes between setjmp and the jump.
bool guarded(PngState& s) {
  if (setjmp(s.jump) != 0) return false;
  read_image(s);
  return true;
}

}  // namespace

bool Band::allocate(Scratch& scratch, std::size_t width, std::size_t pad, std::size_t rows) {
  stride = ((width + pad) * 4 + Scratch::kAlign - 1) / Scratch::kAlign * Scratch::kAlign;
  auto* const memory = static_cast<std::uint8_t*>(scratch.allocate(stride * rows + kOffset));
  base = memory == nullptr ? nullptr : memory + kOffset;
  return memory != nullptr;
}

Status read_png(ByteView png, const ImageInfo& info, const Region& region, Scratch& scratch,
                RowSink& sink) {
  PngState s;
  s.data = png;
  s.info = info;
  s.region = region;
  s.scratch = &scratch;
  s.sink = &sink;
  if (guarded(s)) return Status::ok();
  return Status(s.code, "PNG of " + std::to_string(png.size()) + " bytes, " +
                            std::to_string(info.width) + " x " + std::to_string(info.height) +
                            ", byte " + std::to_string(s.at) + ": " + s.text);
}

}  // namespace headrace::codec
