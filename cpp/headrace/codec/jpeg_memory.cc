#include "headrace/codec/jpeg_memory.h"

#include <cstdio>
#include <cstring>

#include <jpeglib.h>

#include <jerror.h>

// libjpeg leaves these two to the memory manager. Arrays are always whole in memory here, so that
// access is an index.
struct jvirt_sarray_control {
  JSAMPARRAY rows;
  JDIMENSION row_count;
  JDIMENSION row_samples;
  boolean pre_zero;
  jvirt_sarray_ptr next;
};

struct jvirt_barray_control {
  JBLOCKARRAY rows;
  JDIMENSION row_count;
  JDIMENSION row_blocks;
  boolean pre_zero;
  jvirt_barray_ptr next;
};

namespace headrace::codec {

struct JpegMemory::Impl {
  jpeg_memory_mgr pub{};
  Scratch* scratch = nullptr;
  jvirt_sarray_ptr samples = nullptr;
  jvirt_barray_ptr blocks = nullptr;
};

namespace {

// libjpeg-turbo's vector code reads and writes rows in steps of up to 64 bytes.
constexpr std::size_t kRowStep = 64;

JpegMemory::Impl& impl_of(j_common_ptr cinfo) {
  return *reinterpret_cast<JpegMemory::Impl*>(cinfo->mem);  // pub is its first member
}

// Never returns null: error_exit jumps.
void* take(j_common_ptr cinfo, std::size_t bytes) {
  void* const memory = impl_of(cinfo).scratch->allocate(bytes);
  if (memory == nullptr) ERREXIT1(cinfo, JERR_OUT_OF_MEMORY, 0);
  return memory;
}

void* alloc(j_common_ptr cinfo, int, std::size_t bytes) { return take(cinfo, bytes); }

// JDIMENSION has 32 bits and a row at most 2^16 * 128 bytes, so 64-bit products are safe.
template <typename Row>
Row* alloc_rows(j_common_ptr cinfo, std::size_t row_bytes, JDIMENSION count) {
  const std::size_t stride = (row_bytes + kRowStep - 1) / kRowStep * kRowStep;
  Row* const rows = static_cast<Row*>(take(cinfo, count * sizeof(Row)));
  std::byte* const data = static_cast<std::byte*>(take(cinfo, stride * count));
  for (JDIMENSION i = 0; i < count; ++i) rows[i] = reinterpret_cast<Row>(data + i * stride);
  return rows;
}

JSAMPARRAY alloc_sarray(j_common_ptr cinfo, int, JDIMENSION row_samples, JDIMENSION count) {
  return alloc_rows<JSAMPROW>(cinfo, row_samples * sizeof(JSAMPLE), count);
}

JBLOCKARRAY alloc_barray(j_common_ptr cinfo, int, JDIMENSION row_blocks, JDIMENSION count) {
  return alloc_rows<JBLOCKROW>(cinfo, row_blocks * sizeof(JBLOCK), count);
}

jvirt_sarray_ptr request_sarray(j_common_ptr cinfo, int, boolean pre_zero, JDIMENSION row_samples,
                                JDIMENSION count, JDIMENSION) {
  auto* const array = static_cast<jvirt_sarray_ptr>(take(cinfo, sizeof(jvirt_sarray_control)));
  *array = {nullptr, count, row_samples, pre_zero, impl_of(cinfo).samples};
  return impl_of(cinfo).samples = array;
}

jvirt_barray_ptr request_barray(j_common_ptr cinfo, int, boolean pre_zero, JDIMENSION row_blocks,
                                JDIMENSION count, JDIMENSION) {
  auto* const array = static_cast<jvirt_barray_ptr>(take(cinfo, sizeof(jvirt_barray_control)));
  *array = {nullptr, count, row_blocks, pre_zero, impl_of(cinfo).blocks};
  return impl_of(cinfo).blocks = array;
}

void realize(j_common_ptr cinfo) {
  for (jvirt_sarray_ptr a = impl_of(cinfo).samples; a != nullptr; a = a->next) {
    if (a->rows != nullptr) continue;
    a->rows = alloc_sarray(cinfo, JPOOL_IMAGE, a->row_samples, a->row_count);
    if (!a->pre_zero) continue;
    for (JDIMENSION i = 0; i < a->row_count; ++i) std::memset(a->rows[i], 0, a->row_samples);
  }
  for (jvirt_barray_ptr a = impl_of(cinfo).blocks; a != nullptr; a = a->next) {
    if (a->rows != nullptr) continue;
    a->rows = alloc_barray(cinfo, JPOOL_IMAGE, a->row_blocks, a->row_count);
    if (!a->pre_zero) continue;
    for (JDIMENSION i = 0; i < a->row_count; ++i) {
      std::memset(a->rows[i], 0, a->row_blocks * sizeof(JBLOCK));
    }
  }
}

template <typename Array>
auto access(j_common_ptr cinfo, Array* array, JDIMENSION start, JDIMENSION count) {
  if (array->rows == nullptr || start > array->row_count || count > array->row_count - start) {
    ERREXIT(cinfo, JERR_BAD_VIRTUAL_ACCESS);
  }
  return array->rows + start;
}

JSAMPARRAY access_sarray(j_common_ptr cinfo, jvirt_sarray_ptr array, JDIMENSION start,
                         JDIMENSION count, boolean) {
  return access(cinfo, array, start, count);
}

JBLOCKARRAY access_barray(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION start,
                          JDIMENSION count, boolean) {
  return access(cinfo, array, start, count);
}

// The Scratch is reset between images instead.
void free_pool(j_common_ptr, int) {}
void self_destruct(j_common_ptr) {}

}  // namespace

JpegMemory::JpegMemory() : impl_(std::make_unique<Impl>()) {
  jpeg_memory_mgr& m = impl_->pub;
  m.alloc_small = alloc;
  m.alloc_large = alloc;
  m.alloc_sarray = alloc_sarray;
  m.alloc_barray = alloc_barray;
  m.request_virt_sarray = request_sarray;
  m.request_virt_barray = request_barray;
  m.realize_virt_arrays = realize;
  m.access_virt_sarray = access_sarray;
  m.access_virt_barray = access_barray;
  m.free_pool = free_pool;
  m.self_destruct = self_destruct;
  m.max_memory_to_use = 0;
  m.max_alloc_chunk = 1000000000L;  // libjpeg's own value; it bounds a single row
}

JpegMemory::~JpegMemory() = default;

void JpegMemory::start(Scratch& scratch) {
  impl_->scratch = &scratch;
  impl_->samples = nullptr;
  impl_->blocks = nullptr;
}

jpeg_memory_mgr* JpegMemory::manager() { return &impl_->pub; }

}  // namespace headrace::codec
