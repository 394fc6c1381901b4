// The kernels of tiles, put together from the ways in which an instruction set moves blocks and channels.
// Internal to each file, as nest_walk.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "reorder/any_tile.h"
#include "reorder/buffered_chain.h"
#include "reorder/listed_chain.h"
#include "reorder/listed_interleave.h"
#include "reorder/rectangle.h"

namespace tilework {
namespace {

// The kernel of one width: `Channels` for a few rows or columns, else `Wide` blocks where they fit, else
// `Narrow` ones, else, where there are such, `Half` ones of the fewest rows or `Thin` ones of the fewest
// columns.
template <class Wide, class Narrow, class Channels = NoChannels, class Half = void, class Thin = void>
struct TileKernel {
  static constexpr NestClass kClass = NestClass::kTiles;
  static void move(const Rectangle& rectangle) {
    Tile tile = tile_of(rectangle);
    if (rectangle.source_column == 1) return Tiles::run(tile);
    if (rectangle.source_column == -1) return Tiles::run(from_last_column(tile));
    // A part of a chain that is not complete.
    tile.columns = 1;
    for (int64_t c = 0; c < rectangle.columns; ++c) {
      Tiles::run(tile);
      tile.source += rectangle.source_column * kSize;
      tile.destination += tile.destination_column;
    }
  }

  // By way of a buffer in the first-level cache: one of the two sides of a chain is a plain tile, the other a
  // number of short runs, or of small tiles.
  static bool move_chain(const Rectangle& rectangle, const RectangleChain& chain) {
    const Tile tile = tile_of(rectangle);
    if (chain.kind == InnerLoops::Chain::kInterleaved) return interleave(tile, chain);
    if (rectangle.source_column != 1) return move_crossed(rectangle, chain);
    return move_chain_of(tile, chain);
  }

  static bool fits_pixels(int64_t rows, int64_t columns, int64_t channels) {
    return rows * columns * channels * kSize <= kChainBufferBytes && kSize <= 4 &&
           Channels::fits_pieces(channels, rows * columns, columns);
  }

  // The pixels of all rows are taken apart into a buffer in the first-level cache, which then has a row of
  // pixels for each channel of each row, in the order of the destination. A transpose makes columns of them.
  [[gnu::noinline]] static void move_pixels(const Rectangle& rectangle, const PixelGroups& groups) {
    alignas(kLineBytes) uint8_t buffer[kChainBufferBytes];
    const Tile tile = tile_of(rectangle);
    const int64_t channel = tile.rows * tile.columns * kSize;
    const int64_t size = channel * groups.valid_channels;
    Tile all{buffer,     tile.destination, tile.columns, 0, 0, tile.columns * kSize, tile.destination_column,
             tile.stores};
    for (int64_t first = 0; first < groups.count; first += kChainBufferBytes / size) {
      const int64_t count = std::min(kChainBufferBytes / size, groups.count - first);
      for (int64_t i = 0; i < count; ++i) {
        const Tile part{tile.source + groups.places[first + i] * kSize,
                        buffer + i * size,
                        groups.valid_channels,
                        tile.rows * tile.columns,
                        0,
                        groups.channels * kSize,
                        channel,
                        Stores::kCached};
        Channels::take_pieces_apart(part, tile.columns, tile.source_row);
      }
      all.rows = count * groups.valid_channels * tile.rows;
      Tiles::run(all);
      all.destination += all.rows * kSize;
    }
  }

 private:
  using Unit = typename Wide::Unit;
  static constexpr int64_t kSize = sizeof(Unit);
  using Tiles = AnyTile<Wide, Narrow, Channels, Half>;
  using Buffered = BufferedChain<Unit, Channels, Tiles>;

  static bool interleave(Tile tile, const RectangleChain& chain) {
    if (ListedInterleave<Wide, Narrow, Half, Thin, Tiles>::move(tile, chain)) return true;
    for (int64_t i = 0; i < chain.repeats; ++i) {
      if (!Buffered::interleave(tile, chain)) return false;
      tile.source += chain.repeat_source * kSize;
      tile.destination += chain.repeat_destination * kSize;
    }
    return true;
  }

  // The loop that goes on in the source is that of the columns.
  static bool move_crossed(const Rectangle& rectangle, RectangleChain chain) {
    if (chain.source_stride != 1 || rectangle.source_column != chain.count) return false;
    Tile tile = tile_of(rectangle);
    std::swap(tile.columns, chain.count);
    chain.source_stride = tile.columns;
    tile.destination_column = chain.destination_stride * kSize;
    chain.destination_stride = rectangle.destination_column;
    return move_chain_of(tile, chain);
  }

  static bool move_chain_of(const Tile& tile, const RectangleChain& chain) {
    if (ListedChain<Wide, Narrow, Half, Thin>::move(tile, chain)) return true;
    Tile at = tile;
    for (int64_t i = 0; i < chain.repeats; ++i) {
      if (writes_pieces(at)) {
        move_each(at, chain);
      } else if (!Buffered::move(at, chain)) {
        return false;
      }
      at.source += chain.repeat_source * kSize;
      at.destination += chain.repeat_destination * kSize;
    }
    return true;
  }

  // Beyond the caches, tiles that each write whole lines one behind the other need no buffer.
  static bool writes_pieces(const Tile& tile) {
    constexpr int64_t kLongPiece = 256;
    const int64_t piece = tile.rows * tile.columns * kSize;
    const bool is_dense = tile.destination_column == tile.rows * kSize;
    return kSize == 16 && tile.stores == Stores::kStreaming && is_dense && tile.zero_rows == 0 &&
           piece >= kLongPiece && piece % kLineBytes == 0;
  }

  static void move_each(Tile tile, const RectangleChain& chain) {
    for (int64_t i = 0; i < chain.count; ++i) {
      Tiles::run(tile);
      tile.source += chain.source_stride * kSize;
      tile.destination += chain.destination_stride * kSize;
    }
  }

  // Columns that lie backwards in the source, forwards: then they go backwards in the destination.
  static Tile from_last_column(Tile tile) {
    tile.source -= (tile.columns - 1) * kSize;
    tile.destination += (tile.columns - 1) * tile.destination_column;
    tile.destination_column = -tile.destination_column;
    return tile;
  }

  static Tile tile_of(const Rectangle& rectangle) {
    return {rectangle.source,
            rectangle.destination,
            rectangle.columns,
            rectangle.rows + rectangle.zero_rows,
            rectangle.zero_rows,
            rectangle.source_row * kSize,
            rectangle.destination_column * kSize,
            rectangle.stores};
  }
};

}  // namespace
}  // namespace tilework
