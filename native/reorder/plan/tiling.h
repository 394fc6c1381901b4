// Chooses the tile of a loop nest: which loops form its rows, which its columns, and which iterate outside.
//
// Rows are elements that follow each other in the destination, columns are elements that follow each other in
// the source. Their common prefix is the unit, which both sides keep contiguous. A chain of loops continues
// through a loop that the other list owns, so a tile is contiguous on both sides even where a single loop is
// short. A pure function of the nest: nothing here knows memory, threads or an instruction set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/join.h"
#include "policy/thresholds.h"

namespace tilework {

// Bytes of an element of 8 or more bits, half bytes of one of 4: what strides and offsets count.
inline int64_t offsets_of_element(int element_bits) { return element_bits < 8 ? 1 : element_bits / 8; }

// One loop of a tile or around it. Strides are in bytes; of 4-bit elements, in half bytes.
struct TileLoop {
  int64_t count = 1;
  int64_t source_stride = 0;
  int64_t destination_stride = 0;
  // Guard variable of the nest and what one iteration adds to it; kNone for an unguarded loop.
  int variable = kNone;
  int64_t weight = 0;
  // Lookup of the nest and what one iteration adds to its index; kNone where the source has a stride.
  int lookup = kNone;
  int64_t lookup_stride = 0;
  // Set where `count` is a block of a longer loop, which continues outside: iterations of the whole loop.
  int64_t whole_count = 0;
};

struct Tiling {
  // Bytes that both sides keep together: a multiple of the element size.
  int64_t unit_bytes = 0;
  // Source bytes from one column to the next: the unit, or more where no loop is contiguous in the source.
  int64_t column_step = 0;
  // Columns have gaps of a few units in the source.
  bool has_column_gaps = false;
  // Innermost first. The last loop of each may be a block of a longer one.
  std::vector<TileLoop> rows;
  std::vector<TileLoop> columns;
  // The rows begin with a loop that is contiguous on both sides, but guarded.
  bool has_guarded_run = false;
  // Outermost first. Where a loop continues a block of the tile, `block_of` says which.
  struct Outer {
    TileLoop loop;
    enum class BlockOf { kNone, kRows, kColumns } block_of = BlockOf::kNone;
    // Blocks per iteration, where two loops share the blocks of a list.
    int64_t blocks = 1;
    // Destination bytes from the first to the last byte of one iteration.
    int64_t span = 0;
  };
  std::vector<Outer> outer;
  // Contiguous bytes before the first loop that the other list owns.
  int64_t direct_row_bytes = 0;
  int64_t direct_column_bytes = 0;
};

// `element_bytes` is 1, 2, 4, 8 or 16. Blocks of rows and of columns have the fewest iterations of their
// first loop that reach `row_bytes` and `column_bytes`.
Tiling tiling_of(const LoopNest& nest, int64_t element_bytes, int64_t row_bytes = kTileEdgeBytes.value,
                 int64_t column_bytes = kTileEdgeBytes.value);

// Destination bytes over which a tile reaches: ranges that begin and end at multiples of them cut no tile.
int64_t reach_of(const Tiling& tiling);

// One line per list, for explain() and for tests.
std::string describe(const Tiling& tiling);

}  // namespace tilework
