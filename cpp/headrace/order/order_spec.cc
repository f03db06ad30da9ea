#include "headrace/order/order_spec.h"

#include <algorithm>
#include <bit>

#include "headrace/base/rng.h"
#include "headrace/base/utf8.h"

namespace headrace::order {
namespace {

constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kWindowBytes = std::uint64_t{2} << 30;

std::string number(std::uint64_t n) { return std::to_string(n); }

Status check_lanes(std::uint64_t lanes) {
  if (lanes >= 1 && lanes <= kLanesMax && std::has_single_bit(lanes)) return Status::ok();
  const std::uint64_t near = std::bit_floor(std::clamp<std::uint64_t>(lanes, 1, kLanesMax));
  return invalid_argument("order lanes must be a power of two from 1 to " + number(kLanesMax) +
                          ", not " + number(lanes) + "; try " + number(near));
}

// How many samples of the mean stored size fit; the quotient is exact, not a rounded mean.
Result<std::uint64_t> in_samples(std::string_view what, Amount amount, std::uint64_t samples,
                                 std::uint64_t stored_bytes) {
  const bool bytes = amount.unit == Amount::Unit::kBytes;
  if (amount.value == 0)
    return invalid_argument("order " + std::string(what) + " must be at least 1 " +
                            (bytes ? "byte" : "sample") + ", not 0");
  if (!bytes) return amount.value;
  const uint128 fit = uint128{amount.value} * samples / stored_bytes;
  return static_cast<std::uint64_t>(std::clamp<uint128>(fit, 1, kSamplesMax));
}

}  // namespace

std::string_view layout_name(Layout layout) { return layout == Layout::kChunk ? "chunk" : "unit"; }

std::optional<Layout> layout_from_name(std::string_view name) {
  for (const Layout layout : {Layout::kChunk, Layout::kUnit})
    if (layout_name(layout) == name) return layout;
  return std::nullopt;
}

Status OrderSpec::validate() const {
  HR_TRY(check_lanes(lanes));
  if (chunk_samples == 0 || chunk_samples > kSamplesMax)
    return invalid_argument("order chunk must be 1 to " + number(kSamplesMax) + " samples, not " +
                            number(chunk_samples));
  if (window_samples > kSamplesMax)
    return invalid_argument("order window must be at most " + number(kSamplesMax) +
                            " samples, not " + number(window_samples));
  if (window_samples < lanes)
    return invalid_argument("order window of " + number(window_samples) +
                            " samples is smaller than the " + number(lanes) +
                            " lanes, each of which needs a share of it; use a larger window or "
                            "fewer lanes");
  if (source_name.size() > kSourceNameBytesMax)
    return invalid_argument("a source name has at most " + number(kSourceNameBytesMax) +
                            " bytes, not " + number(source_name.size()));
  if (!is_utf8(source_name)) return invalid_argument("a source name must be UTF-8");
  if (layout != Layout::kChunk && layout != Layout::kUnit)
    return invalid_argument("order layout must be chunk or unit");
  return Status::ok();
}

Result<OrderSpec> resolve_order(const OrderRequest& request, std::uint64_t samples,
                                std::uint64_t stored_bytes) {
  if (samples == 0) return invalid_argument("a data set without samples has no order");
  if (samples > kSamplesMax)
    return invalid_argument("an order covers at most " + number(kSamplesMax) + " samples, not " +
                            number(samples));
  HR_TRY(check_lanes(request.lanes));
  // Fewer bytes than samples means labels without data or an unknown size: one byte a sample.
  const std::uint64_t bytes = std::max(samples, stored_bytes);

  OrderSpec spec;
  spec.seed = request.seed;
  spec.shuffle = request.shuffle;
  spec.lanes = static_cast<std::uint32_t>(request.lanes);
  spec.layout = request.layout;
  spec.source_name = request.source_name;
  const Amount chunk = request.chunk.value_or(Amount::bytes(kChunkBytes));
  HR_ASSIGN(spec.chunk_samples, in_samples("chunk", chunk, samples, bytes));
  const Amount window = request.window.value_or(Amount::bytes(kWindowBytes));
  HR_ASSIGN(spec.window_samples, in_samples("window", window, samples, bytes));
  if (!request.window && spec.chunk_samples <= kSamplesMax / request.lanes)
    spec.window_samples = std::max(spec.window_samples, request.lanes * spec.chunk_samples);
  HR_TRY(spec.validate());
  return spec;
}

}  // namespace headrace::order
