#include "headrace/format/mds_writer.h"
#include "headrace/format/wds_writer.h"

namespace headrace::format {

Result<std::unique_ptr<DatasetBuilder>> make_dataset_builder(std::string_view format,
                                                             WriterOptions options) {
  if (format == "mds") return make_mds_builder(std::move(options));
  if (format == "wds") return make_wds_builder(std::move(options));
  return invalid_argument("the format '" + std::string(format.substr(0, 40)) +
                          "' is not written; mds and wds are");
}

}  // namespace headrace::format
