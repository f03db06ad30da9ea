// A memory manager for libjpeg on top of Scratch: no malloc an image, and a hard limit.
// Thread-safety: none; one thread at a time.
// Ownership: owns the manager libjpeg points to; the memory itself is the Scratch's.
#pragma once

#include <memory>

#include "headrace/codec/scratch.h"

struct jpeg_memory_mgr;

namespace headrace::codec {

class JpegMemory {
 public:
  JpegMemory();
  ~JpegMemory();

  // Forgets the image before; from now on memory comes from `scratch`, which the caller has reset.
  void start(Scratch& scratch);
  jpeg_memory_mgr* manager();

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::codec
