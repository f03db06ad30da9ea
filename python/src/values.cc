#include "values.h"

#include <cmath>
#include <cstring>

#include "errors.h"

namespace nb = nanobind;

namespace headrace::python {
namespace {

using format::DType;
using format::FieldKind;

// The longest wait that may be asked for, in seconds: ten years. Far more would overflow a clock.
constexpr double kSecondsMax = 3.2e8;

template <typename T>
T number(const format::FieldValue& value) {
  T out;
  if (value.bytes.size() != sizeof out) {
    raise(corrupt("a number of " + std::to_string(value.bytes.size()) + " bytes, wanted " +
                  std::to_string(sizeof out)));
  }
  std::memcpy(&out, value.bytes.data(), sizeof out);
  return out;
}

// IEEE 754 binary16: Python's own conversion is not part of its interface before 3.11.
double half(const format::FieldValue& value) {
  const auto bits = number<std::uint16_t>(value);
  const int exponent = (bits >> 10) & 0x1F;
  const int fraction = bits & 0x3FF;
  double out = 0;
  if (exponent == 0x1F) {
    out = fraction ? std::nan("") : HUGE_VAL;
  } else if (exponent == 0) {
    out = std::ldexp(fraction, -24);
  } else {
    out = std::ldexp(fraction + 0x400, exponent - 25);
  }
  return bits & 0x8000 ? -out : out;
}

nb::object scalar(const format::FieldValue& value) {
  switch (value.dtype) {
    case DType::kU8: return nb::int_(number<std::uint8_t>(value));
    case DType::kI8: return nb::int_(number<std::int8_t>(value));
    case DType::kU16: return nb::int_(number<std::uint16_t>(value));
    case DType::kI16: return nb::int_(number<std::int16_t>(value));
    case DType::kF16: return nb::float_(half(value));
    case DType::kU32: return nb::int_(number<std::uint32_t>(value));
    case DType::kI32: return nb::int_(number<std::int32_t>(value));
    case DType::kF32: return nb::float_(static_cast<double>(number<float>(value)));
    case DType::kU64: return nb::int_(number<std::uint64_t>(value));
    case DType::kI64: return nb::int_(number<std::int64_t>(value));
    case DType::kF64: return nb::float_(number<double>(value));
  }
  return nb::none();
}

nb::bytes raw(const format::FieldValue& value) {
  return nb::bytes(value.bytes.data(), value.bytes.size());
}

nb::object text(const format::FieldValue& value, const std::string& name) {
  const std::string_view view = as_text(value.bytes);
  PyObject* out = PyUnicode_DecodeUTF8(view.data(), static_cast<Py_ssize_t>(view.size()), nullptr);
  if (!out) {
    PyErr_Clear();
    raise(corrupt("field \"" + name + "\" is text, but not UTF-8"));
  }
  return nb::steal(out);
}

nb::object array(const format::FieldValue& value) {
  nb::list shape;
  for (std::size_t d = 0; d < value.dimensions; ++d) shape.append(value.shape[d]);
  const std::string_view dtype = format::dtype_name(value.dtype);
  return nb::make_tuple(raw(value), nb::str(dtype.data(), dtype.size()), nb::tuple(shape));
}

}  // namespace

const char* kind_name(format::FieldKind kind) {
  switch (kind) {
    case FieldKind::kScalar: return "scalar";
    case FieldKind::kBytes: return "bytes";
    case FieldKind::kStr: return "str";
    case FieldKind::kJson: return "json";
    case FieldKind::kArray: return "array";
    case FieldKind::kList: return "list";
    case FieldKind::kMedia: return "media";
  }
  return "bytes";
}

nb::object to_python(const format::Field& field, const format::FieldValue& value) {
  if (value.is_null) return nb::none();
  switch (field.type.kind) {
    case FieldKind::kScalar: return scalar(value);
    case FieldKind::kStr:
    case FieldKind::kJson: return text(value, field.name);
    case FieldKind::kArray: return array(value);
    case FieldKind::kBytes:
    case FieldKind::kMedia: return raw(value);
    case FieldKind::kList: break;
  }
  raise(unimplemented("field \"" + field.name + "\" is " + field.type.to_string() +
                      ", which Python cannot show in this version"));
}

Duration seconds_to_duration(double seconds, const char* name) {
  if (!std::isfinite(seconds) || seconds <= 0 || seconds > kSecondsMax) {
    raise(invalid_argument(std::string(name) + " must be a number of seconds above 0"));
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

nb::dict counters_dict(const obs::Metrics& metrics) {
  nb::dict out;
  for (const auto& [name, value] : metrics.counters()) out[nb::str(name.c_str())] = value;
  return out;
}

nb::dict histograms_dict(const obs::Metrics& metrics) {
  nb::dict out;
  for (const auto& [name, snapshot] : metrics.histograms()) {
    nb::dict entry;
    entry["count"] = snapshot.count;
    entry["sum"] = snapshot.sum;
    entry["max"] = snapshot.max;
    entry["p50"] = snapshot.quantile(0.5);
    entry["p99"] = snapshot.quantile(0.99);
    out[nb::str(name.c_str())] = entry;
  }
  return out;
}

}  // namespace headrace::python
