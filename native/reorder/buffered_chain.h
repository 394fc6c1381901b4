// Chains of rectangles (nest_walk.h) by way of a buffer in the first-level cache: one of the two sides is a
// plain tile, the other a number of short runs, or of small tiles. Internal to each file, as
// transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "reorder/any_tile.h"
#include "reorder/rectangle.h"

namespace tilework {
namespace {

// Bytes of the buffer.
constexpr int64_t kChainBufferBytes = 16 << 10;

// Of elements of `Unit`; `Tiles` is an AnyTile.
template <class Unit, class Channels, class Tiles>
class BufferedChain {
 public:
  // False where its runs are too short, or of another kind.
  static bool move(const Tile& tile, const RectangleChain& chain) {
    const bool by_columns = chain.kind == InnerLoops::Chain::kColumns;
    const int64_t run = by_columns ? tile.rows : tile.columns;
    if (run * kSize < kMinRun || (run > kMostOfRun && tile.zero_rows > 0)) return false;
    for (int64_t first = 0; first < run; first += kMostOfRun) {
      Tile part = tile;
      if (by_columns) {
        part.rows = std::min(kMostOfRun, run - first);
        part.source += first * tile.source_row;
        part.destination += first * kSize;
        move_columns(part, chain.count, chain.destination_stride * kSize);
      } else {
        part.columns = std::min(kMostOfRun, run - first);
        part.source += first * kSize;
        part.destination += first * tile.destination_column;
        move_rows(part, chain.count, chain.source_stride * kSize);
      }
    }
    return true;
  }

  // The columns of all rows are side by side in the source, for each of the rectangles beside each other. A
  // first transpose brings these together, a second one rows: both have long pieces of memory on one side,
  // and the buffer on the other.
  [[gnu::noinline]] static bool interleave(const Tile tile, const RectangleChain& chain) {
    alignas(kLineBytes) uint8_t buffer[kChainBufferBytes];
    const int64_t beside = chain.beside + chain.zero_beside;
    const int64_t valid_rows = tile.rows - tile.zero_rows;
    const int64_t size = tile.rows * tile.columns * beside * kSize;
    const int64_t at_once = chain.count > 1 ? kChainBufferBytes / size : 1;
    if (beside * kSize < kMinRun || size > kChainBufferBytes || at_once == 0) return false;
    for (int64_t first = 0; first < chain.count; first += at_once) {
      const int64_t count = std::min(at_once, chain.count - first);
      Tile part{tile.source + first * chain.source_stride * kSize,
                buffer,
                ((count - 1) * tile.rows + valid_rows) * tile.columns,
                beside,
                chain.zero_beside,
                chain.beside_source * kSize,
                beside * kSize,
                Stores::kCached};
      fetch_behind(part, part.rows - part.zero_rows, kSize);
      Tiles::run(part);
      for (int64_t i = 0; i < count; ++i) {
        uint8_t* to = tile.destination + (first + i) * chain.destination_stride * kSize;
        interleave_rows(tile, buffer + i * size, beside, to);
      }
    }
    return true;
  }

 private:
  static constexpr int64_t kSize = sizeof(Unit);
  // Shorter runs are copied at too high a price; of longer ones this many elements go through the buffer at a
  // time.
  static constexpr int64_t kMinRun = 16;
  static constexpr int64_t kMostOfRun = kLineBytes / kSize;

  // Each column has all rows of all rectangles in one piece.
  static void interleave_rows(const Tile& tile, const uint8_t* buffer, int64_t beside, uint8_t* destination) {
    Tile all{buffer,
             destination,
             tile.columns * beside,
             tile.rows,
             tile.zero_rows,
             tile.columns * beside * kSize,
             tile.rows * kSize,
             tile.stores};
    if (Channels::run_pieces(all, beside, tile.destination_column)) return;
    all.columns = beside;
    for (int64_t c = 0; c < tile.columns; ++c) {
      Tiles::run(all);
      all.source += beside * kSize;
      all.destination += tile.destination_column;
    }
  }

  // The columns of all rectangles are side by side in the source. `at_once` rectangles go through the buffer,
  // and leave it in the order of the destination.
  [[gnu::noinline]] static void move_columns(const Tile tile, int64_t count, int64_t destination_stride) {
    alignas(kLineBytes) uint8_t buffer[kChainBufferBytes];
    const int64_t run = tile.rows * kSize;
    const int64_t at_once = kChainBufferBytes / (run * tile.columns);
    for (int64_t first = 0; first < count; first += at_once) {
      const int64_t chain = std::min(at_once, count - first);
      Tile part = tile;
      part.source += first * tile.columns * kSize;
      part.columns = chain * tile.columns;
      part.destination = buffer;
      part.destination_column = run;
      part.stores = Stores::kCached;
      fetch_behind(part, part.rows - part.zero_rows, kSize);
      Tiles::run(part);
      for (int64_t c = 0; c < tile.columns; ++c) {
        uint8_t* to = tile.destination + c * tile.destination_column + first * destination_stride;
        copy_runs(to, destination_stride, buffer + c * run, run * tile.columns, run, chain);
      }
    }
  }

  // The rows of all rectangles are side by side in the destination.
  [[gnu::noinline]] static void move_rows(const Tile tile, int64_t count, int64_t source_stride) {
    alignas(kLineBytes) uint8_t buffer[kChainBufferBytes];
    const int64_t run = tile.columns * kSize;
    const int64_t at_once = kChainBufferBytes / (run * tile.rows);
    for (int64_t first = 0; first < count; first += at_once) {
      const int64_t chain = std::min(at_once, count - first);
      for (int64_t r = 0; r < tile.rows; ++r) {
        const uint8_t* from = tile.source + r * tile.source_row + first * source_stride;
        copy_runs(buffer + r * run, run * tile.rows, from, source_stride, run, chain);
      }
      Tile part = tile;
      part.source = buffer;
      part.source_row = run;
      part.destination += first * tile.rows * kSize;
      part.rows = chain * tile.rows;
      Tiles::run(part);
    }
  }

  template <int64_t kBytes>
  static void copy_fixed(uint8_t* to, int64_t to_stride, const uint8_t* from, int64_t from_stride,
                         int64_t count) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, kBytes);
  }

  static void copy_runs(uint8_t* to, int64_t to_stride, const uint8_t* from, int64_t from_stride, int64_t run,
                        int64_t count) {
    if (run == 64) return copy_fixed<64>(to, to_stride, from, from_stride, count);
    if (run == 32) return copy_fixed<32>(to, to_stride, from, from_stride, count);
    if (run == 16) return copy_fixed<16>(to, to_stride, from, from_stride, count);
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(to + i * to_stride, from + i * from_stride, static_cast<size_t>(run));
    }
  }
};

}  // namespace
}  // namespace tilework
