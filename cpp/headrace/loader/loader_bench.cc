// Stored bytes to batches from mapped files, against memcpy of the same bytes in the same run.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "headrace/base/rng.h"
#include "headrace/format/writer.h"
#include "headrace/loader/loader.h"

namespace headrace::loader {
namespace {

// A data set of `samples` samples of `bytes` random bytes each, removed with the process.
class Folder {
 public:
  Folder(std::uint64_t samples, std::uint64_t bytes)
      : path_(std::filesystem::temp_directory_path() /
              ("headrace-bench-" + std::to_string(getpid()) + "-" + std::to_string(bytes))) {
    std::filesystem::create_directories(path_);
    format::WriterOptions options;
    options.columns = {{"data", "bytes"}};
    auto builder = format::make_dataset_builder("mds", options);
    std::vector<format::FinishedFile> files;
    std::string body(bytes, '\0');
    Rng rng(bytes);
    for (std::uint64_t i = 0; i < samples; ++i) {
      for (std::size_t at = 0; at + 8 <= body.size(); at += 8) {
        const std::uint64_t word = rng.next();
        std::memcpy(body.data() + at, &word, sizeof word);
      }
      format::FieldValue value;
      value.is_null = false;
      value.bytes = as_bytes(body);
      HR_CHECK((*builder)->add("", {&value, 1}, files).is_ok(), "add");
      write(files);
    }
    HR_CHECK((*builder)->finish(files).is_ok(), "finish");
    write(files);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  void write(std::vector<format::FinishedFile>& files) {
    for (const auto& file : files) {
      std::ofstream(path_ / file.name, std::ios::binary) << *file.bytes;
    }
    files.clear();
  }
  std::filesystem::path path_;
};

void load(benchmark::State& state, std::uint64_t bytes, std::uint64_t samples) {
  static std::map<std::uint64_t, std::unique_ptr<Folder>> folders;
  auto& folder = folders[bytes];
  if (!folder) folder = std::make_unique<Folder>(samples, bytes);
  obs::Metrics metrics;
  const auto executor = exec::make_thread_executor(static_cast<std::size_t>(state.range(0)));
  const store::StoreDeps deps{
      *executor, metrics, {}, [](std::string_view) { return std::optional<std::string>(); }, 0};
  OpenOptions open;
  open.url = folder->path();
  const auto dataset = *Dataset::open(open, deps);
  LoaderOptions options;
  options.global_batch = 64;
  options.epoch_end = order::EpochEnd::kCarry;
  const auto loader = *Loader::make(dataset, dataset->all(), options, {*executor, metrics, {}});
  for (auto _ : state) {
    const auto batch = *loader->next();
    benchmark::DoNotOptimize(batch->index.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * 64 *
                          static_cast<std::int64_t>(bytes));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * 64);
}

void BM_Load1K(benchmark::State& state) { load(state, 1 << 10, 100'000); }
void BM_Load4K(benchmark::State& state) { load(state, 4 << 10, 50'000); }
void BM_Load50K(benchmark::State& state) { load(state, 50'000, 8'000); }
BENCHMARK(BM_Load1K)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(BM_Load4K)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK(BM_Load50K)->Arg(1)->Arg(2)->UseRealTime();

void BM_Memcpy50K(benchmark::State& state) {
  std::vector<char> from(400'000'000, 1);
  std::vector<char> to(64 * 50'000);
  Rng rng(1);
  for (auto _ : state) {
    for (std::size_t i = 0; i < 64; ++i) {
      std::memcpy(&to[i * 50'000], &from[rng.below(8000) * 50'000], 50'000);
    }
    benchmark::DoNotOptimize(to.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * 64 * 50'000);
}
BENCHMARK(BM_Memcpy50K)->UseRealTime();

}  // namespace
}  // namespace headrace::loader
