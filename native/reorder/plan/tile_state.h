// The panels of a tile in one guard state: what its rows and columns are where guards cut them, where holes
// and gaps lie, and which leaf moves what is left. Built when a plan is made, or once in a run.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "layout/join.h"
#include "reorder/plan/panel.h"
#include "reorder/plan/tiling.h"

namespace tilework {

// Where the loops around a tile are: what they add to each guard variable and lookup, and which blocks of its
// rows and columns the tile has.
struct TilePosition {
  std::array<int64_t, kMaxPlannedAxes> index{};
  std::array<int64_t, kMaxPlannedAxes> lookup_index{};
  int64_t row_block = 0;
  int64_t column_block = 0;
};

// What all states of a tile share.
struct TileContext {
  // Elements of 4, 8, 16, 32, 64 or 128 bits.
  TileContext(const LoopNest& nest, const Tiling& tiling, int element_bits, const Leaves& leaves);

  const LoopNest& nest;
  const Tiling& tiling;
  // Offsets count bytes, or, of 4-bit elements, half bytes.
  int64_t element_bytes;
  bool has_nibbles;
  const Leaves& leaves;
  // Sum that the loops of the tile add to each variable at most.
  std::vector<int64_t> reach;
  // Lookups that loops of the tile advance.
  std::vector<bool> looks_up;
};

// A row or a column of a tile, in bytes from the start of the tile.
struct Entry {
  int64_t source = 0;
  int64_t destination = 0;
  bool has_source = true;
};

// Rows or columns of a tile, whatever its guards say.
struct EdgeList {
  std::vector<Entry> entries;
  // What each adds to each guard variable, and to each lookup.
  std::vector<std::vector<int64_t>> guard;
  std::vector<std::vector<int64_t>> looked_up;
};

struct ZeroRun {
  int64_t destination;
  int64_t bytes;
};

// What the guards leave of the tile, and where its lookups and blocks are.
struct StateKey {
  // Upper bound: a flag for holes, two block counts, and per axis four bounds of a guard and the index of a
  // lookup.
  static constexpr size_t kMost = 3 + 5 * kMaxPlannedAxes;
  std::array<int64_t, kMost> parts;
  size_t count = 0;
  void add(int64_t part) { parts[count++] = part; }
  bool operator==(const StateKey& other) const {
    return count == other.count &&
           std::equal(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count), other.parts.begin());
  }
};

struct TileState {
  StateKey key;
  // They begin at their offsets from the start of the tile.
  std::vector<PanelMove> panels;
  std::vector<ZeroRun> zeros;
  // Places of rows and columns, to which panels point.
  std::vector<std::vector<int64_t>> lists;
  // Rows times columns.
  int64_t units = 0;
  // Bytes from the start of the tile in the destination to its last one.
  int64_t span = 0;
  // Listed columns, which lie anywhere in the span, fill all of it: streaming stores would complete lines of
  // the destination in several steps.
  bool scatters_columns = false;
};

// Iterations of the last loop of a list, of which the tile has block `block`.
int64_t count_of_last(const std::vector<TileLoop>& loops, int64_t block);

// `in_hole`: a lookup around the tile found no source.
StateKey key_of(const TileContext& context, const TilePosition& position, bool in_hole);
TileState build_state(const TileContext& context, const TilePosition& position, bool in_hole);

}  // namespace tilework
