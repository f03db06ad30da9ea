// dlpack: the DLPack 1.1 structures (github.com/dmlc/dlpack, include/dlpack/dlpack.h).
// Thread-safety: plain data.
// Ownership: whoever took a managed tensor out of its capsule owns it and calls `deleter` once.
#pragma once

#include <cstdint>

namespace headrace::python::dlpack {

inline constexpr std::uint32_t kVersionMajor = 1;
inline constexpr std::uint32_t kVersionMinor = 1;

enum DeviceType : std::int32_t { kCpu = 1 };

struct Device {
  DeviceType type;
  std::int32_t id;
};

enum TypeCode : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBool = 6 };

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements
  std::uint64_t byte_offset;
};

// What consumers older than DLPack 1.0 take, from a capsule named "dltensor".
struct ManagedTensor {
  Tensor tensor;
  void* manager;
  void (*deleter)(ManagedTensor*);
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

// From a capsule named "dltensor_versioned".
struct ManagedTensorVersioned {
  Version version;
  void* manager;
  void (*deleter)(ManagedTensorVersioned*);
  std::uint64_t flags;  // bit 0: read-only, bit 1: a copy
  Tensor tensor;
};

}  // namespace headrace::python::dlpack
