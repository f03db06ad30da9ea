// Batch: what a loader hands over: columns in one leased slot, and the place in the run.
// Thread-safety: a batch is handed from the engine to one consumer, whose it is afterwards.
// Ownership: the slot goes back to the arena when the last reference to the batch is dropped, on
// whichever thread that is; no lock of the engine and no Python is involved.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/base/lease.h"
#include "headrace/format/field.h"

namespace headrace::loader {

// One field of all rows of a batch. Dense columns are one array [rows, shape...]; ragged ones are
// all values end to end with offsets[rows + 1], counted in elements of `dtype`.
struct BatchColumn {
  std::string name;
  format::FieldKind kind = format::FieldKind::kBytes;  // what the values are: text, bytes, numbers
  format::DType dtype = format::DType::kU8;
  bool is_ragged = false;
  std::vector<std::uint64_t> shape;  // of one row; dense only
  MutableBytes values;               // inside the slot, aligned to 64 bytes
  MutableBytes offsets;              // int64 [rows + 1]; ragged only
  MutableBytes shapes;               // int64 [rows, dimensions]; ragged arrays only
  std::uint8_t dimensions = 0;       // of each ragged array
  MutableBytes valid;                // uint8 [rows], 0 where the value is null; nullable only
};

struct Batch {
  std::uint64_t epoch = 0;  // of its first position
  std::uint64_t begin = 0;  // run position at which the step begins
  std::uint64_t next = 0;   // run position after the step: the state once this is consumed
  bool ends_epoch = false;
  std::uint64_t rows = 0;
  double weight = 1;  // of a real row in the mean over all ranks (order::RankShare)
  std::vector<BatchColumn> columns;
  MutableBytes index;  // int64 [rows]: number of each sample in the data set
  MutableBytes mask;   // uint8 [rows], 0 for padding; empty unless epochs end by padding
  std::shared_ptr<void> external;  // what an external stage made of it

  Lease slot;
};

}  // namespace headrace::loader
