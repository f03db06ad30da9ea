// dataset: opened data sets as the binding holds them.
// Thread-safety: any thread; blocking calls release the GIL.
// Ownership: a SharedDataset keeps its threads alive, and is left alone in a forked child.
#pragma once

#include <memory>
#include <utility>

#include "headrace/loader/dataset.h"
#include "process.h"

namespace headrace::python {

using SharedDataset = Guarded<std::shared_ptr<loader::Dataset>>;

struct DatasetHandle {
  std::shared_ptr<SharedDataset> shared;

  explicit DatasetHandle(std::shared_ptr<SharedDataset> opened) : shared(std::move(opened)) {}
  DatasetHandle(DatasetHandle&&) = default;
  // Waits for the threads of the data set, so the GIL is released meanwhile.
  ~DatasetHandle();

  // Raises when this process was forked off after opening.
  loader::Dataset& get() const;
  // For the core: shares the data set together with the threads it needs.
  std::shared_ptr<loader::Dataset> share() const;
};

}  // namespace headrace::python
