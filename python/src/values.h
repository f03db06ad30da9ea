// values: small conversions between the core and Python that several layers' bindings need.
// Thread-safety: the caller holds the GIL.
// Ownership: results are new objects; nothing is borrowed.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/format/field.h"
#include "headrace/obs/metrics.h"
#include "headrace/order/steps.h"

namespace headrace::python {

// "scalar", "bytes", "str", "json", "array", "list", "media".
const char* kind_name(format::FieldKind kind);

// A number as int or float, text as str, opaque bytes and pictures as bytes, arrays as (bytes,
// dtype, shape), null as None; JSON stays text, because Python parses it best.
nanobind::object to_python(const format::Field& field, const format::FieldValue& value);

// Arguments that name a way to order; ValueError when there is none of that name. In order.cc.
using PositionPair = std::pair<std::uint64_t, std::uint64_t>;
order::EpochEnd epoch_end_of(const std::string& name);
order::Assignment assignment_of(const std::string& name);
order::SkipList skip_list(const std::vector<PositionPair>& skip);

// Raises ValueError when that is no time to wait; `name` is the argument it came from.
Duration seconds_to_duration(double seconds, const char* name);

nanobind::dict counters_dict(const obs::Metrics& metrics);
// name -> {count, sum, max, p50, p99}, in the unit that was recorded.
nanobind::dict histograms_dict(const obs::Metrics& metrics);

}  // namespace headrace::python
