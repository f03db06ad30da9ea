#include "headrace/loader/assembler.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headrace::loader {
namespace {

using format::DType;
using format::FieldKind;
using format::FieldValue;

constexpr std::uint64_t kAlign = 64;
constexpr std::uint64_t kImageChannels = 3;

std::uint64_t align_up(std::uint64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

std::string known_names(const format::Schema& schema) {
  std::string out;
  for (const format::Field& field : schema.fields) {
    if (!out.empty()) out += ", ";
    out += field.name;
  }
  return out;
}

void store_int64(MutableBytes area, std::uint64_t i, std::uint64_t value) {
  store_le(area.data() + i * 8, static_cast<std::int64_t>(value));
}

// Hands out consecutive aligned pieces of the slot.
class Carver {
 public:
  explicit Carver(MutableBytes slot) : slot_(slot) {}
  MutableBytes take(std::uint64_t size) {
    HR_CHECK(at_ + size <= slot_.size(), "the slot is smaller than its layout");
    const MutableBytes out = slot_.subspan(at_, size);
    at_ += align_up(size);
    return out;
  }

 private:
  MutableBytes slot_;
  std::uint64_t at_ = 0;
};

// What layout() knows of a column before it has memory: sizes stand in spans without data.
MutableBytes planned(std::uint64_t size) { return {static_cast<std::byte*>(nullptr), size}; }

}  // namespace

std::optional<std::uint64_t> Assembler::Column::row_bytes() const {
  if (image) {
    return image->crop == codec::Crop::kNone ? std::nullopt : std::optional(image->bytes());
  }
  if (type.kind == FieldKind::kScalar && type.dtype) return dtype_size(*type.dtype);
  if (type.kind == FieldKind::kArray && type.dtype && type.shape) {
    std::uint64_t bytes = dtype_size(*type.dtype);
    for (const std::uint64_t side : *type.shape) bytes *= side;
    return bytes;
  }
  return std::nullopt;
}

Result<std::uint64_t> Assembler::Column::value_bytes(const FieldValue& value) const {
  if (value.is_null) return std::uint64_t{0};
  if (!image) return std::uint64_t{value.bytes.size()};
  HR_ASSIGN(const codec::ImageInfo info, codec::probe_image(value.bytes));
  const std::uint64_t pixels = std::uint64_t{info.width} * info.height;
  if (pixels > image->pixels_max) {
    return exhausted("a picture of " + std::to_string(info.width) + " x " +
                     std::to_string(info.height) + " is above the limit of " +
                     std::to_string(image->pixels_max) + " pixels");
  }
  return pixels * kImageChannels;
}

Result<Assembler> Assembler::make(const format::Schema& schema,
                                  const std::vector<std::string>& columns,
                                  const std::map<std::string, codec::ImageSpec>& decode,
                                  std::uint64_t seed, bool has_mask) {
  Assembler out;
  out.fields_ = schema.fields.size();
  out.seed_ = seed;
  out.has_mask_ = has_mask;
  std::vector<std::string> names = columns;
  if (names.empty()) {
    for (const format::Field& field : schema.fields) names.push_back(field.name);
  }
  for (const std::string& name : names) {
    const auto field = schema.find(name);
    if (!field) {
      return invalid_argument("no field \"" + name + "\"; there are: " + known_names(schema));
    }
    out.columns_.push_back({name, *field, schema.fields[*field].type, std::nullopt});
  }
  for (const auto& [name, spec] : decode) {
    const auto column = std::find_if(out.columns_.begin(), out.columns_.end(),
                                     [&](const Column& c) { return c.name == name; });
    if (column == out.columns_.end()) {
      return invalid_argument("decode: no field \"" + name +
                              "\" is delivered; there are: " + known_names(schema));
    }
    if (column->type.kind != FieldKind::kMedia && column->type.kind != FieldKind::kBytes) {
      return invalid_argument("decode: field \"" + name + "\" is " + column->type.to_string() +
                              ", not a picture");
    }
    if (Status status = spec.validate(); !status.is_ok()) {
      return status.with_context("decode of \"" + name + "\"");
    }
    column->image = spec;
    out.decodes_ = true;
  }
  return out;
}

Status Assembler::layout_column(std::size_t c, std::span<const FieldValue> values,
                                std::uint64_t rows, BatchColumn& out, std::uint64_t& bytes,
                                std::optional<std::uint64_t>& bad_row) const {
  const Column& column = columns_[c];
  out.name = column.name;
  out.kind = column.image ? FieldKind::kArray : column.type.kind;
  out.dtype = column.type.dtype && !column.image ? *column.type.dtype : DType::kU8;
  const bool is_numbers = out.kind == FieldKind::kArray || out.kind == FieldKind::kScalar;
  if (const auto fixed = column.row_bytes()) {
    if (column.image)
      out.shape = {column.image->height, column.image->width, kImageChannels};
    else if (column.type.shape)
      out.shape = *column.type.shape;
    const auto total = checked_mul(*fixed, rows);
    if (!total) return corrupt("field \"" + column.name + "\": a batch of it has no size");
    out.values = planned(*total);
  } else {
    out.is_ragged = true;
    std::uint64_t total = 0;
    bool seen = false;
    out.dimensions = is_numbers ? 1 : 0;
    for (std::uint64_t row = 0; row < rows; ++row) {
      const FieldValue& value = values[row * fields_ + column.field];
      const auto size = column.value_bytes(value);
      const auto sum = size.is_ok() ? checked_add(total, *size) : std::nullopt;
      if (!sum) {
        bad_row = row;
        return size.is_ok() ? corrupt("values without a size") : size.status();
      }
      total = *sum;
      if (value.is_null || !is_numbers) continue;
      const std::uint8_t dimensions = column.image ? 3 : value.dimensions;
      const DType dtype = column.image ? DType::kU8 : value.dtype;
      if (seen && (dimensions != out.dimensions || dtype != out.dtype)) {
        return invalid_argument("field \"" + column.name +
                                "\" has values of different dtypes or dimensions in one batch; "
                                "make them equal when packing, or leave the field out");
      }
      out.dimensions = dimensions;
      out.dtype = dtype;
      seen = true;
    }
    out.values = planned(total);
    out.offsets = planned((rows + 1) * 8);
    bytes += align_up(out.offsets.size());
    if (out.dimensions > 1) out.shapes = planned(rows * out.dimensions * 8);
    bytes += align_up(out.shapes.size());
  }
  if (column.type.nullable) out.valid = planned(rows);
  bytes += align_up(out.values.size()) + align_up(out.valid.size());
  return Status::ok();
}

Result<std::uint64_t> Assembler::layout(std::span<const FieldValue> values, std::uint64_t rows,
                                        Batch& batch, std::optional<std::uint64_t>& bad_row) const {
  batch.rows = rows;
  batch.columns.assign(columns_.size(), BatchColumn());
  batch.index = planned(rows * 8);
  batch.mask = planned(has_mask_ ? rows : 0);
  std::uint64_t bytes = align_up(batch.index.size()) + align_up(batch.mask.size());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    HR_TRY(layout_column(c, values, rows, batch.columns[c], bytes, bad_row));
  }
  return bytes;
}

void Assembler::bind(std::span<const FieldValue> values, Lease slot, Batch& batch) const {
  Carver carver(slot.bytes());
  batch.index = carver.take(batch.index.size());
  batch.mask = carver.take(batch.mask.size());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Column& column = columns_[c];
    BatchColumn& out = batch.columns[c];
    out.values = carver.take(out.values.size());
    out.valid = carver.take(out.valid.size());
    if (!out.is_ragged) continue;
    out.offsets = carver.take(out.offsets.size());
    out.shapes = carver.take(out.shapes.size());
    const std::uint64_t width = dtype_size(out.dtype);
    std::uint64_t at = 0;
    store_int64(out.offsets, 0, 0);
    for (std::uint64_t row = 0; row < batch.rows; ++row) {
      // layout() has seen every value, so asking again cannot fail.
      at += column.value_bytes(values[row * fields_ + column.field]).value() / width;
      store_int64(out.offsets, row + 1, at);
    }
  }
  batch.slot = std::move(slot);
}

Status Assembler::fill(std::uint64_t row, Row values, std::uint64_t epoch, std::uint64_t ordinal,
                       Batch& batch) const {
  thread_local codec::ImageDecoder decoder;
  store_int64(batch.index, row, ordinal);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const Column& column = columns_[c];
    BatchColumn& out = batch.columns[c];
    const FieldValue& value = values[column.field];
    if (!out.valid.empty()) out.valid[row] = std::byte{!value.is_null};
    MutableBytes to;
    if (out.is_ragged) {
      const std::uint64_t width = dtype_size(out.dtype);
      const auto begin = load_le<std::uint64_t>(out.offsets.data() + row * 8) * width;
      const auto end = load_le<std::uint64_t>(out.offsets.data() + row * 8 + 8) * width;
      to = out.values.subspan(begin, end - begin);
    } else {
      const std::uint64_t size = *column.row_bytes();
      to = out.values.subspan(row * size, size);
    }
    for (std::uint8_t d = 0; !out.shapes.empty() && d < out.dimensions; ++d) {
      store_int64(out.shapes, row * out.dimensions + d, value.is_null ? 0 : value.shape[d]);
    }
    if (value.is_null) {
      std::memset(to.data(), 0, to.size());
    } else if (!column.image) {
      HR_CHECK(value.bytes.size() == to.size(), "a value of another size than its layout");
      if (!to.empty()) std::memcpy(to.data(), value.bytes.data(), to.size());
    } else {
      if (!out.shapes.empty()) {
        HR_ASSIGN(const codec::ImageInfo info, codec::probe_image(value.bytes));
        store_int64(out.shapes, row * 3, info.height);
        store_int64(out.shapes, row * 3 + 1, info.width);
        store_int64(out.shapes, row * 3 + 2, kImageChannels);
      }
      const Status status = decoder.decode(value.bytes, *column.image, {seed_, epoch, ordinal}, to);
      if (!status.is_ok()) return status.with_context("field \"" + column.name + "\"");
    }
  }
  return Status::ok();
}

}  // namespace headrace::loader
