// Assembler: lays the rows of a batch out in one slot and fills it: copies, decodes, never
// allocates.
// Thread-safety: immutable once made; fill() may run on many threads for distinct rows of one
// batch.
// Ownership: borrows the schema's reader and the unit bytes of the rows for the call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/status.h"
#include "headrace/codec/image.h"
#include "headrace/format/field.h"
#include "headrace/loader/batch.h"

namespace headrace::loader {

class Assembler {
 public:
  // `columns` empty delivers every field. Unknown names, and pictures to decode that are no
  // pictures, are InvalidArgument and name what there is.
  static Result<Assembler> make(const format::Schema& schema,
                                const std::vector<std::string>& columns,
                                const std::map<std::string, codec::ImageSpec>& decode,
                                std::uint64_t seed, bool has_mask);

  // Values of one row, one for each field of the schema, in the schema's order.
  using Row = std::span<const format::FieldValue>;

  // Describes the columns of `rows` rows (values row after row) in `batch` and returns the bytes of
  // the slot they take. `bad_row` tells which row a failure is about; none when it is the batch.
  Result<std::uint64_t> layout(std::span<const format::FieldValue> values, std::uint64_t rows,
                               Batch& batch, std::optional<std::uint64_t>& bad_row) const;
  // Puts the columns into `slot`, which has at least the bytes that layout() said, and writes the
  // offsets of ragged ones.
  void bind(std::span<const format::FieldValue> values, Lease slot, Batch& batch) const;
  // Writes row `row`. Safe on many threads for distinct rows.
  Status fill(std::uint64_t row, Row values, std::uint64_t epoch, std::uint64_t ordinal,
              Batch& batch) const;

  std::size_t fields() const { return fields_; }
  bool decodes() const { return decodes_; }

 private:
  struct Column {
    std::string name;
    std::size_t field = 0;
    format::FieldType type;
    std::optional<codec::ImageSpec> image;

    // Fixed bytes of one row, or nullopt for ragged columns.
    std::optional<std::uint64_t> row_bytes() const;
    Result<std::uint64_t> value_bytes(const format::FieldValue& value) const;
  };

  Status layout_column(std::size_t c, std::span<const format::FieldValue> values,
                       std::uint64_t rows, BatchColumn& out, std::uint64_t& bytes,
                       std::optional<std::uint64_t>& bad_row) const;

  std::vector<Column> columns_;
  std::size_t fields_ = 0;
  std::uint64_t seed_ = 0;
  bool has_mask_ = false;
  bool decodes_ = false;
};

}  // namespace headrace::loader
