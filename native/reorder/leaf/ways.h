// The ways in which leaves move panels: the rows of leaves.def.
#pragma once

#include <cstdint>

#include "policy/thresholds.h"

namespace tilework {

#define TILEWORK_LEAF(id, name, condition, percent) id,
enum class Way : uint8_t {
  kNone,
#include "reorder/leaf/leaves.def"
};
#undef TILEWORK_LEAF

struct WayRow {
  // As explain() and a counting build print it.
  const char* name;
  // When it is taken.
  const char* condition;
  // Its rate in the benchmark, in percent of a copy's; 0 where no case takes it most.
  int percent_of_copy;
};

// Where the rates of leaves.def were measured.
inline constexpr const char* kMeasuredOn =
    "an Intel server CPU (family 6, model 207), AVX2 kernels, one thread, 2026-11-29";

constexpr WayRow row_of(Way way) {
  switch (way) {
#define TILEWORK_LEAF(id, name, condition, percent) \
  case Way::id:                                     \
    return {name, condition, percent};
#include "reorder/leaf/leaves.def"
#undef TILEWORK_LEAF
    case Way::kNone:
      break;
  }
  return {"none", "", 0};
}

// Ways that copy units one by one, which is the slowest there is.
constexpr bool copies_units_alone(Way way) {
  return way == Way::kUnits || way == Way::kListedUnits || way == Way::kNibbleUnits;
}

// Marks where a way is taken, for a counting build.
#define TILEWORK_TAKES(way) TILEWORK_WAY(row_of(way).name)

}  // namespace tilework
