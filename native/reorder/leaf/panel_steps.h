// The steps of a panel, and where its rows and columns are. Internal to each file, as transpose_places.h.
#pragma once

#include <cstdint>

#include "reorder/leaf/tile.h"
#include "reorder/plan/panel.h"

namespace tilework {
namespace {

// Steps that continue the rows or the columns of a panel become a part of it. False where they do not: the
// panel is as before.
bool merge_step(Panel& panel, Steps& step) {
  if (step.count == 1) return true;
  const int64_t unit = panel.unit_bytes;
  if (panel.column_at == nullptr && step.source == panel.columns * panel.column_step &&
      (panel.columns == 1 || step.destination == panel.columns * panel.column_stride)) {
    if (panel.columns == 1) panel.column_stride = step.destination;
    panel.columns *= step.count;
    step = {};
    return true;
  }
  if (panel.row_at == nullptr && panel.zero_rows == 0 && step.destination == panel.rows * unit &&
      (panel.rows == 1 || step.source == panel.rows * panel.row_stride)) {
    if (panel.rows == 1) panel.row_stride = step.source;
    panel.rows *= step.count;
    step = {};
    return true;
  }
  return false;
}

[[maybe_unused]] Panel merged(const Panel& panel) {
  Panel one = panel;
  merge_step(one, one.inner);
  if (merge_step(one, one.outer)) merge_step(one, one.inner);
  return one;
}

// One step of a merged panel.
[[maybe_unused]] Tile tile_of(const Panel& one, const uint8_t* source, uint8_t* destination) {
  return {source,        destination,    one.columns,       one.rows,
          one.zero_rows, one.row_stride, one.column_stride, one.stores};
}

template <class Body>
[[gnu::always_inline]] inline void at_steps(const Panel& panel, Body body) {
  for (int64_t o = 0; o < panel.outer.count; ++o) {
    for (int64_t i = 0; i < panel.inner.count; ++i) {
      body(panel.source + o * panel.outer.source + i * panel.inner.source,
           panel.destination + o * panel.outer.destination + i * panel.inner.destination);
    }
  }
}

// The same, of panels that begin at offsets of the storages.
template <class Body>
[[gnu::always_inline]] inline void at_offsets(const Panel& panel, Body body) {
  for (int64_t o = 0; o < panel.outer.count; ++o) {
    for (int64_t i = 0; i < panel.inner.count; ++i) {
      body(panel.source_offset + o * panel.outer.source + i * panel.inner.source,
           panel.destination_offset + o * panel.outer.destination + i * panel.inner.destination);
    }
  }
}

}  // namespace
}  // namespace tilework
