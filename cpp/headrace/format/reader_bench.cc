// What opening costs for 1.3 M samples, and what one sample costs afterwards.
#include <benchmark/benchmark.h>

#include "headrace/format/mds_reader.h"
#include "headrace/format/test_data.h"
#include "headrace/format/test_tar.h"

namespace headrace::format {
namespace {

// An index of 2 200 shards, as ImageNet in shards of 64 MiB has it.
std::string large_index() {
  std::string out = "{\"shards\": [";
  for (int i = 0; i < 2200; ++i) {
    if (i > 0) out += ", ";
    out +=
        "{\"column_encodings\": [\"int\", \"jpeg\"], \"column_names\": [\"cls\", \"jpg\"], "
        "\"column_sizes\": [8, null], \"compression\": null, \"format\": \"mds\", \"hashes\": "
        "[\"sha1\", \"xxh64\"], \"raw_data\": {\"basename\": \"shard." +
        std::to_string(10000 + i) +
        ".mds\", \"bytes\": 67000000, \"hashes\": {\"sha1\": "
        "\"a9993e364706816aba3e25717850c26c9cd0d89d\", \"xxh64\": \"44bc2cf5ad770999\"}}, "
        "\"samples\": 590, \"size_limit\": 67108864, \"version\": 2, \"zip_data\": null}";
  }
  return out + "], \"version\": 2}";
}

void open_mds_index(benchmark::State& state) {
  const std::string text = large_index();
  for (auto _ : state) benchmark::DoNotOptimize(read_mds_index(text));
}
BENCHMARK(open_mds_index)->Unit(benchmark::kMillisecond);

// 16 384 samples of 4 KB: one shard of 64 MiB.
struct Tokens {
  Tokens() {
    WriterOptions options;
    options.columns = {{"tokens", "ndarray:uint16:2048"}};
    options.size_limit = 80 << 20;
    auto builder = std::move(make_dataset_builder("mds", options)).value();
    const std::string body(4096, 't');
    FieldValue value = text_value(body);
    value.dtype = DType::kU16;
    value.dimensions = 1;
    value.shape[0] = 2048;
    for (int i = 0; i < 16384; ++i) {
      HR_CHECK(builder->add("", {&value, 1}, files).is_ok(), "add");
    }
    HR_CHECK(builder->finish(files).is_ok(), "finish");
    reader = std::move(read_mds_index(*files.back().bytes)).value();
    shard = as_bytes(*files.front().bytes);
  }
  std::vector<FinishedFile> files;
  std::shared_ptr<Reader> reader;
  ByteView shard;
};

void make_mds_locator(benchmark::State& state) {
  const Tokens tokens;
  for (auto _ : state) benchmark::DoNotOptimize(locator_of(*tokens.reader, 0, tokens.shard));
}
BENCHMARK(make_mds_locator)->Unit(benchmark::kMicrosecond);

void locate_and_view(benchmark::State& state, const Reader& reader, ByteView shard) {
  const auto locator = std::move(locator_of(reader, 0, shard)).value();
  std::vector<FieldValue> values(reader.schema().fields.size());
  FetchUnit unit;
  std::uint64_t at = 0;
  for (auto _ : state) {
    HR_CHECK(locator->locate(at, unit).is_ok(), "locate");
    const ByteRange range = unit.extents[0].range;
    HR_CHECK(reader.view(shard.subspan(range.offset, range.length), 0, values).is_ok(), "view");
    benchmark::DoNotOptimize(values.data());
    at = (at + 1) % reader.shards()[0].samples;
  }
}

void view_mds_tokens(benchmark::State& state) {
  const Tokens tokens;
  locate_and_view(state, *tokens.reader, tokens.shard);
}
BENCHMARK(view_mds_tokens);

void view_tar_sample(benchmark::State& state) {
  TestTar tar;
  for (int i = 0; i < 100; ++i) {
    tar.file(std::to_string(i) + ".jpg", std::string(1000, 'j'));
    tar.file(std::to_string(i) + ".cls", "7");
  }
  const std::string archive = tar.bytes();
  const auto reader = read_tars({archive});
  locate_and_view(state, *reader, as_bytes(archive));
}
BENCHMARK(view_tar_sample);

}  // namespace
}  // namespace headrace::format
