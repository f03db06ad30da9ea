// The resume state of a run: one position and the identity of what it is a position in.
// Thread-safety: pure functions and values.
// Ownership: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/status.h"
#include "headrace/order/order_spec.h"
#include "headrace/order/steps.h"

namespace headrace::order {

inline constexpr std::uint64_t kStateVersion = 1;
inline constexpr std::uint64_t kStateBytesMax = std::uint64_t{4} << 20;

struct SourceIdentity {
  std::string name;           // equals OrderSpec::source_name
  std::string identity;       // digest of the data set: 16 .. 128 lower-case hexadecimal digits
  std::uint64_t samples = 0;  // 1 .. kSamplesMax
  friend bool operator==(const SourceIdentity&, const SourceIdentity&) = default;
};

struct OrderState {
  SourceIdentity source;
  OrderSpec order;  // every default resolved
  EpochEnd epoch_end = EpochEnd::kDrop;
  Assignment assignment = Assignment::kLocal;
  std::uint64_t global_batch = 1;
  SkipList skip;
  std::uint64_t next = 0;       // the first run position that is not consumed
  std::string library_version;  // of the Headrace that wrote it

  Status validate() const;
  // One line of ASCII, as Python's json.dumps(sort_keys=True) writes it: equal states, equal bytes.
  Result<std::string> to_json() const;
  // Refuses unknown versions, unknown, missing or repeated keys, wrong types and numbers out of
  // range, each with the name of the field.
  static Result<OrderState> from_json(std::string_view text);

  // Ok when this state can go on as `current`: same data, same order. Otherwise one error that
  // names every difference. What is recorded and not identity (batch, epoch end, assignment, skip
  // list, version, position) may differ.
  Status check_matches(const OrderState& current) const;
  friend bool operator==(const OrderState&, const OrderState&) = default;
};

}  // namespace headrace::order
