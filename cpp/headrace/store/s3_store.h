// S3Store: objects of one S3 bucket below one prefix, read by ranges, written whole or in parts.
// Thread-safety: any thread.
// Ownership: owns its connections and network thread.
#pragma once

#include <memory>
#include <string_view>

#include "headrace/store/open_store.h"

namespace headrace::store {

Result<std::unique_ptr<ObjectStore>> open_s3_store(std::string_view url,
                                                   const StoreOptions& options,
                                                   const StoreDeps& deps);

}  // namespace headrace::store
