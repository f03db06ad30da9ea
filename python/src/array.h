// array: memory of the core as Python sees it: the buffer protocol and DLPack, without a copy.
// Thread-safety: as Python objects; deleters that DLPack consumers get run on any thread.
// Ownership: an Array shares what owns its memory. Dropping it takes no lock of the interpreter and
// works after the interpreter has ended.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/base/bytes.h"
#include "headrace/format/field.h"
#include "process.h"

namespace headrace::python {

// Shares an owner, and forgets it in a forked child, where the locks behind it may never open.
class KeepAlive {
 public:
  template <typename T>
  KeepAlive(std::shared_ptr<T> owner)  // NOLINT(*-explicit-*): any owner will do
      : owner_(std::move(owner)), generation_(fork_generation()) {}
  KeepAlive(const KeepAlive&) = default;
  KeepAlive& operator=(const KeepAlive&) = delete;
  ~KeepAlive() {
    if (generation_ != fork_generation()) new std::shared_ptr<const void>(std::move(owner_));
  }

 private:
  std::shared_ptr<const void> owner_;
  std::uint64_t generation_;
};

// What one element is: the type code of DLPack, bits, and the letter of Python's struct module.
struct ElementType {
  std::uint8_t code;
  std::uint8_t bits;
  char letter;
};
ElementType element_type(format::DType dtype);
inline constexpr ElementType kBoolElements{6, 8, '?'};

// Writable numbers in C order.
struct Array {
  KeepAlive owner;
  void* data;
  ElementType type;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides_bytes;

  Array(KeepAlive keep, MutableBytes bytes, ElementType element,
        std::vector<std::int64_t> dimensions);
  std::int64_t item_bytes() const { return type.bits / 8; }
  std::int64_t size_bytes() const;
};

void bind_array(nanobind::module_& m);

}  // namespace headrace::python
