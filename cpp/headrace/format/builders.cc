#include "headrace/format/mds_writer.h"

namespace headrace::format {

Result<std::unique_ptr<DatasetBuilder>> make_dataset_builder(std::string_view format,
                                                             WriterOptions options) {
  if (format == "mds") return make_mds_builder(std::move(options));
  return invalid_argument("the format '" + std::string(format) + "' is not written; mds is");
}

}  // namespace headrace::format
