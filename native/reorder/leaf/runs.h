// Leaves of panels whose units are runs. Internal to each file, as transpose_places.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "policy/thresholds.h"
#include "reorder/leaf/panel_steps.h"
#include "reorder/leaf/run_chain.h"
#include "reorder/leaf/run_copy.h"
#include "reorder/leaf/run_kernel.h"
#include "reorder/leaf/ways.h"
#include "reorder/plan/panel.h"

namespace tilework {
namespace {

[[maybe_unused]] Way way_of_units(const Panel&) { return Way::kListedUnits; }

// Units of any size, one by one.
template <int64_t kUnit>
void move_units(const Panel& panel) {
  TILEWORK_TAKES(Way::kListedUnits);
  const Panel one = merged(panel);
  const int64_t unit = kUnit == 0 ? one.unit_bytes : kUnit;
  const At row_at{one.row_at, one.row_stride};
  const At column_at{one.column_at, one.column_stride};
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    for (int64_t c = 0; c < one.columns; ++c) {
      if (column_at(c) == kDropped) continue;
      const uint8_t* from = source + c * one.column_step;
      uint8_t* to = destination + column_at(c);
      for (int64_t r = 0; r < one.rows; ++r) {
        const bool is_hole = r >= one.rows - one.zero_rows || row_at(r) == kNoSource;
        if (is_hole) {
          std::memset(to + r * unit, 0, static_cast<size_t>(unit));
        } else {
          std::memcpy(to + r * unit, from + row_at(r), static_cast<size_t>(unit));
        }
      }
    }
  });
}

// Steps cannot continue a unit that something follows.
[[maybe_unused]] Panel merged_runs(const Panel& panel) {
  return panel.rest_bytes > 0 || panel.zero_bytes > 0 ? panel : merged(panel);
}

[[maybe_unused]] bool are_even(const Panel& one) {
  return one.holes == 0 && one.row_at == nullptr && one.column_at == nullptr &&
         one.column_step == one.unit_bytes;
}

// One iteration of the outer steps.
[[maybe_unused]] EvenRuns runs_of(const Panel& one, const uint8_t* source, uint8_t* destination) {
  return {source,         destination,      one.inner.count,       one.unit_bytes,
          one.zero_bytes, one.inner.source, one.inner.destination, one.stores};
}

[[maybe_unused]] Way way_of_runs(const Panel& panel) {
  const Panel one = merged_runs(panel);
  if (!are_even(one)) return Way::kListedUnits;
  if (one.columns > 1) return Way::kColumnChains;
  if (one.rows > 1 || one.rest_bytes > 0) return Way::kChains;
  return RunKernel::way_of(runs_of(one, one.source, one.destination));
}

[[maybe_unused]] void move_runs(const Panel& panel) {
  const Panel one = merged_runs(panel);
  if (!are_even(one)) {
    switch (one.unit_bytes) {
      case 16:
        return move_units<16>(panel);
      case 32:
        return move_units<32>(panel);
      case 64:
        return move_units<64>(panel);
      default:
        return move_units<0>(panel);
    }
  }
  if (one.columns == 1 && one.rows == 1 && one.rest_bytes == 0) {
    // The longer of the two steps is the inner one.
    for (int64_t o = 0; o < one.outer.count; ++o) {
      RunKernel::move(
          runs_of(one, one.source + o * one.outer.source, one.destination + o * one.outer.destination));
    }
    return;
  }
  if (one.columns == 1) {
    TILEWORK_TAKES(Way::kChains);
    for (int64_t o = 0; o < one.outer.count; ++o) {
      EvenRuns runs =
          runs_of(one, one.source + o * one.outer.source, one.destination + o * one.outer.destination);
      RunChain::move(runs, {one.rows, one.row_stride});
      if (one.rest_bytes == 0) continue;
      TILEWORK_WAY("runs: rests of chains");
      runs.source += one.rows * one.row_stride;
      runs.destination += one.rows * one.unit_bytes;
      runs.bytes = one.rest_bytes;
      RunKernel::move(runs);
    }
    return;
  }
  TILEWORK_TAKES(Way::kColumnChains);
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    const Chain chain{one.rows, one.row_stride};
    RunChain::move(
        {source, destination, one.columns, one.unit_bytes, 0, one.unit_bytes, one.column_stride, one.stores},
        chain);
  });
}

}  // namespace
}  // namespace tilework
