// load_reader: finds the index of a data set, one round of requests and no listing, and loads it.
// Thread-safety: blocking; call it from any thread that is not a worker of the executor.
// Ownership: the reader owns or shares everything it needs; the store may go.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "headrace/format/reader.h"
#include "headrace/store/blocking.h"
#include "headrace/store/open_store.h"

namespace headrace::loader {

// Tries headrace.index and the indexes of the formats that bring their own, in that order, under
// `store`; or the index at `index` (URL or path), for data whose folder cannot be written. NotFound
// says what was looked for and how to make an index.
Result<std::shared_ptr<format::Reader>> load_reader(store::ObjectStore& store,
                                                    const store::Blocking& how,
                                                    const std::string& url,
                                                    const std::optional<std::string>& index,
                                                    const store::StoreOptions& options,
                                                    const store::StoreDeps& deps);

}  // namespace headrace::loader
