// Throughput of decode + random-resized-crop 224, and of the resize passes by themselves. Images
// are the *.jpg files of the folder HEADRACE_BENCH_IMAGES; without it the small golden ones are
// used, whose figures say little about photographs.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "headrace/base/check.h"
#include "headrace/codec/image.h"
#include "headrace/codec/resample.h"

namespace headrace::codec {
namespace {

std::vector<std::string> load_images() {
  const char* folder = std::getenv("HEADRACE_BENCH_IMAGES");
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(
           folder != nullptr ? std::string(folder) : HEADRACE_GOLDEN_DIR "/codec")) {
    if (entry.path().extension() == ".jpg") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> images;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    images.push_back(text.str());
  }
  HR_CHECK(!images.empty(), "HEADRACE_BENCH_IMAGES holds no *.jpg");
  return images;
}

void decode_images(benchmark::State& state, const ImageSpec& spec) {
  const std::vector<std::string> images = load_images();
  ImageDecoder decoder;
  std::vector<std::byte> out(spec.bytes());
  std::uint64_t sample = 0;
  std::int64_t bytes = 0;
  for (auto _ : state) {
    const std::string& image = images[sample % images.size()];
    const Status status = decoder.decode(as_bytes(image), spec, {0, 0, sample++}, out);
    HR_CHECK(status.is_ok(), status.to_string());
    bytes += static_cast<std::int64_t>(image.size());
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(bytes);
}

void random_resized_224(benchmark::State& state) {
  decode_images(state, ImageSpec{.flip_probability = 0.5});
}
BENCHMARK(random_resized_224);

void center_224(benchmark::State& state) { decode_images(state, ImageSpec{.crop = Crop::kCenter}); }
BENCHMARK(center_224);

// 330 x 250 source pixels to 224 x 224, about the mean of the random crops of a 500 x 375 image.
void resize_passes(benchmark::State& state) {
  const auto simd = static_cast<Simd>(state.range(0));
  if (simd > simd_of_machine()) {
    state.SkipWithError("this machine has no AVX2");
    return;
  }
  Taps columns, rows;
  const std::size_t stride = 2048, middle_stride = 704;
  std::vector<std::uint8_t> pixels(stride * 375, 100), middle(middle_stride * 375), out(224 * 672);
  for (auto _ : state) {
    columns.build({500, 80, 330, 224, 0, 224, false});
    rows.build({375, 60, 250, 224, 0, 224, false});
    const std::size_t height = rows.end() - rows.begin();
    horizontal(simd, columns, pixels.data(), stride, height, middle.data(), middle_stride);
    vertical(simd, rows, middle.data(), middle_stride, 672, out.data(), 672);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(resize_passes)->Arg(0)->Arg(1);

}  // namespace
}  // namespace headrace::codec
