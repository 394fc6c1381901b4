// Transposes tiles of any extents, each in the way that suits it. Internal to each file, as
// transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "policy/thresholds.h"
#include "reorder/leaf/block_transpose.h"

namespace tilework {
namespace {

// Rectangles that are narrower than any block.
template <class Unit>
class NarrowTranspose {
 public:
  static void run(const Tile& tile) {
    TILEWORK_TAKES(Way::kUnits);
    const int64_t rows = tile.rows - tile.zero_rows;
    for (int64_t r = rows; r < tile.rows; ++r) {
      for (int64_t c = 0; c < tile.columns; ++c) zero(tile.destination + c * tile.destination_column, r);
    }
    if (tile.columns <= rows) {
      dispatch(tile.columns, [&](auto columns) { by_rows(tile, rows, columns); });
    } else {
      dispatch(rows, [&](auto fixed) { by_columns(tile, fixed); });
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(Unit);
  template <int64_t kCount>
  struct Fixed {
    constexpr operator int64_t() const { return kCount; }
  };

  // Loops over a count that the compiler knows are unrolled.
  template <class Body>
  static void dispatch(int64_t count, Body body) {
    switch (count) {
      case 1:
        return body(Fixed<1>{});
      case 2:
        return body(Fixed<2>{});
      case 3:
        return body(Fixed<3>{});
      case 4:
        return body(Fixed<4>{});
      case 8:
        return body(Fixed<8>{});
      default:
        return body(count);
    }
  }

  static void zero(uint8_t* column, int64_t r) { std::memset(column + r * kSize, 0, sizeof(Unit)); }

  [[gnu::always_inline]] static void move(const Tile& tile, int64_t r, int64_t c) {
    std::memcpy(tile.destination + c * tile.destination_column + r * kSize,
                tile.source + r * tile.source_row + c * kSize, sizeof(Unit));
  }
  template <class Columns>
  static void by_rows(const Tile tile, int64_t rows, Columns columns) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) move(tile, r, c);
  }
  template <class Rows>
  static void by_columns(const Tile tile, Rows rows) {
    for (int64_t c = 0; c < tile.columns; ++c)
      for (int64_t r = 0; r < rows; ++r) move(tile, r, c);
  }
};

// For instruction sets that have blocks alone.
struct NoSpecialTiles {
  static Way way_of(const Tile&) { return Way::kNone; }
  static bool run(Way, const Tile&) { return false; }
};

// `Special` ways first, else `Wide` blocks where they fit, else `Narrow` ones, else unit by unit.
template <class Wide, class Narrow, class Special>
struct AnyTile {
  static Way way_of(const Tile& tile) {
    const Way way = Special::way_of(tile);
    if (way != Way::kNone) return way;
    if (BlockTranspose<Wide>::fits(tile)) return BlockTranspose<Wide>::way_of(tile);
    return BlockTranspose<Narrow>::fits(tile) ? BlockTranspose<Narrow>::way_of(tile) : Way::kUnits;
  }

  [[gnu::noinline]] static void run(const Tile& tile) {
    const Way way = way_of(tile);
    if (Special::run(way, tile)) return;
    if (way == Way::kUnits) {
      NarrowTranspose<typename Wide::Unit>::run(tile);
    } else if (BlockTranspose<Wide>::fits(tile)) {
      TILEWORK_WAY("blocks: wide");
      BlockTranspose<Wide>::run(way, tile);
    } else {
      TILEWORK_WAY("blocks: narrow");
      BlockTranspose<Narrow>::run(way, tile);
    }
  }
};

}  // namespace
}  // namespace tilework
