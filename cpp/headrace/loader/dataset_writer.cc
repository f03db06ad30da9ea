#include "headrace/loader/dataset_writer.h"

#include <optional>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/format/mds_reader.h"
#include "headrace/format/schema_json.h"
#include "headrace/loader/shard_scan.h"
#include "headrace/loader/staging.h"
#include "headrace/store/blocking.h"
#include "headrace/trust/hasher.h"
#include "headrace/trust/index.h"

namespace headrace::loader {
namespace {

// Files on their way to the store while the next one is being built. Memory is at most this many
// shards and the one under construction.
constexpr std::size_t kPutsMax = 2;

// Puts that are under way. Completions share the state, because one may come after its writer
// stopped waiting.
class Uploads {
 public:
  Uploads(store::ObjectStore& store, exec::Executor& executor, Duration timeout)
      : store_(store), executor_(executor), timeout_(timeout) {}

  // Starts a put once there is room; fails with what an earlier one failed with.
  Status start(format::FinishedFile file, bool only_if_absent) {
    HR_TRY(wait_for(kPutsMax - 1));
    {
      MutexLock lock(state_->mutex);
      ++state_->open;
    }
    store::PutRequest request;
    request.key = std::move(file.name);
    request.body = std::move(file.bytes);
    request.only_if_absent = only_if_absent;
    request.deadline = executor_.clock().now() + timeout_;
    request.done = [state = state_](const Result<store::ObjectInfo>& result) {
      MutexLock lock(state->mutex);
      if (!result.is_ok() && state->failure.is_ok()) state->failure = result.status();
      --state->open;
      state->changed.notify_all();
    };
    store_.put(std::move(request));
    return Status::ok();
  }

  // Waits until at most `open` puts are under way.
  Status wait_for(std::size_t open) {
    const TimePoint patience = executor_.clock().now() + timeout_ + std::chrono::seconds(5);
    MutexLock lock(state_->mutex);
    while (state_->open > open && state_->failure.is_ok()) {
      if (executor_.clock().now() >= patience ||
          !executor_.wait(state_->mutex, state_->changed, patience)) {
        return deadline_exceeded("a file was not written within the time allowed");
      }
    }
    return state_->failure;
  }

 private:
  struct State {
    Mutex mutex;
    CondVar changed;
    std::size_t open HR_GUARDED_BY(mutex) = 0;
    Status failure HR_GUARDED_BY(mutex);
  };
  store::ObjectStore& store_;
  exec::Executor& executor_;
  const Duration timeout_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

struct DatasetWriter::Impl {
  Impl(std::unique_ptr<Staging> folder, std::unique_ptr<store::ObjectStore> opened,
       DatasetWriterOptions asked, std::unique_ptr<format::DatasetBuilder> made,
       const store::StoreDeps& deps)
      : staging(std::move(folder)),
        store(std::move(opened)),
        options(std::move(asked)),
        builder(std::move(made)),
        executor(deps.executor),
        uploads(*store, deps.executor, options.put_timeout) {}

  // The store is closed before its folder goes.
  ~Impl() { store->close(); }

  std::string_view index_name() const {
    return options.format == "wds" ? trust::kIndexName : format::kMdsIndexName;
  }

  // Refuses a set that is there already, or takes its index away.
  Status prepare_remote() {
    const store::Blocking how{executor, options.store.request_timeout};
    for (const std::string_view name : {format::kMdsIndexName, trust::kIndexName}) {
      const auto found = store::head(*store, how, name);
      if (found.status().code() == Code::kNotFound) continue;
      HR_TRY(found.status());
      if (!options.overwrite) {
        return invalid_argument(store->describe(name) +
                                " exists; choose another place, or ask to overwrite it");
      }
      HR_TRY(store::remove(*store, how, name));
    }
    return Status::ok();
  }

  // Hands what became complete to the store.
  Status write_files() {
    for (format::FinishedFile& file : files) {
      const bool is_index = file.name == index_name();
      if (is_index) {
        // The index comes when everything that it names is there.
        HR_TRY(uploads.wait_for(0));
      } else {
        ++progress.shards;
        progress.bytes += file.bytes->size();
        if (options.format == "wds") HR_TRY(scan(file));
      }
      HR_TRY(uploads.start(std::move(file), is_index && !options.overwrite));
    }
    files.clear();
    return Status::ok();
  }

  Status scan(const format::FinishedFile& file) {
    auto shard = std::make_unique<ShardScan>(file.name, file.name);
    HR_TRY(shard->begin({file.bytes->size(), ""}));
    HR_TRY(shard->take(as_bytes(*file.bytes)));
    HR_TRY(shard->end());
    scans.push_back(std::move(shard));
    return Status::ok();
  }

  Result<format::FinishedFile> make_index() const {
    format::WdsSchemaBuilder fields;
    for (const auto& shard : scans) fields.merge(shard->fields());
    HR_ASSIGN(const format::Schema schema, fields.finish());
    trust::IndexBuilder index("wds", format::schema_to_json(schema));
    for (const auto& shard : scans) HR_TRY(shard->add_to(index, false));
    HR_ASSIGN(std::string bytes, index.finish());
    return format::FinishedFile{std::string(trust::kIndexName),
                                std::make_shared<const std::string>(std::move(bytes))};
  }

  Status finish() {
    HR_TRY(builder->finish(files));
    HR_TRY(write_files());
    if (options.format == "wds") {
      HR_ASSIGN(format::FinishedFile index, make_index());
      files.push_back(std::move(index));
      HR_TRY(write_files());
    }
    HR_TRY(uploads.wait_for(0));
    return staging ? staging->publish() : Status::ok();
  }

  std::unique_ptr<Staging> staging;  // null when the store is remote
  std::unique_ptr<store::ObjectStore> store;
  const DatasetWriterOptions options;
  std::unique_ptr<format::DatasetBuilder> builder;
  exec::Executor& executor;
  Uploads uploads;
  std::vector<std::unique_ptr<ShardScan>> scans;  // of tar shards, for the index
  std::vector<format::FinishedFile> files;        // complete and not yet handed on
  Progress progress;
  Status failure;
  bool is_finished = false;
};

namespace {

Result<std::unique_ptr<format::DatasetBuilder>> make_builder(const DatasetWriterOptions& options) {
  format::WriterOptions writer = options.writer;
  writer.hash = trust::hash_hex;
  return format::make_dataset_builder(options.format, std::move(writer));
}

}  // namespace

DatasetWriter::DatasetWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DatasetWriter::~DatasetWriter() = default;

Result<std::unique_ptr<DatasetWriter>> DatasetWriter::create(std::string_view url,
                                                             DatasetWriterOptions options,
                                                             const store::StoreDeps& deps) {
  HR_ASSIGN(const std::optional<std::string> path, store::local_path(url));
  if (!path) {
    HR_ASSIGN(auto store, store::open_store(url, options.store, deps));
    return create(std::move(store), std::move(options), deps);
  }
  HR_ASSIGN(auto builder, make_builder(options));
  HR_ASSIGN(auto staging, Staging::open(*path, options.overwrite));
  HR_ASSIGN(auto store, store::open_store(staging->path(), options.store, deps));
  return std::unique_ptr<DatasetWriter>(new DatasetWriter(std::make_unique<Impl>(
      std::move(staging), std::move(store), std::move(options), std::move(builder), deps)));
}

Result<std::unique_ptr<DatasetWriter>> DatasetWriter::create(
    std::unique_ptr<store::ObjectStore> store, DatasetWriterOptions options,
    const store::StoreDeps& deps) {
  HR_ASSIGN(auto builder, make_builder(options));
  auto impl = std::make_unique<Impl>(nullptr, std::move(store), std::move(options),
                                     std::move(builder), deps);
  HR_TRY(impl->prepare_remote());
  return std::unique_ptr<DatasetWriter>(new DatasetWriter(std::move(impl)));
}

const format::Schema& DatasetWriter::schema() const { return impl_->builder->schema(); }

Status DatasetWriter::write(std::string_view key, std::span<const format::FieldValue> values) {
  Impl& impl = *impl_;
  if (impl.is_finished) return invalid_argument("the data set has been finished");
  HR_TRY(impl.failure);
  HR_TRY(impl.builder->add(key, values, impl.files));
  ++impl.progress.samples;
  if (impl.files.empty()) return Status::ok();
  impl.failure = impl.write_files();
  return impl.failure;
}

Status DatasetWriter::finish() {
  Impl& impl = *impl_;
  if (impl.is_finished) return invalid_argument("the data set has been finished");
  HR_TRY(impl.failure);
  impl.failure = impl.finish();
  impl.is_finished = impl.failure.is_ok();
  return impl.failure;
}

DatasetWriter::Progress DatasetWriter::progress() const { return impl_->progress; }

}  // namespace headrace::loader
