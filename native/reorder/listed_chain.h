// Chains of rectangles (nest_walk.h), of which one side is long pieces of memory and the other a list of
// short runs: where each of these stands is listed once for all pieces. Internal to each file, as
// transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "reorder/cache_sets.h"
#include "reorder/packed_transpose.h"
#include "reorder/rectangle.h"
#include "reorder/transpose_places.h"

namespace tilework {
namespace {

// Places of one side, which the other has side by side: so many of the innermost of three loops, of the
// next one and of the one around them.
struct PlaceList {
  int64_t inner;
  int64_t inner_stride;
  int64_t chain;
  int64_t chain_stride;
  int64_t repeats;
  int64_t repeat_stride;

  int64_t count() const { return inner * chain * repeats; }
  void fill(int64_t* at) const {
    for (int64_t r = 0; r < repeats; ++r) {
      for (int64_t k = 0; k < chain; ++k) {
        for (int64_t i = 0; i < inner; ++i) *at++ = r * repeat_stride + k * chain_stride + i * inner_stride;
      }
    }
  }
};

// In blocks of the first of these that fits; the last two may be void.
template <class Wide, class Narrow, class Half, class Thin>
class ListedChain {
 public:
  // False where nothing is listed: of a few elements, and beyond the caches, where lines have to be complete
  // when they are written, if what is moved at a time does not end with lines.
  static bool move(const Tile& tile, const RectangleChain& chain) {
    if (tile.zero_rows > 0) return false;
    const bool by_columns = chain.kind == InnerLoops::Chain::kColumns;
    if ((by_columns ? tile.columns : tile.rows) > kMostPlaces) return false;
    const PlaceList list = list_places(tile, chain, by_columns);
    if (tile.stores == Stores::kStreaming && !makes_lines(tile, list, by_columns)) return false;
    const int64_t rows = by_columns ? tile.rows : tile.rows * chain.count;
    const int64_t columns = by_columns ? tile.columns * chain.count : tile.columns;
    return with_block<Wide, Narrow, Half, Thin>(rows, columns, [&](auto block) {
      using Block = typename decltype(block)::type;
      if (by_columns) {
        move_listed_columns<Block>(tile, chain, list);
      } else {
        move_listed_rows<Block>(tile, chain, list);
      }
    });
  }

 private:
  static constexpr auto kSize = static_cast<int64_t>(sizeof(typename Wide::Unit));
  static constexpr int64_t kMostPlaces = 512;
  // Longer runs go piece by piece.
  static constexpr int64_t kMostOfRun = kLineBytes / kSize;
  // Of lines that are put together beyond the caches, in the first of these.
  static constexpr int64_t kMostBytes = 16 << 10;

  // As many repeats as there is room for where these go on on the other side, else a part of one that ends
  // with a line of the destination; of repeats a power of two, which leaves the fewest blocks incomplete.
  static PlaceList list_places(const Tile& tile, const RectangleChain& chain, bool by_columns) {
    PlaceList list = by_columns ? PlaceList{tile.columns,
                                            tile.destination_column,
                                            1,
                                            chain.destination_stride * kSize,
                                            1,
                                            chain.repeat_destination * kSize}
                                : PlaceList{tile.rows, tile.source_row,
                                            1,         chain.source_stride * kSize,
                                            1,         chain.repeat_source * kSize};
    const int64_t run = by_columns ? tile.rows : tile.columns;
    const bool is_buffered = tile.stores == Stores::kStreaming && run <= kMostOfRun;
    const int64_t most = is_buffered ? std::min(kMostPlaces, kMostBytes / (run * kSize)) : kMostPlaces;
    const int64_t place_bytes = by_columns ? run * kSize : kSize;
    const int64_t line = kLineBytes / std::gcd(list.inner * place_bytes, kLineBytes);
    list.chain = std::clamp<int64_t>(most / list.inner, 1, chain.count);
    if (list.chain > line && list.chain < chain.count) list.chain -= list.chain % line;
    const int64_t next = by_columns ? chain.repeat_source : chain.repeat_destination;
    const bool goes_on = next == list.inner * chain.count;
    while (goes_on && list.count() * 2 <= most && list.repeats * 2 <= chain.repeats) list.repeats *= 2;
    return list;
  }

  // Bytes of the destination that places of `run` bytes fill, where these have no gaps between them; else 0.
  static int64_t dense_bytes(const PlaceList& list, int64_t run) {
    const int64_t chain = list.chain * list.chain_stride;
    const int64_t inner = list.inner * list.inner_stride;
    const bool is_dense = (list.inner_stride == run && inner == list.chain_stride) ||
                          (list.chain_stride == run && chain == list.inner_stride);
    const bool goes_on = list.repeats == 1 || list.repeat_stride == run * list.inner * list.chain;
    return is_dense && goes_on ? run * list.count() : 0;
  }

  // Whether what is moved at a time begins and ends with lines of the destination. Where both sides are long,
  // narrow elements take so many rows, each in a page of its own, that the buffer of a chain is faster.
  static bool makes_lines(const Tile& tile, const PlaceList& list, bool by_columns) {
    const bool is_long = (by_columns ? tile.rows : tile.columns) > kMostOfRun;
    if (is_long && kSize < 4) return false;
    const auto are_lines = [](auto... bytes) { return (... && (bytes % kLineBytes == 0)); };
    if (!is_aligned(tile.destination, kLineBytes)) return false;
    if (!by_columns) {
      const bool has_room = is_long || list.count() * tile.columns * kSize <= kMostBytes;
      return has_room && are_lines(tile.destination_column, list.count() * kSize);
    }
    if (is_long) {
      return are_lines(list.inner_stride, list.chain_stride, list.repeat_stride, tile.rows * kSize);
    }
    const int64_t bytes = dense_bytes(list, tile.rows * kSize);
    return bytes > 0 && bytes <= kMostBytes && are_lines(bytes);
  }

  // Calls body(repeat, first, has_next) for each part of a chain: the first of its repeats and, where these
  // are in several parts, the first of its rectangles. The last part may begin inside the one before.
  template <class Body>
  static void each_part(const PlaceList& list, const RectangleChain& chain, Body body) {
    for (int64_t r = 0; r < chain.repeats; r += list.repeats) {
      for (int64_t k = 0; k < chain.count; k += list.chain) {
        const bool has_next = r + list.repeats < chain.repeats || k + list.chain < chain.count;
        body(std::min(r, chain.repeats - list.repeats), std::min(k, chain.count - list.chain), has_next);
      }
    }
  }

  template <class Block>
  [[gnu::noinline]] static void move_listed_columns(const Tile tile, const RectangleChain chain,
                                                    const PlaceList list) {
    int64_t places[kMostPlaces];
    list.fill(places);
    const Listed columns{places};
    Tile part = tile;
    part.columns = list.count();
    each_part(list, chain, [&](int64_t repeat, int64_t first, bool has_next) {
      part.source = tile.source + (repeat * chain.repeat_source + first * tile.columns) * kSize;
      part.destination = tile.destination + repeat * list.repeat_stride + first * list.chain_stride;
      const Strided rows{tile.source_row};
      if (tile.rows > kMostOfRun) {
        return move_long<Block>(part.source, rows, tile.rows, part.destination, columns, part.columns,
                                tile.stores, crowds_sets(tile.source_row, tile.rows));
      }
      if (tile.stores == Stores::kStreaming) {
        if (has_next) fetch_behind(part, part.rows, kSize);
        return stream_columns<Block>(part, columns);
      }
      const int64_t bytes = has_next ? dense_bytes(list, tile.rows * kSize) : 0;
      const LineRequests next(part.destination + bytes, bytes, part.columns / Block::kColumns);
      transpose_places<Block>(part.source, rows, tile.rows, part.destination, columns, part.columns,
                              part.columns, next);
    });
  }

  // Columns that have no gaps between them.
  template <class Block>
  static void stream_columns(const Tile& tile, Listed columns) {
    alignas(kLineBytes) uint8_t lines[kMostBytes];
    transpose_places<Block>(tile.source, Strided{tile.source_row}, tile.rows, lines, columns, tile.columns,
                            tile.columns);
    store_lines<Block>(tile.destination, lines, tile.rows * tile.columns * kSize);
  }

  template <class Block>
  [[gnu::noinline]] static void move_listed_rows(const Tile tile, const RectangleChain chain,
                                                 const PlaceList list) {
    int64_t places[kMostPlaces];
    list.fill(places);
    const Listed rows{places};
    each_part(list, chain, [&](int64_t repeat, int64_t first, bool) {
      const uint8_t* from = tile.source + repeat * list.repeat_stride + first * list.chain_stride;
      uint8_t* to = tile.destination + (repeat * chain.repeat_destination + first * tile.rows) * kSize;
      const Strided columns{tile.destination_column};
      if (tile.columns > kMostOfRun) {
        const bool crowds = crowds_sets(tile.source_row, tile.rows) ||
                            crowds_sets(list.chain_stride, list.chain * list.repeats);
        return move_long<Block>(from, rows, list.count(), to, columns, tile.columns, tile.stores, crowds);
      }
      if (tile.stores == Stores::kStreaming) {
        return stream_rows<Block>(from, rows, list.count(), to, columns, tile.columns);
      }
      transpose_by_columns<Block>(from, rows, list.count(), to, columns, tile.columns);
    });
  }

  // Columns are a line apart in the buffer beside what they have, as those of a power of two would share sets
  // of the cache.
  template <class Block>
  static void stream_rows(const uint8_t* source, Listed row_at, int64_t rows, uint8_t* destination,
                          Strided column_at, int64_t columns) {
    alignas(kLineBytes) uint8_t lines[kMostBytes + kMostOfRun * kLineBytes];
    const Strided line_at{rows * kSize + kLineBytes};
    transpose_by_columns<Block>(source, row_at, rows, lines, line_at, columns);
    for (int64_t c = 0; c < columns; ++c) {
      store_lines<Block>(destination + column_at(c), lines + line_at(c), rows * kSize);
    }
  }

  template <class Block>
  static void store_lines(uint8_t* destination, const uint8_t* lines, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += kLineBytes) {
      Block::store_line(destination + i, lines + i, Stores::kStreaming);
    }
  }

  // Rows and columns that are both long.
  template <class Block, class Rows, class Columns>
  static void move_long(const uint8_t* source, Rows row_at, int64_t rows, uint8_t* destination,
                        Columns column_at, int64_t columns, Stores stores, bool crowds) {
    if (crowds || stores == Stores::kStreaming) {
      PackedTranspose<Block, Rows, Columns>::run(source, row_at, rows, rows, destination, column_at, columns,
                                                 stores);
    } else {
      transpose_by_columns<Block>(source, row_at, rows, destination, column_at, columns);
    }
  }
};

}  // namespace
}  // namespace tilework
