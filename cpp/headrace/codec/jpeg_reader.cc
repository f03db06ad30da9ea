#include <setjmp.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>

#include <jpeglib.h>

#include <jerror.h>

#include "headrace/codec/image_reader.h"
#include "headrace/codec/jpeg_memory.h"

// libjpeg reports errors by calling error_exit, which must not return. It jumps back to `guarded`,
// over frames of libjpeg and of plain functions below that hold no object with a destructor; all
// memory is Scratch, so a jump leaks nothing. The decompressor itself is made once for each thread
// and reused: its tables are forgotten before every image, so no file can be decoded with what an
// earlier one left behind.
namespace headrace::codec {

struct JpegReader::State {
  jpeg_decompress_struct decoder{};
  jpeg_error_mgr errors{};
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  jpeg_memory_mgr* own_memory = nullptr;  // libjpeg's, for what lives as long as the decoder
  JpegMemory memory;
  jmp_buf jump;

  // Set before a jump.
  Code code = Code::kInternal;
  char text[JMSG_LENGTH_MAX] = {};

  // The image at hand.
  ImageInfo info;
  Region region;
  Band band;
  Scratch* scratch = nullptr;
  RowSink* sink = nullptr;
};

namespace {

// A progressive file of many tiny scans keeps a decoder busy out of all proportion to its size.
constexpr int kScansMax = 500;

// Fancy upsampling blends a column with its neighbour, and a cropped decode takes its own edge for
// the edge of the image. Two columns more on each side keep that outside the region.
constexpr std::uint32_t kCropMargin = 2;
// libjpeg-turbo chooses its upsampler by the width of the image and again by that of a very narrow
// crop; crops this wide keep the choice of the whole image.
constexpr std::uint32_t kCropWidthMin = 64;

// State is private to JpegReader; these functions are called back by libjpeg with a pointer to it.
template <typename State>
struct Callbacks {
  static State& state_of(j_common_ptr cinfo) { return *static_cast<State*>(cinfo->client_data); }

  static Code code_of(int message) {
    switch (message) {
      case JERR_OUT_OF_MEMORY: return Code::kExhausted;
      case JERR_ARITH_NOTIMPL:
      case JERR_BAD_PRECISION:
      case JERR_CCIR601_NOTIMPL:
      case JERR_CONVERSION_NOTIMPL:
      case JERR_FRACT_SAMPLE_NOTIMPL:
      case JERR_NOTIMPL:
      case JERR_SOF_UNSUPPORTED: return Code::kUnimplemented;
      default: return Code::kCorrupt;
    }
  }

  [[noreturn]] static void error_exit(j_common_ptr cinfo) {
    State& s = state_of(cinfo);
    s.code = code_of(cinfo->err->msg_code);
    (*cinfo->err->format_message)(cinfo, s.text);
    longjmp(s.jump, 1);
  }

  [[noreturn]] static void fail(State& s, Code code, const char* text) {
    s.code = code;
    std::snprintf(s.text, sizeof s.text, "%s", text);
    longjmp(s.jump, 1);
  }

  // Odd headers and bytes between segments are common in photographs and change no pixel. Bytes
  // before a restart marker mean a damaged interval, as does every other warning.
  static bool is_harmless(const jpeg_error_mgr& error) {
    switch (error.msg_code) {
      case JWRN_ADOBE_XFORM:
      case JWRN_BOGUS_ICC:
      case JWRN_JFIF_MAJOR:
      case JWRN_NOT_SEQUENTIAL: return true;
      case JWRN_EXTRANEOUS_DATA: return error.msg_parm.i[1] < 0xD0 || error.msg_parm.i[1] > 0xD7;
      default: return false;
    }
  }

  // Level -1 is a warning, the others are traces.
  static void emit_message(j_common_ptr cinfo, int level) {
    if (level < 0 && !is_harmless(*cinfo->err)) error_exit(cinfo);
  }

  static void output_message(j_common_ptr) {}
  static void init_source(j_decompress_ptr) {}
  static void term_source(j_decompress_ptr) {}

  static boolean fill_input_buffer(j_decompress_ptr cinfo) {
    fail(state_of(reinterpret_cast<j_common_ptr>(cinfo)), Code::kCorrupt,
         "the data end before the image does");
  }

  static void skip_input_data(j_decompress_ptr cinfo, long count) {
    if (count <= 0) return;
    const auto bytes = static_cast<std::size_t>(count);
    if (bytes > cinfo->src->bytes_in_buffer) fill_input_buffer(cinfo);
    cinfo->src->next_input_byte += bytes;
    cinfo->src->bytes_in_buffer -= bytes;
  }

  static void progress_monitor(j_common_ptr cinfo) {
    if (reinterpret_cast<j_decompress_ptr>(cinfo)->input_scan_number <= kScansMax) return;
    fail(state_of(cinfo), Code::kCorrupt, "more than 500 scans");
  }
};

// Nothing in this frame changes between setjmp and the jump, so nothing is indeterminate after it.
template <typename State>
bool guarded(State& s, void (*step)(State&)) {
  if (setjmp(s.jump) != 0) return false;
  step(s);
  return true;
}

template <typename State>
void create(State& s) {
  using On = Callbacks<State>;
  jpeg_decompress_struct& d = s.decoder;
  d.err = jpeg_std_error(&s.errors);
  s.errors.error_exit = On::error_exit;
  s.errors.emit_message = On::emit_message;
  s.errors.output_message = On::output_message;
  d.client_data = &s;
  jpeg_create_decompress(&d);
  s.own_memory = d.mem;
  s.source.init_source = On::init_source;
  s.source.fill_input_buffer = On::fill_input_buffer;
  s.source.skip_input_data = On::skip_input_data;
  s.source.resync_to_restart = jpeg_resync_to_restart;
  s.source.term_source = On::term_source;
  d.src = &s.source;
  s.progress.progress_monitor = On::progress_monitor;
  d.progress = &s.progress;
}

// Tables are memory of the image before, which is gone.
void forget_tables(jpeg_decompress_struct& d) {
  std::fill(std::begin(d.quant_tbl_ptrs), std::end(d.quant_tbl_ptrs), nullptr);
  std::fill(std::begin(d.dc_huff_tbl_ptrs), std::end(d.dc_huff_tbl_ptrs), nullptr);
  std::fill(std::begin(d.ac_huff_tbl_ptrs), std::end(d.ac_huff_tbl_ptrs), nullptr);
}

// A progressive file that ends early in precision is smoothed between blocks, which looks beyond
// the edges of a crop.
bool is_exact_in_parts(const jpeg_decompress_struct& d) {
  if (d.coef_bits == nullptr) return true;
  for (int c = 0; c < d.num_components; ++c) {
    for (int k = 0; k < DCTSIZE2; ++k) {
      if (d.coef_bits[c][k] != 0) return false;
    }
  }
  return true;
}

// Pillow's integer arithmetic from inverted CMYK, which is what libjpeg gives for Adobe's files.
void cmyk_to_rgb(std::uint8_t* pixel, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i, pixel += 4) {
    const int white = pixel[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - pixel[c]) * white + 128;
      const int value = white - (((product >> 8) + product) >> 8);
      pixel[c] = static_cast<std::uint8_t>(std::max(value, 0));
    }
  }
}

template <typename State>
void start(State& s) {
  jpeg_decompress_struct& d = s.decoder;
  jpeg_read_header(&d, TRUE);
  if (d.image_width != s.info.width || d.image_height != s.info.height) {
    Callbacks<State>::fail(s, Code::kCorrupt, "two frame headers of different sizes");
  }
  if (d.num_components != 1 && d.num_components != 3 && d.num_components != 4) {
    Callbacks<State>::fail(s, Code::kUnimplemented, "neither 1, 3 nor 4 components");
  }
  d.out_color_space = d.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
  d.dct_method = JDCT_ISLOW;
  d.do_fancy_upsampling = TRUE;
  jpeg_start_decompress(&d);
}

// Returns the first column that will be in the rows read.
template <typename State>
std::uint32_t crop_columns(State& s) {
  const Region& r = s.region;
  std::uint32_t begin = r.x - std::min(r.x, kCropMargin);
  std::uint32_t end = std::min(s.info.width, r.x + r.width + kCropMargin);
  if (end - begin < kCropWidthMin) {
    begin = end - std::min(end, kCropWidthMin);
    end = std::min(s.info.width, begin + kCropWidthMin);
  }
  JDIMENSION offset = begin;
  JDIMENSION width = end - begin;
  jpeg_crop_scanline(&s.decoder, &offset, &width);
  return offset;
}

template <typename State>
void read_rows(State& s) {
  jpeg_decompress_struct& d = s.decoder;
  const Region& r = s.region;
  const bool in_parts = is_exact_in_parts(d);
  const std::uint32_t first = in_parts ? crop_columns(s) : 0;
  if (!s.band.allocate(*s.scratch, d.output_width, r.pad, Band::kRows)) {
    Callbacks<State>::fail(s, Code::kExhausted, "scratch memory");
  }
  JSAMPROW rows[Band::kRows];
  for (std::size_t i = 0; i < Band::kRows; ++i) rows[i] = s.band.row(i);
  if (in_parts && r.y > 0) jpeg_skip_scanlines(&d, r.y);
  while (d.output_scanline < r.y) jpeg_read_scanlines(&d, rows, 1);

  const std::uint32_t end = r.y + r.height;
  while (d.output_scanline < end) {
    const std::size_t want = std::min<std::size_t>(Band::kRows, end - d.output_scanline);
    std::size_t have = 0;
    while (have < want) {
      const JDIMENSION got =
          jpeg_read_scanlines(&d, rows + have, static_cast<JDIMENSION>(want - have));
      if (got == 0) Callbacks<State>::fail(s, Code::kInternal, "no rows and no error");
      have += got;
    }
    std::uint8_t* const pixels = s.band.base + std::size_t{r.x - first} * 4;
    if (d.out_color_space == JCS_CMYK) {
      for (std::size_t i = 0; i < have; ++i) cmyk_to_rgb(pixels + i * s.band.stride, r.width);
    }
    s.sink->take(pixels, s.band.stride, have);
  }
}

template <typename State>
void read_image(State& s) {
  start(s);
  read_rows(s);
}

}  // namespace

JpegReader::JpegReader() = default;

JpegReader::~JpegReader() {
  if (state_ == nullptr) return;
  state_->decoder.mem = state_->own_memory;
  jpeg_destroy_decompress(&state_->decoder);
}

Status JpegReader::read(ByteView jpeg, const ImageInfo& info, const Region& region,
                        Scratch& scratch, RowSink& sink) {
  if (state_ == nullptr) {
    auto state = std::make_unique<State>();
    if (!guarded<State>(*state, create<State>)) return exhausted("JPEG decoder: out of memory");
    state_ = std::move(state);
  }
  State& s = *state_;
  s.memory.start(scratch);
  s.decoder.mem = s.memory.manager();
  jpeg_abort_decompress(&s.decoder);
  s.decoder.output_scanline =
      0;  // said in messages, also of files that fail before their first row
  forget_tables(s.decoder);
  s.source.next_input_byte = reinterpret_cast<const JOCTET*>(jpeg.data());
  s.source.bytes_in_buffer = jpeg.size();
  s.info = info;
  s.region = region;
  s.scratch = &scratch;
  s.sink = &sink;
  if (guarded<State>(s, read_image<State>)) return Status::ok();
  std::string where = "JPEG of " + std::to_string(jpeg.size()) + " bytes, " +
                      std::to_string(info.width) + " x " + std::to_string(info.height) + ", row " +
                      std::to_string(s.decoder.output_scanline) + ", byte " +
                      std::to_string(jpeg.size() - s.source.bytes_in_buffer) + ": ";
  return Status(s.code, where + s.text);
}

}  // namespace headrace::codec
