#include "headrace/loader/dataset.h"

#include <atomic>
#include <utility>

#include "headrace/base/sha256.h"
#include "headrace/loader/open_index.h"
#include "headrace/order/order_spec.h"

namespace headrace::loader {
namespace {

// How often a mapped shard is looked at again for having changed underneath its map. Reading pages
// that a truncation took away would end the process, so this is done while batches are made.
constexpr Duration kRecheckInterval = std::chrono::milliseconds(100);

std::string join_url(std::string url, const std::optional<std::string>& split) {
  if (!split || split->empty()) return url;
  while (!url.empty() && url.back() == '/') url.pop_back();
  return url + "/" + *split;
}

std::string identity_of(const format::Reader& reader) {
  Sha256 hash;
  const auto add = [&hash](std::string_view text) {
    std::string framed;
    append_le<std::uint64_t>(framed, text.size());
    hash.update(as_bytes(framed.append(text)));
  };
  add("headrace-identity-1");
  add(reader.format_name());
  for (const format::Field& field : reader.schema().fields) {
    add(field.name);
    add(field.type.to_string());
    add(field.encoding);
  }
  for (const format::ShardInfo& shard : reader.shards()) {
    add(shard.name);
    add(std::to_string(shard.bytes));
    add(std::to_string(shard.samples));
    for (const format::NamedHash& named : shard.hashes) add(named.algorithm + ":" + named.hex);
  }
  return to_hex(hash.finish());
}

}  // namespace

// What is known of one shard. Written once under the mutex, then read without it.
struct ShardSlot {
  Mutex mutex;
  std::atomic<bool> peek_done = false;
  std::optional<store::Peeked> peeked;
  std::atomic<std::int64_t> checked_ns = 0;
  std::atomic<const format::ShardLocator*> locator_ready = nullptr;
  std::shared_ptr<const format::ShardLocator> locator;
  std::string pin HR_GUARDED_BY(mutex);
};

struct Dataset::Impl {
  Impl(std::unique_ptr<store::ObjectStore> opened, const store::StoreDeps& deps)
      : store(std::move(opened)), executor(deps.executor) {}

  std::string url;
  std::unique_ptr<store::ObjectStore> store;
  exec::Executor& executor;
  Duration timeout = std::chrono::seconds(60);
  std::shared_ptr<format::Reader> reader;
  std::string identity;
  std::optional<SampleSet> all;
  std::uint64_t stored_bytes = 0;
  std::vector<ShardSlot> slots;

  Status adopt(std::shared_ptr<format::Reader> loaded);
  store::Blocking blocking() { return {executor, timeout}; }
  Status check_size(std::uint32_t shard, std::uint64_t bytes) const;
  Status recheck(std::uint32_t shard);
  Result<std::optional<ByteView>> peek_first(std::uint32_t shard);
};

Status Dataset::Impl::adopt(std::shared_ptr<format::Reader> loaded) {
  reader = std::move(loaded);
  std::vector<std::uint64_t> sizes;
  std::uint64_t samples = 0;
  for (const format::ShardInfo& shard : reader->shards()) {
    const auto total = checked_add(samples, shard.samples);
    const auto bytes = checked_add(stored_bytes, shard.bytes);
    if (!total || !bytes || *total > order::kSamplesMax) {
      return corrupt(url + ": the index counts more samples or bytes than any data set has, at " +
                     shard.name);
    }
    samples = *total;
    stored_bytes = *bytes;
    sizes.push_back(shard.samples);
  }
  slots = std::vector<ShardSlot>(sizes.size());
  all = SampleSet::all(std::move(sizes));
  identity = identity_of(*reader);
  return Status::ok();
}

Status Dataset::Impl::check_size(std::uint32_t shard, std::uint64_t bytes) const {
  const format::ShardInfo& info = reader->shards()[shard];
  if (bytes == info.bytes) return Status::ok();
  return corrupt(store->describe(info.name) + " has " + std::to_string(bytes) +
                 " bytes where the index says " + std::to_string(info.bytes) +
                 ": truncated or replaced since it was indexed; fetch it again or index anew");
}

Dataset::Dataset(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Dataset::~Dataset() { close(); }

Result<std::shared_ptr<Dataset>> Dataset::open(const OpenOptions& options,
                                               const store::StoreDeps& deps) {
  const std::string url = join_url(options.url, options.split);
  HR_ASSIGN(auto opened, store::open_store(url, options.store, deps));
  auto impl = std::make_unique<Impl>(std::move(opened), deps);
  impl->url = url;
  impl->timeout = options.store.request_timeout;
  HR_ASSIGN(auto reader,
            load_reader(*impl->store, impl->blocking(), url, options.index, options.store, deps));
  HR_TRY(impl->adopt(std::move(reader)));
  return std::shared_ptr<Dataset>(new Dataset(std::move(impl)));
}

Result<std::shared_ptr<Dataset>> Dataset::open(std::unique_ptr<store::ObjectStore> opened,
                                               const store::StoreDeps& deps) {
  auto impl = std::make_unique<Impl>(std::move(opened), deps);
  impl->url = impl->store->describe("");
  HR_ASSIGN(auto reader, load_reader(*impl->store, impl->blocking(), impl->url, std::nullopt,
                                     store::StoreOptions(), deps));
  HR_TRY(impl->adopt(std::move(reader)));
  return std::shared_ptr<Dataset>(new Dataset(std::move(impl)));
}

const std::string& Dataset::url() const { return impl_->url; }
const format::Reader& Dataset::reader() const { return *impl_->reader; }
store::ObjectStore& Dataset::store() const { return *impl_->store; }
std::uint64_t Dataset::samples() const { return impl_->all->size(); }
std::uint64_t Dataset::stored_bytes() const { return impl_->stored_bytes; }
const SampleSet& Dataset::all() const { return *impl_->all; }
const std::string& Dataset::identity() const { return impl_->identity; }

store::ObjectRef Dataset::object(std::uint32_t shard) const {
  const format::ShardInfo& info = reader().shards()[shard];
  MutexLock lock(impl_->slots[shard].mutex);
  return {info.name, impl_->slots[shard].pin, info.bytes};
}

void Dataset::remember_pin(std::uint32_t shard, const std::string& pin) {
  MutexLock lock(impl_->slots[shard].mutex);
  if (impl_->slots[shard].pin.empty()) impl_->slots[shard].pin = pin;
}

std::string Dataset::describe(std::uint32_t shard, std::uint64_t sample) const {
  std::uint64_t ordinal = sample;
  for (std::uint32_t s = 0; s < shard; ++s) ordinal += reader().shards()[s].samples;
  return impl_->store->describe(reader().shards()[shard].name) + " sample " +
         std::to_string(sample) + " (number " + std::to_string(ordinal) + " of the data set)";
}

Status Dataset::Impl::recheck(std::uint32_t shard) {
  ShardSlot& slot = slots[shard];
  const std::int64_t now = executor.clock().now().time_since_epoch().count();
  std::int64_t checked = slot.checked_ns.load(std::memory_order_relaxed);
  if (now - checked < kRecheckInterval.count()) return Status::ok();
  if (!slot.checked_ns.compare_exchange_strong(checked, now, std::memory_order_relaxed)) {
    return Status::ok();
  }
  const format::ShardInfo& info = reader->shards()[shard];
  HR_ASSIGN(const auto again, store->peek({info.name, {}, std::nullopt}));
  const Status status = again ? check_size(shard, again->bytes.size())
                              : unavailable(store->describe(info.name) + " is not mapped any more");
  if (!status.is_ok()) slot.checked_ns.store(0, std::memory_order_relaxed);
  return status;
}

Result<std::optional<ByteView>> Dataset::Impl::peek_first(std::uint32_t shard) {
  ShardSlot& slot = slots[shard];
  const format::ShardInfo& info = reader->shards()[shard];
  HR_ASSIGN(auto peeked, store->peek({info.name, {}, std::nullopt}));
  if (peeked) HR_TRY(check_size(shard, peeked->bytes.size()));
  MutexLock lock(slot.mutex);
  if (!slot.peek_done.load(std::memory_order_relaxed)) {
    slot.peeked = std::move(peeked);
    slot.checked_ns.store(executor.clock().now().time_since_epoch().count());
    slot.peek_done.store(true, std::memory_order_release);
  }
  return slot.peeked ? std::optional<ByteView>(slot.peeked->bytes) : std::nullopt;
}

Result<std::optional<ByteView>> Dataset::peek_shard(std::uint32_t shard) {
  ShardSlot& slot = impl_->slots[shard];
  if (!slot.peek_done.load(std::memory_order_acquire)) return impl_->peek_first(shard);
  if (!slot.peeked) return std::optional<ByteView>();
  HR_TRY(impl_->recheck(shard));
  return std::optional<ByteView>(slot.peeked->bytes);
}

Result<const format::ShardLocator*> Dataset::locator(std::uint32_t shard) {
  ShardSlot& slot = impl_->slots[shard];
  if (const auto* ready = slot.locator_ready.load(std::memory_order_acquire)) return ready;
  const auto extent = reader().locator_extent(shard);
  if (!extent) return adopt_locator(shard, {});
  HR_ASSIGN(const auto whole, peek_shard(shard));
  if (!whole) return static_cast<const format::ShardLocator*>(nullptr);
  if (extent->object != shard || extent->range.end() > whole->size()) {
    return corrupt(describe(shard, 0) + ": the shard ends before its table of offsets does");
  }
  return adopt_locator(shard, whole->subspan(extent->range.offset, extent->range.length));
}

Result<const format::ShardLocator*> Dataset::adopt_locator(std::uint32_t shard, ByteView bytes) {
  auto made = reader().make_locator(shard, bytes);
  if (!made.is_ok()) {
    return made.status().with_context(impl_->store->describe(reader().shards()[shard].name));
  }
  ShardSlot& slot = impl_->slots[shard];
  MutexLock lock(slot.mutex);
  if (!slot.locator) {
    slot.locator = std::move(made).value();
    slot.locator_ready.store(slot.locator.get(), std::memory_order_release);
  }
  return static_cast<const format::ShardLocator*>(slot.locator.get());
}

Result<LoadedSample> Dataset::read(std::uint64_t ordinal) {
  if (ordinal >= samples()) {
    return invalid_argument("sample " + std::to_string(ordinal) + " of a data set of " +
                            std::to_string(samples()));
  }
  const SampleRef ref = impl_->all->at(ordinal);
  HR_ASSIGN(const format::ShardLocator* where, locator(ref.shard));
  if (!where) {
    const auto extent = reader().locator_extent(ref.shard);
    HR_ASSIGN(const std::string table, store::read_range(*impl_->store, impl_->blocking(),
                                                         object(extent->object), extent->range));
    HR_ASSIGN(where, adopt_locator(ref.shard, as_bytes(table)));
  }
  format::FetchUnit unit;
  if (Status status = where->locate(ref.sample, unit); !status.is_ok()) {
    return status.with_context(describe(ref.shard, ref.sample));
  }
  if (!unit.codecs.empty()) {
    return unimplemented(describe(ref.shard, ref.sample) + ": compressed units are not read yet");
  }
  LoadedSample out;
  const auto append = [&out](ByteView bytes) {
    out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
  };
  for (const format::Extent& extent : unit.extents) {
    HR_ASSIGN(const auto whole, peek_shard(extent.object));
    if (whole) {
      append(whole->subspan(extent.range.offset, extent.range.length));
      continue;
    }
    HR_ASSIGN(const std::string part, store::read_range(*impl_->store, impl_->blocking(),
                                                        object(extent.object), extent.range));
    append(as_bytes(part));
  }
  out.values.resize(schema().fields.size());
  Status status = reader().view(out.bytes, ref.sample - unit.first_sample, out.values);
  if (!status.is_ok()) return status.with_context(describe(ref.shard, ref.sample));
  return out;
}

void Dataset::close() { impl_->store->close(); }

}  // namespace headrace::loader
