// ExternalStage: work on samples that the core cannot do itself (a Python transform, a tokenizer).
// Thread-safety: submit() is called from several workers at once; at most `credits()` chunks are
// out.
// Ownership: a chunk is lent until `done` is called; the result is owned by the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/base/status.h"
#include "headrace/loader/batch.h"

namespace headrace::loader {

// The rows of one batch, decoded. Random choices of a row are keyed by (seed, epoch, sample), with
// `epochs` [rows] and Batch::index, so they do not depend on ranks, threads or resumption.
struct SampleChunk {
  std::shared_ptr<const Batch> batch;
  std::uint64_t seed = 0;
  std::vector<std::uint64_t> epochs;
};

struct StageOutput {
  std::shared_ptr<void> value;
  // Rows that failed, under the loader's bad-sample policy.
  std::vector<std::pair<std::uint64_t, Status>> failed;
};
using StageDone = std::function<void(Result<StageOutput>)>;

class ExternalStage {
 public:
  virtual ~ExternalStage() = default;
  virtual std::size_t credits() const = 0;
  // Called on an executor thread, which it may use; calls `done` exactly once, from any thread.
  virtual void submit(SampleChunk chunk, StageDone done) = 0;
};

}  // namespace headrace::loader
