// Tiles of a reorder between files. A tile that is a range of the destination may be made of single elements
// from all over the source (a transpose), or of every n-th element of a range n times its size (blocks to
// planes). So tiles are boxes of the loop nest: cut so that both the runs that are read and the runs that are
// written are long, and packed, without the gaps between them, into two small buffers.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "reorder/boxes.h"
#include "reorder/plan.h"

namespace tilework {

// Bytes of a tile: of the destination, for which a buffer may be an eighth larger, and the buffer of the
// source.
struct TileLimits {
  int64_t destination = 0;
  int64_t source = 0;
};

// Runs of equal length in a storage, and one after the other in a buffer.
struct Runs {
  // Storage element of the first run, and elements of each.
  int64_t first = 0;
  int64_t length = 0;
  // Elements from one run to the next in the buffer.
  int64_t spacing = 0;
  // How often and how far apart runs repeat, widest first.
  std::vector<std::pair<int64_t, int64_t>> repeats;

  // Elements of the buffer.
  int64_t size() const;
  // Calls body(storage element, buffer element) for each.
  template <class Body>
  void each(Body body) const {
    int64_t packed = 0;
    each_from(0, first, packed, body);
  }

 private:
  template <class Body>
  void each_from(size_t at, int64_t element, int64_t& packed, Body& body) const {
    if (at == repeats.size()) {
      body(element, packed);
      packed += spacing;
      return;
    }
    for (int64_t i = 0; i < repeats[at].first; ++i) {
      each_from(at + 1, element + i * repeats[at].second, packed, body);
    }
  }
};

// A tile with the plan that makes its packed destination from its packed source.
struct PackedTile {
  ReorderPlan plan;
  // Empty for a tile of holes. A run may reach beyond the storage where only holes are.
  std::optional<Runs> source;
  Runs destination;
};

class BoxTiles {
 public:
  // Tiles of destination bytes [begin, end), for which `plan.check_range` holds. None for plans with several
  // nests or lookups, and for 4-bit runs that begin inside a byte.
  static std::optional<BoxTiles> cut(const ReorderPlan& plan, int64_t begin, int64_t end, TileLimits limits);

  int64_t count() const { return count_; }
  PackedTile at(int64_t tile) const;

 private:
  // A box, and how many passes of each loop a tile has of it.
  struct Region {
    Box box;
    std::vector<int64_t> blocks;
    // Tiles before it.
    int64_t first_tile;
  };

  explicit BoxTiles(const ReorderPlan& plan) : plan_(&plan) {}
  Box box_of(int64_t tile) const;

  const ReorderPlan* plan_;
  std::vector<Region> regions_;
  int64_t count_ = 0;
};

}  // namespace tilework
