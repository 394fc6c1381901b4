// A panel: rows that follow each other in the destination times columns that follow each other in the source.
// What a leaf moves. Offsets and strides are in bytes; of 4-bit elements, in half bytes.
#pragma once

#include <cstdint>

#include "memory/streaming_copy.h"
#include "reorder/leaf/ways.h"

namespace tilework {

// Source offset of a row that has no source: it becomes zeros.
inline constexpr int64_t kNoSource = INT64_MIN;
// Destination offset of a column in a gap of the source, which is dropped.
inline constexpr int64_t kDropped = INT64_MIN;

// `count` equal steps.
struct Steps {
  int64_t count = 1;
  int64_t source = 0;
  int64_t destination = 0;
};

// Unit (r, c) moves from source + row_at[r] + c * column_step to destination + r * unit + column_at[c]. Where
// a list is null, its offsets are multiples of a stride.
struct Panel {
  const uint8_t* source = nullptr;
  uint8_t* destination = nullptr;
  int64_t unit_bytes;
  int64_t column_step;
  int64_t rows;
  // Of these, the last ones without a source.
  int64_t zero_rows = 0;
  // Listed rows without a source, wherever they are.
  int64_t holes = 0;
  // Columns that are dropped.
  int64_t dropped = 0;
  // Bytes of a shorter unit behind the rows of a panel of one column; zeros behind it, in bytes.
  int64_t rest_bytes = 0;
  int64_t zero_bytes = 0;
  int64_t columns;
  const int64_t* row_at = nullptr;
  int64_t row_stride = 0;
  const int64_t* column_at = nullptr;
  int64_t column_stride = 0;
  // The panel comes again at each step.
  Steps inner = {};
  Steps outer = {};
  Stores stores = Stores::kCached;
  // Where the panel begins. If elements have 4 bits, and so no address of their own, or change their type,
  // `source` is the storage, and `destination` the range that is written.
  int64_t source_offset = 0;
  int64_t destination_offset = 0;
  // Of `destination` itself in the whole destination, for conversions that depend on an element's position.
  int64_t origin = 0;
};

struct Leaf {
  // Moves all steps of a panel.
  void (*run)(const Panel&);
  // How: by the same decisions, for the places where the panel begins.
  Way (*way_of)(const Panel&);
};

// A panel and what moves it.
struct PanelMove {
  Panel panel;
  Leaf leaf;
};

// The leaves of one instruction set.
struct Leaves {
  // By the extents, distances and lists of a panel, wherever it begins.
  Leaf of(const Panel& panel, bool has_nibbles) const {
    return has_nibbles ? of_nibbles(panel) : of_bytes(panel);
  }
  // Of panels of one column, whose units may have any size.
  Leaf of_runs(bool has_nibbles) const { return has_nibbles ? of_nibble_runs() : of_byte_runs(); }

  Leaf (*of_bytes)(const Panel& panel);
  Leaf (*of_byte_runs)();
  Leaf (*of_nibbles)(const Panel& panel);
  Leaf (*of_nibble_runs)();
  // Copies whole cache lines with streaming stores; null if the instruction set has none.
  void (*stream_lines)(uint8_t* destination, const uint8_t* source, int64_t bytes) = nullptr;
};

}  // namespace tilework
