// stage: transform= and collate= as an external stage of the engine.
// Thread-safety: submit() is called on workers without the GIL and takes it for the callable alone.
// Ownership: holds a weak reference to the callable, which the Python loader owns: a strong one
// would make cycles that Python's collector cannot see. What the callable makes of a batch stays in
// Python, under a number that the batch carries: it may in turn view the batch's memory.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "array.h"
#include "headrace/loader/batch.h"
#include "headrace/loader/external_stage.h"

namespace headrace::python {

struct BatchHandle {
  KeepAlive keep;
  loader::Batch* batch;

  explicit BatchHandle(std::shared_ptr<loader::Batch> owner) : keep(owner), batch(owner.get()) {}
};

// Whether the calling thread is a worker inside a transform or collate.
bool is_in_stage();

class PythonStage final : public loader::ExternalStage {
 public:
  // `run` is a weakref to run(batch, seed, epochs), which returns (number of the result,
  // [(row, message)] of failed rows, what is wrong with the batch as a whole or "").
  PythonStage(nanobind::object run, std::size_t credits);
  ~PythonStage() override;
  PythonStage(const PythonStage&) = delete;
  PythonStage& operator=(const PythonStage&) = delete;

  std::size_t credits() const override { return credits_; }
  void submit(loader::SampleChunk chunk, loader::StageDone done) override;

 private:
  Result<loader::StageOutput> call(const loader::SampleChunk& chunk);

  nanobind::object run_;
  const std::size_t credits_;
};

}  // namespace headrace::python
