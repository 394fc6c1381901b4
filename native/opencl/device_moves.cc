#include "opencl/device_moves.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "error.h"
#include "layout/loop_nest.h"
#include "reorder/cast/fused_cast.h"

namespace tilework::cl {
namespace {

// Devices load and store up to four 32-bit words at a time.
constexpr int kMaxWordBits = 128;

// Elements that both sides of a nest keep together, a power of two; 1 if none.
int64_t common_unit(const LoopNest& nest, int64_t max_unit) {
  const Node& inner = nest.nodes.back();
  const bool is_run = inner.source_stride == 1 && inner.destination_stride == 1 && inner.variable == kNone &&
                      inner.lookup == kNone;
  if (nest.all_zero || !is_run || !nest.lookups.empty()) return 1;
  int64_t divisor =
      std::gcd(std::gcd(inner.count, max_unit), std::gcd(nest.source_base, nest.destination_base));
  for (size_t i = 0; i + 1 < nest.nodes.size(); ++i) {
    const Node& node = nest.nodes[i];
    divisor = std::gcd(divisor, std::gcd(std::abs(node.source_stride), node.destination_stride));
  }
  return divisor;
}

// The nest over units of so many elements, which its innermost loop has.
LoopNest over_units(const LoopNest& nest, int64_t elements) {
  LoopNest units = nest;
  units.source_base /= elements;
  units.destination_base /= elements;
  units.nodes.back().count = 1;
  for (Node& node : units.nodes) {
    node.source_stride /= elements;
    node.destination_stride /= elements;
  }
  finish_nest(units);
  return units;
}

LoopNest widened(LoopNest nest, int64_t unit) {
  Node& inner = nest.nodes.back();
  Node within = inner;
  within.count = unit;
  inner.count /= unit;
  inner.source_stride = inner.destination_stride = unit;
  nest.nodes.push_back(std::move(within));
  return over_units(nest, unit);
}

void widen(DeviceMoves& moves, int64_t multiple) {
  int64_t unit = std::min<int64_t>(kMaxWordBits, multiple * 8) / moves.source_bits;
  unit = std::gcd(unit, std::gcd(moves.source_elements, moves.destination_elements));
  for (const LoopNest& nest : moves.nests) unit = std::min(unit, common_unit(nest, unit));
  if (unit <= 1 || unit * moves.source_bits < 8) return;
  for (LoopNest& nest : moves.nests) nest = widened(std::move(nest), unit);
  moves.source_bits = moves.destination_bits = static_cast<int>(unit * moves.source_bits);
  moves.source_elements /= unit;
  moves.destination_elements /= unit;
}

}  // namespace

DeviceMoves moves_of(const ReorderPlan& plan, int64_t multiple) {
  const FusedCast* cast = plan.cast();
  const ReorderPlan& moves = cast == nullptr ? plan : cast->moves();
  DeviceMoves result{moves.nests(),           moves.element_bits(),         moves.element_bits(),
                     moves.source_elements(), moves.destination_elements(), {}};
  for (const int bits : {result.source_bits, cast == nullptr ? 8 : info_of(cast->cast().to()).bits}) {
    if (bits == 6) {
      throw Error(ErrorCode::kUnsupported,
                  "Elements of 6 bits are not available on devices; convert on the CPU instead.");
    }
  }
  if (cast == nullptr) {
    widen(result, multiple);
    return result;
  }
  result.steps = cast->cast().steps();
  result.destination_bits = info_of(cast->cast().to()).bits;
  return result;
}

}  // namespace tilework::cl
