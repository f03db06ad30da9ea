#include "headrace/loader/open_index.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "headrace/loader/index_reader.h"
#include "headrace/trust/index.h"

namespace headrace::loader {
namespace {

// Bounds what is taken into memory before anything of it is checked.
constexpr std::uint64_t kIndexBytesMax = std::uint64_t{1} << 30;
// Formats say what they need in a round or two; more is a format that goes in circles.
constexpr int kRoundsMax = 8;

Status no_index(const std::string& url, const std::vector<std::string>& tried) {
  const std::size_t slash = url.find_last_of('/');
  const std::string last = slash == std::string::npos ? url : url.substr(slash + 1);
  if (std::find(tried.begin(), tried.end(), last) != tried.end()) {
    return not_found(url + " is an index; open the folder it lies in: " +
                     (slash == std::string::npos ? "." : url.substr(0, slash)));
  }
  if (last.ends_with(".tar") || last.find('{') != std::string::npos) {
    return not_found(url + ": shards are opened through their folder, after headrace index \"" +
                     url + "\" has made its index once");
  }
  std::string names;
  for (const std::string& name : tried) names += (names.empty() ? "" : ", ") + name;
  return not_found(url + ": no index here (looked for " + names +
                   "). If the path is right: WebDataset shards need one once, headrace index \"" +
                   url +
                   "/shard-{000000..000123}.tar\"; folders of pictures, JSONL and CSV are packed "
                   "with headrace pack; a split below it is opened with split=");
}

Result<std::shared_ptr<format::Reader>> load_with(const format::Format& format,
                                                  store::ObjectStore& store,
                                                  const store::Blocking& how,
                                                  format::Fetched fetched) {
  for (int round = 0; round < kRoundsMax; ++round) {
    HR_ASSIGN(format::LoadStep step, format.load_index(fetched));
    if (step.reader) return std::move(step.reader);
    for (const format::Need& need : step.needs) {
      if (need.offset != 0 || need.length != 0) {
        return unimplemented("an index that is read in parts: " + need.object);
      }
      HR_ASSIGN(auto whole, store::read_whole(store, how, need.object, kIndexBytesMax));
      fetched.objects[need.object] = std::make_shared<const std::string>(std::move(whole.bytes));
    }
  }
  return internal_error(std::string(format.name()) + ": the index load does not end");
}

// The index file addressed in place where the store can do that, else read and kept.
Result<std::shared_ptr<format::Reader>> open_own_index(store::ByteSource& source,
                                                       const store::Blocking& how,
                                                       const std::string& key) {
  HR_ASSIGN(auto peeked, source.peek({key, {}, std::nullopt}));
  if (!peeked) {
    HR_ASSIGN(auto whole, store::read_whole(source, how, key, kIndexBytesMax));
    // The tables are read in place, so they must start at a multiple of their width.
    auto words = std::make_shared<std::vector<std::uint64_t>>((whole.bytes.size() + 7) / 8);
    std::memcpy(words->data(), whole.bytes.data(), whole.bytes.size());
    const auto* begin = reinterpret_cast<const std::byte*>(words->data());
    peeked = store::Peeked{{begin, whole.bytes.size()}, words};
  }
  const auto named = [&](const Status& status) {
    return status.with_context(source.describe(key));
  };
  auto index = trust::IndexFile::parse(peeked->owner, peeked->bytes);
  if (!index.is_ok()) return named(index.status());
  auto reader = reader_from_index(index.value());
  if (!reader.is_ok()) return named(reader.status());
  return reader;
}

Result<std::shared_ptr<format::Reader>> open_index_elsewhere(const std::string& index,
                                                             const store::Blocking& how,
                                                             const store::StoreOptions& options,
                                                             const store::StoreDeps& deps) {
  const std::size_t slash = index.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : index.substr(0, slash + 1);
  const std::string key = slash == std::string::npos ? index : index.substr(slash + 1);
  HR_ASSIGN(const auto source, store::open_store(folder, options, deps));
  auto reader = open_own_index(*source, how, key);
  source->close();
  return reader;
}

}  // namespace

Result<std::shared_ptr<format::Reader>> load_reader(store::ObjectStore& store,
                                                    const store::Blocking& how,
                                                    const std::string& url,
                                                    const std::optional<std::string>& index,
                                                    const store::StoreOptions& options,
                                                    const store::StoreDeps& deps) {
  if (index) return open_index_elsewhere(*index, how, options, deps);
  std::vector<std::string> names = {std::string(trust::kIndexName)};
  for (const format::Format* format : format::self_indexed_formats()) {
    names.emplace_back(format->index_name());
  }
  // Ours is tried in place first, which costs nothing where it does not lie in a file.
  const auto own = store.peek({names.front(), {}, std::nullopt});
  if (own.is_ok() && *own) return open_own_index(store, how, names.front());
  auto found = store::read_whole_many(store, how, names, kIndexBytesMax);
  if (found[0].is_ok()) return open_own_index(store, how, names.front());
  // S3 answers 403 for a missing object to whoever may not list, so a refusal of one name only
  // counts when no other name is there.
  Status refused;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!found[i].is_ok()) {
      const Status status = found[i].status();
      if (status.code() != Code::kNotFound && status.code() != Code::kDenied) return status;
      if (status.code() == Code::kDenied && refused.is_ok()) refused = status;
      continue;
    }
    const format::Format& format = *format::self_indexed_formats()[i - 1];
    format::Fetched fetched;
    fetched.objects[names[i]] =
        std::make_shared<const std::string>(std::move(found[i].value().bytes));
    auto reader = load_with(format, store, how, std::move(fetched));
    if (reader.is_ok()) return reader;
    return reader.status().with_context(store.describe(names[i]));
  }
  return refused.is_ok() ? no_index(url, names) : refused;
}

}  // namespace headrace::loader
