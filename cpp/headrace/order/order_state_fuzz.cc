// Whatever bytes come as a state: an error, or a state that comes back as it was.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headrace/base/check.h"
#include "headrace/order/order_state.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using headrace::order::OrderState;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto state = OrderState::from_json(text);
  if (!state.is_ok()) return 0;
  const auto written = state->to_json();
  HR_CHECK(written.is_ok(), "a state that was read can be written");
  const auto again = OrderState::from_json(*written);
  HR_CHECK(again.is_ok() && *again == *state, "a state comes back as it was");
  HR_CHECK(state->check_matches(*again).is_ok(), "a state matches itself");
  return 0;
}
