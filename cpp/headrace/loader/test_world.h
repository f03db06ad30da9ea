// What the loader's tests share: a small MDS data set in a memory store, and loaders over it on
// threads or in virtual time.
// Thread-safety: a TestWorld belongs to one test.
// Ownership: owns executor, metrics and data set.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headrace/format/writer.h"
#include "headrace/loader/loader.h"
#include "headrace/store/memory_store.h"

namespace headrace::loader {

struct WorldOptions {
  std::uint64_t samples = 1000;
  std::uint64_t shard_bytes = 8192;  // size limit of a shard
  bool is_virtual = true;
  std::size_t threads = 3;  // when not virtual
  store::MemoryOptions store;
};

// The text of sample `i`: its number, and up to 40 bytes more.
inline std::string sample_text(std::uint64_t i) {
  return std::to_string(i) + ":" + std::string(i * 7 % 41, static_cast<char>('a' + i % 26));
}

class TestWorld {
 public:
  explicit TestWorld(WorldOptions options = {}) : options_(std::move(options)) {
    if (options_.is_virtual)
      executor_ = std::make_unique<exec::VirtualExecutor>();
    else
      executor_ = exec::make_thread_executor(options_.threads);
    auto store = std::make_unique<store::MemoryStore>(deps(), options_.store);
    store_ = store.get();
    for (const auto& file : pack()) store_->set(file.name, *file.bytes);
    auto opened = Dataset::open(std::move(store), deps());
    HR_CHECK(opened.is_ok(), opened.status().to_string());
    dataset_ = std::move(opened).value();
  }
  ~TestWorld() {
    dataset_->close();
    executor_->shutdown();
  }

  store::StoreDeps deps() {
    return {*executor_, metrics_, {}, [](std::string_view) { return std::nullopt; }, 0};
  }
  Result<std::unique_ptr<Loader>> loader(LoaderOptions options,
                                         std::shared_ptr<ExternalStage> stage = nullptr) {
    return loader(dataset_->all(), std::move(options), std::move(stage));
  }
  Result<std::unique_ptr<Loader>> loader(SampleSet samples, LoaderOptions options,
                                         std::shared_ptr<ExternalStage> stage = nullptr) {
    return Loader::make(dataset_, std::move(samples), std::move(options),
                        {*executor_, metrics_,
                         [this](obs::Level, std::string_view event, std::string_view text) {
                           const MutexLock lock(log_mutex_);
                           log_.push_back(std::string(event) + ": " + std::string(text));
                         }},
                        std::move(stage));
  }

  exec::Executor& executor() { return *executor_; }
  store::MemoryStore& store() { return *store_; }
  const std::shared_ptr<Dataset>& dataset() { return dataset_; }
  obs::Metrics& metrics() { return metrics_; }
  // What loaders have logged, "event: text".
  std::vector<std::string> log() HR_EXCLUDES(log_mutex_) {
    const MutexLock lock(log_mutex_);
    return log_;
  }

 private:
  std::vector<format::FinishedFile> pack() const {
    format::WriterOptions writer;
    writer.columns = {{"text", "str"}, {"number", "int"}};
    writer.size_limit = options_.shard_bytes;
    auto builder = format::make_dataset_builder("mds", writer);
    HR_CHECK(builder.is_ok(), builder.status().to_string());
    std::vector<format::FinishedFile> files;
    for (std::uint64_t i = 0; i < options_.samples; ++i) {
      const std::string text = sample_text(i);
      format::FieldValue number;
      number.is_null = false;
      number.dtype = format::DType::kI64;
      number.bytes = {reinterpret_cast<const std::byte*>(&i), sizeof i};
      format::FieldValue value;
      value.is_null = false;
      value.bytes = as_bytes(text);
      // Columns are kept in the order of their names.
      const Status status = (*builder)->add("", std::vector{number, value}, files);
      HR_CHECK(status.is_ok(), status.to_string());
    }
    const Status status = (*builder)->finish(files);
    HR_CHECK(status.is_ok(), status.to_string());
    return files;
  }

  WorldOptions options_;
  Mutex log_mutex_;
  std::vector<std::string> log_ HR_GUARDED_BY(log_mutex_);
  obs::Metrics metrics_;
  std::unique_ptr<exec::Executor> executor_;
  store::MemoryStore* store_ = nullptr;
  std::shared_ptr<Dataset> dataset_;
};

inline const BatchColumn& column(const Batch& batch, std::string_view name) {
  for (const BatchColumn& c : batch.columns) {
    if (c.name == name) return c;
  }
  HR_CHECK(false, "no such column");
}

inline std::int64_t int_at(MutableBytes values, std::uint64_t i) {
  return load_le<std::int64_t>(values.data() + i * 8);
}

inline std::string text_at(const Batch& batch, std::uint64_t row) {
  const BatchColumn& c = column(batch, "text");
  const auto begin = static_cast<std::size_t>(int_at(c.offsets, row));
  const auto end = static_cast<std::size_t>(int_at(c.offsets, row + 1));
  return std::string(as_text(c.values.subspan(begin, end - begin)));
}

// The numbers of a batch's real rows, after checking that every column agrees about them.
inline std::vector<std::uint64_t> rows_of(const Batch& batch) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t row = 0; row < batch.rows; ++row) {
    const std::int64_t index = int_at(batch.index, row);
    HR_CHECK(int_at(column(batch, "number").values, row) == index, "number column is off");
    HR_CHECK(text_at(batch, row) == sample_text(static_cast<std::uint64_t>(index)), "text is off");
    if (!batch.mask.empty() && batch.mask[row] == std::byte{0}) continue;
    out.push_back(static_cast<std::uint64_t>(index));
  }
  return out;
}

// One epoch of one rank, from where the loader stands.
inline Result<std::vector<std::vector<std::uint64_t>>> read_epoch(Loader& loader) {
  std::vector<std::vector<std::uint64_t>> out;
  while (true) {
    HR_ASSIGN(const auto batch, loader.next());
    out.push_back(rows_of(*batch));
    if (batch->ends_epoch) return out;
  }
}

}  // namespace headrace::loader
