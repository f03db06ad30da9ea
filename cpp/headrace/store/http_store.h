// HttpStore: objects below one http(s) URL, read by ranges; nothing can be written.
// Thread-safety: any thread.
// Ownership: owns its connections and network thread.
#pragma once

#include <memory>
#include <string_view>

#include "headrace/store/open_store.h"

namespace headrace::store {

// A query in `url` (a signed URL, say) goes with every request and into no message. Redirects are
// followed within the same host, at most five.
Result<std::unique_ptr<ObjectStore>> open_http_store(std::string_view url,
                                                     const StoreOptions& options,
                                                     const StoreDeps& deps);

}  // namespace headrace::store
