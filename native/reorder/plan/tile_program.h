// The program of one loop nest: its tiling, the panels of each guard state, and the walk over the loops
// around the tile that hands them to their leaves. Immutable; any number of threads may run it at the same
// time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memory/streaming_copy.h"
#include "reorder/cast/panel_conversion.h"
#include "reorder/plan/footprint.h"
#include "reorder/plan/tile_sinks.h"
#include "reorder/plan/tile_state.h"

namespace tilework {

// Some iterations of the outermost loops around a tile: a part of a program for a thread. Default: all.
struct OuterRange {
  struct Iterations {
    int64_t first;
    int64_t last;
  };
  static constexpr size_t kMostLevels = 4;
  size_t levels = 0;
  std::array<Iterations, kMostLevels> of_level{};
};

class TileProgram {
 public:
  // Elements of 4, 8, 16, 32, 64 or 128 bits. Where `conversion` is set they change their type on the way;
  // `element_bits`, `destination_bytes` and the range of a run are those of its base type then, and it must
  // outlive the program.
  TileProgram(const LoopNest& nest, int element_bits, int64_t destination_bytes, const Leaves& leaves,
              const PanelConversion* conversion = nullptr);
  TileProgram(const TileProgram&) = delete;
  TileProgram& operator=(const TileProgram&) = delete;

  // Writes destination bytes [begin, end) to `destination`.
  void run(const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end, Stores stores,
           const OuterRange& range) const;

  // The same for all of the destination where the loops of the nest begin at `position`.
  void run_at(const TilePosition& position, const uint8_t* source, uint8_t* destination) const;

  // Notes what a run of destination bytes [begin, end) would read and write. Offsets are bytes, or half
  // bytes; those of the destination count from `begin`.
  void note(int64_t begin, int64_t end, const TilePosition& position, const Footprint& footprint) const;
  int64_t offsets_per_byte() const { return context_.has_nibbles ? 2 : 1; }

  const LoopNest& nest() const { return nest_; }
  int element_bits() const { return element_bits_; }
  const Tiling& tiling() const { return tiling_; }
  // Whether two elements of the destination may share a byte.
  bool shares_bytes() const { return context_.has_nibbles && conversion_ == nullptr; }
  // Bytes of the destination over which a tile reaches.
  int64_t reach_bytes() const;
  const Leaves& leaves() const { return context_.leaves; }
  // The same program with the leaves of another instruction set.
  std::shared_ptr<const TileProgram> with(const Leaves& leaves) const;
  // The tile: "16 x 16 units of 4 bytes at a time".
  std::string summary() const;
  // Adds the ways in which a run of the whole destination moves its panels, of very many the first ones.
  void add_ways(Stores stores, WayShares& shares) const;
  // Memory of the program itself.
  int64_t footprint() const;

 private:
  friend class TileWalk;

  std::vector<PanelMove> all_panels() const;
  template <class Body>
  void with_sink(const uint8_t* source, uint8_t* destination, int64_t begin, Body body) const;

  LoopNest nest_;
  int element_bits_;
  int64_t destination_bytes_;
  const PanelConversion* conversion_;
  Tiling tiling_;
  TileContext context_;
  // By outer loop.
  struct OuterFacts {
    // Sum that deeper loops, the tile included, add to its variable at most.
    int64_t below = 0;
    // The innermost outer loop of its lookup.
    bool looks_up = false;
  };
  std::vector<OuterFacts> facts_;
  // States of the tile that a walk finds, as far as they were foreseen; a run builds the others itself.
  std::vector<std::shared_ptr<const TileState>> states_;
  // All that a run of the whole destination moves, if that is a few panels; else none.
  std::vector<PanelMove> panels_;
};

}  // namespace tilework
