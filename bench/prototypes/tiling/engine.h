// Runs a tiling: walks the loops around the tile, builds the panels of each guard state once, and hands them
// to their leaves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memory/streaming_copy.h"
#include "tiling.h"

namespace tilework {

struct TileState;

class Engine {
 public:
  Engine(const LoopNest& nest, int64_t element_bytes, int64_t destination_bytes);

  // Writes destination bytes [begin, end) to `destination`.
  void run(const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end,
           Stores stores = Stores::kCached) const;

  const Tiling& tiling() const { return tiling_; }
  // Leaf of the first panel of the first tile; for tests and explanations.
  std::string first_leaf() const;

 private:
  friend class EngineRun;
  const LoopNest& nest_;
  int64_t element_bytes_;
  int64_t destination_bytes_;
  Tiling tiling_;
  // Sum that the loops of the tile add to each variable at most.
  std::vector<int64_t> tile_reach_;
  // Variables that both rows and columns advance.
  std::vector<bool> is_shared_;
  // Lookups that loops of the tile advance.
  std::vector<bool> looks_up_in_tile_;
  // By outer loop: sum that deeper loops, the tile included, add to its variable at most; whether it is the
  // innermost outer loop of its lookup; whether one iteration writes every byte it spans.
  struct OuterFacts {
    int64_t below = 0;
    bool looks_up = false;
  };
  std::vector<OuterFacts> facts_;
  // States of the tile that a walk finds, as far as they were foreseen; a run builds the others itself.
  std::vector<std::shared_ptr<const TileState>> states_;
};

}  // namespace tilework
