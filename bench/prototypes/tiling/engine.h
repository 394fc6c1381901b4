// Runs a tiling: walks the loops around the tile, builds the lists of rows and columns of each guard state
// once, and hands them to a leaf.
#pragma once

#include <cstdint>
#include <vector>

#include "tiling.h"

namespace tilework {

// Rows or columns of a tile in one guard state. Offsets are in bytes from the start of the tile.
struct EdgeList {
  int64_t count = 0;
  std::vector<int64_t> source;
  std::vector<int64_t> destination;
  // 1 where the entry has a source, 0 for a hole.
  std::vector<uint8_t> valid;
  int64_t holes = 0;
  // First entries of register blocks: `block` entries that are contiguous on the side of the list and have a
  // source. Blocks may overlap backwards. Entries outside of every block are in `single`.
  std::vector<int32_t> blocks;
  std::vector<int32_t> single;
  // Distance between neighbours on the side that is not contiguous, where it is the same for all; else 0.
  int64_t stride = 0;
  // All entries are in blocks, which are contiguous on the side of the list.
  bool is_dense = false;
};

struct TileState {
  EdgeList rows;
  EdgeList columns;
  // What each row and column adds to the index of each guard, where rows and columns share a guard.
  std::vector<std::vector<int64_t>> row_weights;
  std::vector<std::vector<int64_t>> column_weights;
};

struct TileArguments {
  const uint8_t* source;
  uint8_t* destination;
  const TileState& state;
  int64_t unit_bytes;
  // Tiles in the same state, one after the other.
  int64_t repeat;
  int64_t source_step;
  int64_t destination_step;
};

// Rows and columns of a register block of a leaf, and what moves one.
struct Leaf {
  const char* name;
  int64_t unit_bytes;
  int64_t block_rows;
  int64_t block_columns;
  void (*run)(const TileArguments&);
};

class Engine {
 public:
  Engine(const LoopNest& nest, int64_t element_bytes);

  // Writes destination bytes [begin, end) to `destination`.
  void run(const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end) const;

  const Tiling& tiling() const { return tiling_; }
  const Leaf& leaf() const { return *leaf_; }

 private:
  friend class EngineRun;
  const LoopNest& nest_;
  int64_t element_bytes_;
  Tiling tiling_;
  const Leaf* leaf_;
  // A guard that rows and columns share: whether an element has a source depends on both.
  bool shares_guard_ = false;
};

const Leaf& leaf_for(const Tiling& tiling);

}  // namespace tilework
