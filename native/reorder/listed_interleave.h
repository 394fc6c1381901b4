// Interleaved tiles (nest_class.h) that follow each other without gaps on both sides: 4 inputs of 16 outputs
// of 3 x 3 weights, say. One transpose brings many of them to a buffer in the first-level cache, by a list of
// places: a plane for each of the inputs, in which all else stands as it will in the destination. A second
// one interleaves the planes, front to back. Internal to each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reorder/rectangle.h"
#include "reorder/transpose_places.h"

namespace tilework {
namespace {

// In blocks of the first of these that fits; the last two may be void. `Tiles` is an AnyTile.
template <class Wide, class Narrow, class Half, class Thin, class Tiles>
class ListedInterleave {
 public:
  // False where tiles are completed with zeros, or have gaps between them.
  static bool move(const Tile& tile, const RectangleChain& chain) {
    const int64_t columns = tile.rows * tile.columns * chain.count;
    const int64_t bytes = columns * chain.beside * kSize;
    const bool is_small = columns <= kMostPlaces && bytes <= kMostBytes && tile.rows <= kMostRows;
    if (!is_small || tile.zero_rows > 0 || chain.zero_beside > 0 || !is_dense(tile, chain)) return false;
    int64_t at_once = 1;
    while (2 * at_once <= chain.repeats && 2 * at_once * columns <= kMostPlaces &&
           2 * at_once * bytes <= kFewBytes) {
      at_once *= 2;
    }
    return with_block<Wide, Narrow, Half, Thin>(chain.beside, at_once * columns, [&](auto block) {
      move_all<typename decltype(block)::type>(tile, chain, at_once);
    });
  }

 private:
  static constexpr auto kSize = static_cast<int64_t>(sizeof(typename Wide::Unit));
  static constexpr int64_t kMostPlaces = 512;
  static constexpr int64_t kMostRows = 8;
  // Of the buffer; as much again is written, and read from lines that are not used up at once. One repeat may
  // have more than several of them.
  static constexpr int64_t kMostBytes = 16 << 10;
  static constexpr int64_t kFewBytes = 8 << 10;

  static bool is_dense(const Tile& tile, const RectangleChain& chain) {
    const int64_t unit = tile.rows * chain.beside * kSize;
    const int64_t next = chain.destination_stride * kSize;
    const int64_t tiles = chain.count * tile.columns;
    const bool by_chain = tile.destination_column == unit * chain.count && (chain.count == 1 || next == unit);
    const bool by_column = tile.destination_column == unit && next == unit * tile.columns;
    const bool goes_on = chain.repeats == 1 || (chain.repeat_source == tile.rows * tiles &&
                                                chain.repeat_destination * kSize == unit * tiles);
    return (by_chain || by_column) && goes_on;
  }

  // Where the columns of `at_once` repeats go, in the order of the source. Planes are a line longer than they
  // need, so that they do not share sets of the cache.
  static void list_places(const Tile& tile, const RectangleChain& chain, int64_t at_once, int64_t plane,
                          int64_t* at) {
    const auto in_plane = [&](int64_t destination) { return destination / tile.rows; };
    for (int64_t repeat = 0; repeat < at_once; ++repeat) {
      for (int64_t k = 0; k < chain.count; ++k) {
        const int64_t first = repeat * chain.repeat_destination + k * chain.destination_stride;
        for (int64_t r = 0; r < tile.rows; ++r) {
          for (int64_t c = 0; c < tile.columns; ++c) {
            *at++ = r * plane + in_plane(first * kSize + c * tile.destination_column);
          }
        }
      }
    }
  }

  template <class Block>
  [[gnu::noinline]] static void move_all(const Tile tile, const RectangleChain chain, int64_t at_once) {
    alignas(kLineBytes) uint8_t buffer[kMostBytes + kMostRows * kLineBytes];
    int64_t places[kMostPlaces];
    const int64_t columns = at_once * chain.count * tile.rows * tile.columns;
    const int64_t bytes = columns * chain.beside * kSize;
    const int64_t plane = bytes / tile.rows + kLineBytes;
    list_places(tile, chain, at_once, plane, places);
    Tile planes{buffer, nullptr, bytes / tile.rows / kSize, tile.rows,
                0,      plane,   tile.rows * kSize,         tile.stores};
    for (int64_t r = 0; r < chain.repeats; r += at_once) {
      // The last ones may begin inside those before.
      const int64_t repeat = std::min(r, chain.repeats - at_once);
      planes.destination = tile.destination + repeat * chain.repeat_destination * kSize;
      const LineRequests lines(planes.destination, bytes, columns / Block::kColumns);
      transpose_places<Block>(tile.source + repeat * chain.repeat_source * kSize,
                              Strided{chain.beside_source * kSize}, chain.beside, buffer, Listed{places},
                              columns, columns, lines);
      Tiles::run(planes);
    }
  }
};

}  // namespace
}  // namespace tilework
