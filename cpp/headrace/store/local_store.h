// LocalStore: files under one directory. Reads map or pread; writes are temp file, fsync, rename.
// Thread-safety: any thread.
// Ownership: owns its mappings; peeked bytes keep theirs alive.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "headrace/store/object_store.h"
#include "headrace/store/open_store.h"

namespace headrace::store {

// The pin of a file is its size, mtime in nanoseconds and inode.
//
// Names cannot leave the root (check_key), but symbolic links inside it are followed wherever they
// point: data sets are often assembled from links to other volumes, and who may plant links in the
// root may plant bytes there as well.
//
// A mapped file that somebody truncates afterwards raises SIGBUS where its pages are touched. Every
// peek() compares the file with its pin first and answers with an error when it has changed; what
// remains is a truncation between that check and the access. Replacing files by rename, as every
// writer here does, is always safe: the mapping keeps the old file.
class LocalStore final : public ObjectStore {
 public:
  LocalStore(const StoreDeps& deps, std::string root);
  ~LocalStore() override;

  void submit(ReadRequest request) override;
  Result<std::optional<Peeked>> peek(const ObjectRef& object) override;
  std::string describe(std::string_view key) const override;
  void close() override;
  void head(HeadRequest request) override;
  void put(PutRequest request) override;
  void remove(RemoveRequest request) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace headrace::store
