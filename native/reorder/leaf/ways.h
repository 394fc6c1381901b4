// The ways in which leaves move panels: the rows of leaves.def.
#pragma once

#include <cstdint>

#include "policy/thresholds.h"

namespace tilework {

#define TILEWORK_LEAF(id, name, condition) id,
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
};

constexpr WayRow row_of(Way way) {
  switch (way) {
#define TILEWORK_LEAF(id, name, condition) \
  case Way::id:                            \
    return {name, condition};
#include "reorder/leaf/leaves.def"
#undef TILEWORK_LEAF
    case Way::kNone:
      break;
  }
  return {"none", ""};
}

// Marks where a way is taken, for a counting build.
#define TILEWORK_TAKES(way) TILEWORK_WAY(row_of(way).name)

}  // namespace tilework
