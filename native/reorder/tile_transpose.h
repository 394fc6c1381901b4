// Transposes rectangles in blocks that one instruction set moves at a time. Shared by the kernels of all
// instruction sets; each brings its blocks:
//
//   struct Block {
//     using Unit = uint32_t;
//     static constexpr int64_t kRows, kColumns;
//     // Column c of row r: source + row_at(r) + c * sizeof(Unit), in bytes, goes to
//     // destination + column_at(c) + r * sizeof(Unit). Places are Strided or Listed.
//     template <class Rows, class Columns>
//     static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination, Columns column_at);
//     // The same for twice as many rows: `kMakesLines` is true where that fills a cache line of each column,
//     // `kLinesInRegisters` where it takes no more than registers besides.
//     static constexpr bool kMakesLines, kLinesInRegisters;
//     template <class Rows, class Columns>
//     static void transpose_lines(const uint8_t* source, Rows row_at, uint8_t* destination,
//                                 Columns column_at);
//     // Writes a cache line.
//     static void store_line(uint8_t* destination, const uint8_t* line, Stores stores);
//   };
//
// Rectangles that are no multiple of a block end with a block that overlaps the one before: it writes the
// same values again, which costs less than masks and works on every processor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "reorder/box_transpose.h"
#include "reorder/nest_walk.h"

namespace tilework {
namespace {

constexpr int64_t kLineBytes = 64;

// A rectangle in bytes. Loops take it by value: stores of bytes may change any object that others can see, so
// its fields would be read again after each.
struct Tile {
  const uint8_t* source;
  uint8_t* destination;
  int64_t columns;
  // Rows of the destination; of these, `rows` - `zero_rows` have a source.
  int64_t rows;
  int64_t zero_rows;
  int64_t source_row;
  int64_t destination_column;
  Stores stores;
};

// Places of rows or columns, in bytes: one as far from the next as all others, or a list.
struct Strided {
  static constexpr bool kIsEven = true;
  int64_t stride;
  int64_t base = 0;
  int64_t operator()(int64_t i) const { return base + i * stride; }
  Strided from(int64_t i) const { return {stride, base + i * stride}; }
};

// Rows of a distance that the compiler knows, and needs no registers for.
template <int64_t kStride>
struct Spaced {
  static constexpr bool kIsEven = true;
  int64_t base = 0;
  int64_t operator()(int64_t i) const { return base + i * kStride; }
  Spaced from(int64_t i) const { return {base + i * kStride}; }
};

// As many places as a block has columns, which stay in registers.
template <int64_t kCount>
struct Few {
  int64_t places[kCount];
  template <class Columns>
  static Few of(Columns column_at) {
    Few few;
    for (int64_t i = 0; i < kCount; ++i) few.places[i] = column_at(i);
    return few;
  }
  int64_t operator()(int64_t i) const { return places[i]; }
};

struct Listed {
  static constexpr bool kIsEven = false;
  const int64_t* places;
  int64_t operator()(int64_t i) const { return places[i]; }
  Listed from(int64_t i) const { return {places + i}; }
};

// Whether `count` lines that are `stride` bytes apart crowd a few sets of a first-level cache of 64 sets:
// then a line leaves the cache before its second half is written.
inline bool crowds_sets(int64_t stride, int64_t count) {
  constexpr int64_t kSets = 64;
  constexpr int64_t kFewWays = 4;
  const int64_t lines = std::max<int64_t>(std::abs(stride) / kLineBytes, 1);
  const int64_t used = stride % kLineBytes == 0 ? kSets / std::min(lines & -lines, kSets) : kSets;
  return count > used * kFewWays;
}

// A call of the C library's memcpy costs more than so few bytes.
[[gnu::always_inline]] inline void copy_piece(uint8_t* to, const uint8_t* from, int64_t bytes) {
  constexpr int64_t kStep = 32;
  int64_t i = 0;
  for (; i + kStep <= bytes; i += kStep) std::memcpy(to + i, from + i, kStep);
  if (i == bytes) return;
  if (bytes >= kStep) {
    std::memcpy(to + bytes - kStep, from + bytes - kStep, kStep);
  } else {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

// Rows or columns of any places, `strip` columns at a time, and a block at least.
template <class Block, class Rows, class Columns>
[[gnu::noinline]] void transpose_places(const uint8_t* source, Rows row_at, int64_t rows,
                                        uint8_t* destination, Columns column_at, int64_t columns,
                                        int64_t strip) {
  constexpr int64_t kSize = sizeof(typename Block::Unit);
  strip = std::max<int64_t>(strip, Block::kColumns);
  for (int64_t first = 0; first < columns; first += strip) {
    const int64_t end = std::min(first + strip, columns);
    const auto each_column = [&](auto move) {
      for (int64_t c = first; c < end; c += Block::kColumns) {
        const int64_t column = std::min(c, columns - Block::kColumns);
        move(source + column * kSize, column_at.from(column));
      }
    };
    int64_t r = 0;
    if constexpr (Block::kLinesInRegisters) {
      for (; r + 2 * Block::kRows <= rows; r += 2 * Block::kRows) {
        each_column([&](const uint8_t* from, Columns places) {
          Block::transpose_lines(from, row_at.from(r), destination + r * kSize, places);
        });
      }
    }
    for (; r < rows; r += Block::kRows) {
      const int64_t row = std::min(r, rows - Block::kRows);
      each_column([&](const uint8_t* from, Columns places) {
        Block::transpose(from, row_at.from(row), destination + row * kSize, places);
      });
    }
  }
}

// All rows of a block's columns: one long piece of each column. Nothing but the places of rows and columns
// takes registers and instructions, of which a processor has to see many lines far ahead to wait for them
// all at once.
template <class Block, class Rows, class Columns>
[[gnu::always_inline]] inline void transpose_columns(const uint8_t* source, Rows row_at, int64_t rows,
                                                     uint8_t* destination, Columns column_at) {
  constexpr int64_t kSize = sizeof(typename Block::Unit);
  const auto few = Few<Block::kColumns>::of(column_at);
  const auto each = [&](int64_t r, auto move) {
    if constexpr (Rows::kIsEven) {
      move(source + row_at(r), row_at, destination + r * kSize);
    } else {
      move(source, row_at.from(r), destination + r * kSize);
    }
  };
  int64_t r = 0;
  if constexpr (Block::kMakesLines) {
    for (; r + 2 * Block::kRows <= rows; r += 2 * Block::kRows) {
      each(r, [&](const uint8_t* from, Rows at, uint8_t* to) { Block::transpose_lines(from, at, to, few); });
    }
  }
  for (; r < rows; r += Block::kRows) {
    each(std::min(r, rows - Block::kRows),
         [&](const uint8_t* from, Rows at, uint8_t* to) { Block::transpose(from, at, to, few); });
  }
}

// The same, all columns.
template <class Block, class Rows, class Columns>
[[gnu::noinline]] void transpose_by_columns(const uint8_t* source, Rows row_at, int64_t rows,
                                            uint8_t* destination, Columns column_at, int64_t columns) {
  constexpr int64_t kSize = sizeof(typename Block::Unit);
  for (int64_t c = 0; c < columns; c += Block::kColumns) {
    const int64_t column = std::min(c, columns - Block::kColumns);
    transpose_columns<Block>(source + column * kSize, row_at, rows, destination, column_at.from(column));
  }
}

// Asks for the lines of a piece, into the second level of the cache: the first has other things to keep.
constexpr int kSecondLevel = 2;
[[gnu::always_inline]] inline void fetch_piece(const uint8_t* piece, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(piece + i, 0, kSecondLevel);
}

// The same where rows, or columns, share sets of the cache: pieces of rows that are long enough to be read
// fast are packed side by side first, of as many rows as make pieces of columns that are written fast. Rows
// from `valid_rows` on have no source and become zeros. No processor follows so many pieces in pages of their
// own: those that are written next are asked for while rows are packed, and those that are read next while
// columns are written.
template <class Block, class Rows, class Columns>
class PackedTranspose {
 public:
  [[gnu::noinline]] static void run(const uint8_t* source, Rows row_at, int64_t rows, int64_t valid_rows,
                                    uint8_t* destination, Columns column_at, int64_t columns) {
    alignas(kLineBytes) uint8_t packed[kRows * kStride];
    const int64_t high = std::min(kRows, rows);
    const int64_t wide = std::min(kPiece, columns);
    for (int64_t r = 0; r < rows; r += high) {
      // The last part may begin inside the one before.
      const int64_t row = std::min(r, rows - high);
      const int64_t valid = std::clamp<int64_t>(valid_rows - row, 0, high);
      std::memset(packed + valid * kStride, 0, static_cast<size_t>((high - valid) * kStride));
      for (int64_t c = 0; c < columns; c += wide) {
        const int64_t column = std::min(c, columns - wide);
        const Part part{row, valid, high, column, wide};
        uint8_t* to = destination + row * kSize;
        if (wide == kPiece) {
          pack(packed, source, row_at, part, kPiece * kSize, to, column_at);
        } else {
          pack(packed, source, row_at, part, wide * kSize, to, column_at);
        }
        write(packed, source, row_at, part, to, column_at, c + wide < columns);
      }
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(typename Block::Unit);
  static constexpr int64_t kRows = std::max<int64_t>(std::min<int64_t>(256 / kSize, 128), Block::kRows);
  static constexpr int64_t kPiece = std::max<int64_t>(std::min<int64_t>(256 / kSize, 128), Block::kColumns);
  // A line more than the columns, so that rows do not share a set of the cache.
  static constexpr int64_t kStride = (kPiece * kSize + kLineBytes - 1) / kLineBytes * kLineBytes + kLineBytes;

  // Rows [row, row + high), of which `valid` have a source, and columns [column, column + wide).
  struct Part {
    int64_t row;
    int64_t valid;
    int64_t high;
    int64_t column;
    int64_t wide;
  };

  [[gnu::always_inline]] static void pack(uint8_t* packed, const uint8_t* source, Rows row_at,
                                          const Part& part, int64_t bytes, const uint8_t* destination,
                                          Columns column_at) {
    const uint8_t* from = source + part.column * kSize;
    const int64_t columns_a_row = (part.wide + part.high - 1) / part.high;
    int64_t next = 0;
    for (int64_t i = 0; i < part.valid; ++i) {
      for (const int64_t end = std::min(next + columns_a_row, part.wide); next < end; ++next) {
        fetch_piece(destination + column_at(part.column + next), part.high * kSize);
      }
      copy_piece(packed + i * kStride, from + row_at(part.row + i), bytes);
    }
  }

  [[gnu::always_inline]] static void write(const uint8_t* packed, const uint8_t* source, Rows row_at,
                                           const Part& part, uint8_t* destination, Columns column_at,
                                           bool has_next) {
    const uint8_t* behind = source + (part.column + part.wide) * kSize;
    const int64_t blocks = (part.wide + Block::kColumns - 1) / Block::kColumns;
    const int64_t rows_a_block = has_next ? (part.valid + blocks - 1) / blocks : 0;
    int64_t next = 0;
    for (int64_t c = 0; c < part.wide; c += Block::kColumns) {
      for (const int64_t end = std::min(next + rows_a_block, part.valid); next < end; ++next) {
        fetch_piece(behind + row_at(part.row + next), part.wide * kSize);
      }
      const int64_t column = std::min(c, part.wide - Block::kColumns);
      transpose_columns<Block>(packed + column * kSize, Spaced<kStride>{}, part.high, destination,
                               column_at.from(part.column + column));
    }
  }
};

template <class Block>
class BlockTranspose {
 public:
  static bool fits(const Tile& tile) { return tile.columns >= Block::kColumns && tile.rows >= Block::kRows; }

  // One copy of the loops, however many callers there are.
  [[gnu::noinline]] static void run(const Tile& tile) {
    if (writes_lines(tile)) {
      run_lines(tile);
    } else if (crowds_sets(tile.destination_column, std::min(tile.columns, kLine))) {
      if (crowds_sets(tile.source_row, std::min(tile.rows, kLineRows)) || tile.zero_rows > 0) {
        PackedTranspose<Block, Strided, Strided>::run(tile.source, Strided{tile.source_row}, tile.rows,
                                                      tile.rows - tile.zero_rows, tile.destination,
                                                      Strided{tile.destination_column}, tile.columns);
      } else {
        run_few_columns(tile);
      }
    } else {
      run_direct(tile, 0, tile.rows, columns_a_strip(tile));
    }
  }

 private:
  using Unit = typename Block::Unit;
  static constexpr int64_t kSize = sizeof(Unit);
  static constexpr int64_t kLine = std::max(kLineBytes / kSize, Block::kColumns);
  // Longer pieces of a row are read faster, until a strip of few rows no longer fits into a first-level
  // cache.
  static constexpr int64_t kMaxStrip = std::max(std::min<int64_t>(256, 512 / kSize), kLine);
  // Rows that make a line of the destination.
  static constexpr int64_t kLineRows = kLineBytes / kSize;

  static bool writes_lines(const Tile& tile) {
    if constexpr (kLineRows % Block::kRows != 0) return false;
    return tile.rows >= kLineRows && tile.stores == Stores::kStreaming;
  }

  // Line by line of the destination, by way of a buffer that stays in the first-level cache. The source is
  // read a line of each row at a time. Rows are in pages of their own, or shorter than what processors follow
  // by themselves, so the lines that come next are asked for: into the second-level cache, as requests of the
  // first, which are few, would hold up the loads.
  static void run_lines(const Tile tile) {
    const int64_t first = rows_before_line(tile);
    const int64_t lines = (tile.rows - first) / kLineRows;
    const int64_t end = first + lines * kLineRows;
    const bool is_near = are_near(tile, kLineRows);
    const int64_t panel = (is_near ? 1 : kPanelLines) * kLineRows;
    const int64_t ahead = is_near ? panel * tile.source_row : kStripsAhead * kLine * kSize;
    const int64_t width = std::min(kLine, tile.columns);
    if (first > 0) run_direct(tile, 0, std::max(first, Block::kRows), kMaxStrip);
    for (int64_t r = first; r < end; r += panel) {
      const int64_t rows = std::min(panel, end - r);
      for (int64_t c = 0; c < tile.columns; c += width) {
        run_panel(tile, std::min(c, tile.columns - width), width, r, rows, ahead);
      }
    }
    if (end < tile.rows) run_direct(tile, end, tile.rows, columns_a_strip(tile));
  }

  static constexpr int64_t kPanelLines = 2;
  static constexpr int64_t kStripsAhead = 2;

  // Rows before the first line of the destination; none where columns begin at different places of a line.
  static int64_t rows_before_line(const Tile& tile) {
    const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(tile.destination) % kLineBytes);
    const bool has_lines = tile.destination_column % kLineBytes == 0 && past % kSize == 0;
    const int64_t rows = has_lines && past > 0 ? (kLineBytes - past) / kSize : 0;
    return tile.rows >= rows + kLineRows ? rows : 0;
  }

  // Whether rows lie side by side, and so near that `rows` of them and the next ones fit into a second-level
  // cache.
  static bool are_near(const Tile& tile, int64_t rows) {
    constexpr int64_t kMostPanelBytes = 128 << 10;
    const int64_t row = tile.columns * kSize;
    return tile.source_row >= row && tile.source_row <= 2 * row && tile.source_row * rows <= kMostPanelBytes;
  }

  // `rows` rows from row `r` on, a line or more of each of `columns` columns.
  [[gnu::always_inline]] static void run_panel(const Tile& tile, int64_t first, int64_t columns, int64_t r,
                                               int64_t rows, int64_t ahead) {
    alignas(kLineBytes) uint8_t lines[kPanelLines * kLine * kLineBytes];
    const int64_t bytes = rows * kSize;
    for (int64_t part = 0; part < rows; part += Block::kRows) {
      fetch(tile.source + (r + part) * tile.source_row + first * kSize + ahead, tile.source_row);
      move_rows(tile, first, columns, r + part, lines + part * kSize, bytes);
    }
    uint8_t* destination = tile.destination + first * tile.destination_column + r * kSize;
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t i = 0; i < bytes; i += kLineBytes) {
        Block::store_line(destination + c * tile.destination_column + i, lines + c * bytes + i, tile.stores);
      }
    }
  }

  // A line of each row of a block.
  [[gnu::always_inline]] static void fetch(const uint8_t* source, int64_t source_row) {
    for (int64_t r = 0; r < Block::kRows; ++r) __builtin_prefetch(source + r * source_row, 0, kSecondLevel);
  }

  // Columns whose places share a set of the cache are written a few at a time, from a piece of the source
  // that stays in the cache for the next few.
  static void run_few_columns(const Tile tile) {
    constexpr int64_t kPieceBytes = 16 << 10;
    const int64_t rows = kPieceBytes / std::max<int64_t>(tile.source_row, 1) / kLineRows * kLineRows;
    const int64_t piece = std::min(std::max({rows, 4 * kLineRows, Block::kRows}), tile.rows);
    for (int64_t r = 0; r < tile.rows; r += piece) {
      // The last piece may begin inside the one before.
      const int64_t first = std::min(r, tile.rows - piece);
      transpose_by_columns<Block>(tile.source + first * tile.source_row, Strided{tile.source_row}, piece,
                                  tile.destination + first * kSize, Strided{tile.destination_column},
                                  tile.columns);
    }
  }

  // Where rows lie side by side, a strip of one line is used up before the rows come round again, of others a
  // strip of as many columns as find room in the cache.
  static int64_t columns_a_strip(const Tile& tile) {
    if (tile.rows * kSize <= 2 * kLineBytes) return kMaxStrip;
    if (are_near(tile, 4 * kLineRows)) return kLine;
    int64_t strip = kMaxStrip;
    while (strip > kLine && crowds_sets(tile.destination_column, strip)) strip /= 2;
    return std::max(strip, kLine);
  }

  // Rows [begin, end), `strip` columns at a time.
  static void run_direct(const Tile tile, int64_t begin, int64_t end, int64_t strip) {
    for (int64_t c = 0; c < tile.columns; c += strip) {
      const int64_t first = std::min(c, tile.columns - Block::kColumns);
      const int64_t columns = std::min(strip, tile.columns - first);
      int64_t r = begin;
      if constexpr (Block::kLinesInRegisters) {
        const int64_t whole = makes_lines(tile) ? std::min(end, tile.rows - tile.zero_rows) : begin;
        for (; r + 2 * Block::kRows <= whole; r += 2 * Block::kRows) move_lines(tile, first, columns, r);
      }
      for (; r < end; r += Block::kRows) {
        const int64_t row = std::min(r, tile.rows - Block::kRows);
        move_rows(tile, first, columns, row, tile.destination + first * tile.destination_column + row * kSize,
                  tile.destination_column);
      }
    }
  }

  // Rows that share sets of the cache leave it before a line of them is used up.
  static bool makes_lines(const Tile& tile) { return !crowds_sets(tile.source_row, 2 * Block::kRows); }

  // A line of each column.
  [[gnu::always_inline]] static void move_lines(const Tile& tile, int64_t first, int64_t columns, int64_t r) {
    const uint8_t* source = tile.source + r * tile.source_row + first * kSize;
    uint8_t* destination = tile.destination + first * tile.destination_column + r * kSize;
    for (int64_t c = 0; c < columns; c += Block::kColumns) {
      const int64_t at = std::min(c, columns - Block::kColumns);
      Block::transpose_lines(source + at * kSize, Strided{tile.source_row},
                             destination + at * tile.destination_column, Strided{tile.destination_column});
    }
  }

  // One block of rows from row `r` on, `columns` wide.
  [[gnu::always_inline]] static void move_rows(const Tile& tile, int64_t first, int64_t columns, int64_t r,
                                               uint8_t* destination, int64_t destination_column) {
    const int64_t valid = tile.rows - tile.zero_rows - r;
    const uint8_t* source = tile.source + r * tile.source_row + first * kSize;
    if (valid >= Block::kRows) {
      run_strip(source, tile.source_row, destination, destination_column, columns);
    } else {
      run_completed(std::max<int64_t>(valid, 0), source, tile.source_row, destination, destination_column,
                    columns);
    }
  }

  // Rows behind the valid ones are read where zeros stand.
  [[gnu::noinline]] static void run_completed(int64_t valid, const uint8_t* source, int64_t source_row,
                                              uint8_t* destination, int64_t destination_column,
                                              int64_t columns) {
    alignas(kLineBytes) static constexpr uint8_t kZeros[kMaxStrip * kSize] = {};
    const auto zeros =
        static_cast<int64_t>(reinterpret_cast<intptr_t>(kZeros) - reinterpret_cast<intptr_t>(source));
    int64_t places[Block::kRows];
    for (int64_t r = 0; r < Block::kRows; ++r) places[r] = r < valid ? r * source_row : zeros;
    for (int64_t c = 0; c < columns; c += Block::kColumns) {
      const int64_t at = std::min(c, columns - Block::kColumns);
      Block::transpose(source + at * kSize, Listed{places}, destination + at * destination_column,
                       Strided{destination_column});
    }
  }

  [[gnu::always_inline]] static void run_strip(const uint8_t* source, int64_t source_row,
                                               uint8_t* destination, int64_t destination_column,
                                               int64_t columns) {
    for (int64_t c = 0; c < columns; c += Block::kColumns) {
      const int64_t at = std::min(c, columns - Block::kColumns);
      Block::transpose(source + at * kSize, Strided{source_row}, destination + at * destination_column,
                       Strided{destination_column});
    }
  }
};

// Squares of whole lines on both sides, each line read and written once. Takes at least one square.
template <class Block>
[[gnu::noinline]] void transpose_squares(const uint8_t* source, Listed row_at, int64_t rows,
                                         uint8_t* destination, Listed column_at, int64_t columns) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(typename Block::Unit));
  constexpr int64_t kLine = kLineBytes / kSize;
  alignas(kLineBytes) uint8_t lines[kLine * kLineBytes];
  for (int64_t c = 0; c < columns; c += kLine) {
    const int64_t column = std::min(c, columns - kLine);
    for (int64_t r = 0; r < rows; r += kLine) {
      const int64_t row = std::min(r, rows - kLine);
      for (int64_t part = 0; part < kLine; part += Block::kRows) {
        for (int64_t i = 0; i < kLine; i += Block::kColumns) {
          Block::transpose(source + (column + i) * kSize, row_at.from(row + part),
                           lines + i * kLineBytes + part * kSize, Strided{kLineBytes});
        }
      }
      for (int64_t i = 0; i < kLine; ++i) {
        Block::store_line(destination + column_at(column + i) + row * kSize, lines + i * kLineBytes,
                          Stores::kCached);
      }
    }
  }
}

// Listed rows and columns, in blocks where they fit; see box_transpose.h.
template <class Wide, class Narrow>
void transpose_listed(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  const Listed rows{places.rows};
  const Listed columns{places.columns};
  if constexpr (kLineBytes / int64_t{sizeof(typename Wide::Unit)} % Wide::kRows == 0) {
    if (places.by_lines) {
      return transpose_squares<Wide>(source, rows, places.row_count, destination, columns,
                                     places.column_count);
    }
  }
  if (places.row_count >= Wide::kRows && places.column_count >= Wide::kColumns) {
    transpose_places<Wide>(source, rows, places.row_count, destination, columns, places.column_count,
                           places.strip);
  } else if (places.row_count >= Narrow::kRows && places.column_count >= Narrow::kColumns) {
    transpose_places<Narrow>(source, rows, places.row_count, destination, columns, places.column_count,
                             places.strip);
  } else {
    constexpr auto kSize = static_cast<int64_t>(sizeof(typename Narrow::Unit));
    for (int64_t c = 0; c < places.column_count; ++c) {
      for (int64_t r = 0; r < places.row_count; ++r) {
        std::memcpy(destination + columns(c) + r * kSize, source + rows(r) + c * kSize, kSize);
      }
    }
  }
}

// Rectangles that are narrower than any block.
template <class Unit>
class NarrowTranspose {
 public:
  static void run(const Tile& tile) {
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

// For instruction sets without a way of their own for few rows or columns.
struct NoChannels {
  static bool run(const Tile&) { return false; }
  static bool run_pieces(const Tile&, int64_t, int64_t) { return false; }
  static bool fits_pieces(int64_t, int64_t, int64_t) { return false; }
  static void take_pieces_apart(const Tile&, int64_t, int64_t) {}
};

// The kernel of one width: `Channels` for a few rows or columns, else `Wide` blocks where they fit, else
// `Narrow` ones, else, where there are such, `Half` ones of the fewest rows or `Thin` ones of the fewest
// columns.
template <class Wide, class Narrow, class Channels = NoChannels, class Half = void, class Thin = void>
struct TileKernel {
  static constexpr NestClass kClass = NestClass::kTiles;
  static void move(const Rectangle& rectangle) {
    Tile tile = tile_of(rectangle);
    if (rectangle.source_column == 1) return transpose(tile);
    if (rectangle.source_column == -1) return transpose(from_last_column(tile));
    // A part of a chain that is not complete.
    tile.columns = 1;
    for (int64_t c = 0; c < rectangle.columns; ++c) {
      transpose(tile);
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
    return rows * columns * channels * kSize <= kBufferBytes && kSize <= 4 &&
           Channels::fits_pieces(channels, rows * columns, columns);
  }

  // The pixels of all rows are taken apart into a buffer in the first-level cache, which then has a row of
  // pixels for each channel of each row, in the order of the destination. A transpose makes columns of them.
  [[gnu::noinline]] static void move_pixels(const Rectangle& rectangle, const PixelGroups& groups) {
    alignas(kLineBytes) uint8_t buffer[kBufferBytes];
    const Tile tile = tile_of(rectangle);
    const int64_t channel = tile.rows * tile.columns * kSize;
    const int64_t size = channel * groups.valid_channels;
    Tile all{buffer,     tile.destination, tile.columns, 0, 0, tile.columns * kSize, tile.destination_column,
             tile.stores};
    for (int64_t first = 0; first < groups.count; first += kBufferBytes / size) {
      const int64_t count = std::min(kBufferBytes / size, groups.count - first);
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
      transpose(all);
      all.destination += all.rows * kSize;
    }
  }

 private:
  using Unit = typename Wide::Unit;
  static constexpr int64_t kSize = sizeof(Unit);

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
    if (move_listed(tile, chain)) return true;
    Tile at = tile;
    for (int64_t i = 0; i < chain.repeats; ++i) {
      if (!move_buffered(at, chain)) return false;
      at.source += chain.repeat_source * kSize;
      at.destination += chain.repeat_destination * kSize;
    }
    return true;
  }

  static bool move_buffered(const Tile& tile, const RectangleChain& chain) {
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

  // Shorter runs are copied at too high a price; of longer ones this many elements go through the buffer at a
  // time.
  static constexpr int64_t kMinRun = 16;
  static constexpr int64_t kMostOfRun = kLineBytes / kSize;
  static constexpr int64_t kBufferBytes = 16 << 10;

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

  [[gnu::noinline]] static void transpose(const Tile& tile) {
    if (Channels::run(tile)) return;
    if (BlockTranspose<Wide>::fits(tile)) {
      BlockTranspose<Wide>::run(tile);
    } else if (BlockTranspose<Narrow>::fits(tile)) {
      BlockTranspose<Narrow>::run(tile);
    } else if (has_small_holes(tile)) {
      transpose_with_holes(tile);
    } else if (!transpose_by_half(tile)) {
      NarrowTranspose<Unit>::run(tile);
    }
  }

  // Holes of this many bytes behind the columns of each row may be read, but not behind those of the last;
  // and none between elements of eight bytes, which could be left out of memory one by one.
  static constexpr int64_t kSmallHole = 16;

  static bool has_small_holes(const Tile& tile) {
    const int64_t hole = tile.source_row - tile.columns * kSize;
    return kSize <= 4 && tile.columns < Wide::kColumns && hole <= kSmallHole &&
           tile.source_row >= Wide::kColumns * kSize && tile.zero_rows == 0 && tile.rows > Wide::kRows;
  }

  // Rows are read as whole blocks: a few channels of an image that is stored in slots of more.
  [[gnu::noinline]] static void transpose_with_holes(const Tile tile) {
    alignas(kLineBytes) uint8_t buffer[Wide::kColumns * (kHoledRun + kLineBytes)];
    static_assert(Wide::kRows * kSize <= kHoledRun);
    const int64_t rows = tile.rows - 1;
    Tile part = tile;
    part.columns = Wide::kColumns;
    part.destination = buffer;
    part.destination_column = kHoledRun + kLineBytes;
    part.stores = Stores::kCached;
    for (int64_t r = 0; r < rows; r += kHoledRun / kSize) {
      part.rows = std::clamp(rows - r, Wide::kRows, kHoledRun / kSize);
      // The last part may begin inside the one before.
      const int64_t first = std::min(r, rows - part.rows);
      part.source = tile.source + first * tile.source_row;
      BlockTranspose<Wide>::run(part);
      for (int64_t c = 0; c < tile.columns; ++c) {
        std::memcpy(tile.destination + c * tile.destination_column + first * kSize,
                    buffer + c * part.destination_column, static_cast<size_t>(part.rows * kSize));
      }
    }
    Tile last = tile;
    last.rows = 1;
    last.source += rows * tile.source_row;
    last.destination += rows * kSize;
    NarrowTranspose<Unit>::run(last);
  }

  // Bytes of a column that are made at a time.
  static constexpr int64_t kHoledRun = 512;

  static bool transpose_by_half(const Tile& tile) {
    if constexpr (kHasHalf) {
      if (!BlockTranspose<Half>::fits(tile)) return false;
      BlockTranspose<Half>::run(tile);
      return true;
    }
    return false;
  }

  // The columns of all rows are side by side in the source, for each of the rectangles beside each other. A
  // first transpose brings these together, a second one rows: both have long pieces of memory on one side,
  // and the buffer on the other.
  [[gnu::noinline]] static bool interleave(const Tile tile, const RectangleChain& chain) {
    alignas(kLineBytes) uint8_t buffer[kBufferBytes];
    const int64_t beside = chain.beside + chain.zero_beside;
    const int64_t valid_rows = tile.rows - tile.zero_rows;
    const int64_t size = tile.rows * tile.columns * beside * kSize;
    const int64_t at_once = chain.count > 1 ? kBufferBytes / size : 1;
    if (beside * kSize < kMinRun || size > kBufferBytes || at_once == 0) return false;
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
      fetch_behind(part, part.rows - part.zero_rows);
      transpose(part);
      for (int64_t i = 0; i < count; ++i) {
        uint8_t* to = tile.destination + (first + i) * chain.destination_stride * kSize;
        interleave_rows(tile, buffer + i * size, beside, to);
      }
    }
    return true;
  }

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
      transpose(all);
      all.source += beside * kSize;
      all.destination += tile.destination_column;
    }
  }

  // Asks for what comes behind a few rows that are far apart: the next tile, more often than not. No
  // processor follows as many rows by itself.
  static void fetch_behind(const Tile& tile, int64_t rows) {
    const int64_t bytes = tile.columns * kSize;
    for (int64_t r = 0; r < rows; ++r) {
      const uint8_t* end = tile.source + r * tile.source_row + bytes;
      for (int64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(end + i, 0, kSecondLevel);
    }
  }

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

  // The same for what is written, where places of `run` bytes have no gaps between them: they come in an
  // order that no processor foresees, and a line that is far away holds up the stores behind it.
  static void fetch_places_behind(const uint8_t* destination, const PlaceList& list, int64_t run) {
    const int64_t chain = list.chain * list.chain_stride;
    const int64_t inner = list.inner * list.inner_stride;
    const bool is_dense = (list.inner_stride == run && inner == list.chain_stride) ||
                          (list.chain_stride == run && chain == list.inner_stride);
    const bool goes_on = list.repeats == 1 || list.repeat_stride == run * list.inner * list.chain;
    const int64_t bytes = is_dense && goes_on ? run * list.count() : 0;
    for (int64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(destination + bytes + i, 1);
  }

  // Calls body with the block for so many rows and columns; false where they are too few for any.
  template <class Body>
  static bool with_block(int64_t rows, int64_t columns, Body body) {
    return with_one<Wide>(rows, columns, body) || with_one<Narrow>(rows, columns, body) ||
           with_one<Half>(rows, columns, body) || with_one<Thin>(rows, columns, body);
  }

  template <class Block, class Body>
  static bool with_one(int64_t rows, int64_t columns, Body body) {
    if constexpr (!std::is_void_v<Block>) {
      if (rows < Block::kRows || columns < Block::kColumns) return false;
      body(std::type_identity<Block>{});
      return true;
    }
    return false;
  }

  // In a chain one side is long pieces of memory, and the other a list of short runs. False where nothing is
  // listed: beyond the caches, where lines have to be complete when they are written, and of a few elements.
  static bool move_listed(const Tile& tile, const RectangleChain& chain) {
    if (tile.stores != Stores::kCached || tile.zero_rows > 0) return false;
    const bool by_columns = chain.kind == InnerLoops::Chain::kColumns;
    if ((by_columns ? tile.columns : tile.rows) > kMostPlaces) return false;
    const int64_t rows = by_columns ? tile.rows : tile.rows * chain.count;
    const int64_t columns = by_columns ? tile.columns * chain.count : tile.columns;
    return with_block(rows, columns, [&](auto block) {
      using Block = typename decltype(block)::type;
      if (by_columns) {
        move_listed_columns<Block>(tile, chain);
      } else {
        move_listed_rows<Block>(tile, chain);
      }
    });
  }

  static constexpr int64_t kMostPlaces = 512;
  static constexpr bool kHasHalf = !std::is_void_v<Half>;

  // As many repeats as there is room for where these go on on the other side, else a part of one; of repeats
  // a power of two, which leaves the fewest blocks incomplete.
  static void choose_places(PlaceList& list, int64_t* places, const RectangleChain& chain, bool goes_on) {
    list.chain = std::min(kMostPlaces / list.inner, chain.count);
    list.repeats = 1;
    while (goes_on && list.count() * 2 <= kMostPlaces && list.repeats * 2 <= chain.repeats) list.repeats *= 2;
    list.fill(places);
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
  [[gnu::noinline]] static void move_listed_columns(const Tile tile, const RectangleChain chain) {
    PlaceList list{tile.columns,
                   tile.destination_column,
                   1,
                   chain.destination_stride * kSize,
                   1,
                   chain.repeat_destination * kSize};
    int64_t places[kMostPlaces];
    choose_places(list, places, chain, chain.repeat_source == tile.columns * chain.count);
    const Listed columns{places};
    Tile part = tile;
    part.columns = list.count();
    each_part(list, chain, [&](int64_t repeat, int64_t first, bool has_next) {
      part.source = tile.source + (repeat * chain.repeat_source + first * tile.columns) * kSize;
      part.destination = tile.destination + repeat * list.repeat_stride + first * list.chain_stride;
      const Strided rows{tile.source_row};
      if (tile.rows > kMostOfRun) {
        return move_long<Block>(part.source, rows, tile.rows, part.destination, columns, part.columns,
                                crowds_sets(tile.source_row, tile.rows));
      }
      if (has_next) {
        fetch_behind(part, part.rows);
        fetch_places_behind(part.destination, list, tile.rows * kSize);
      }
      transpose_places<Block>(part.source, rows, tile.rows, part.destination, columns, part.columns,
                              part.columns);
    });
  }

  template <class Block>
  [[gnu::noinline]] static void move_listed_rows(const Tile tile, const RectangleChain chain) {
    PlaceList list{
        tile.rows, tile.source_row, 1, chain.source_stride * kSize, 1, chain.repeat_source * kSize};
    int64_t places[kMostPlaces];
    choose_places(list, places, chain, chain.repeat_destination == tile.rows * chain.count);
    const Listed rows{places};
    each_part(list, chain, [&](int64_t repeat, int64_t first, bool) {
      const uint8_t* from = tile.source + repeat * list.repeat_stride + first * list.chain_stride;
      uint8_t* to = tile.destination + (repeat * chain.repeat_destination + first * tile.rows) * kSize;
      const Strided columns{tile.destination_column};
      if (tile.columns > kMostOfRun) {
        const bool crowds = crowds_sets(tile.source_row, tile.rows) ||
                            crowds_sets(list.chain_stride, list.chain * list.repeats);
        return move_long<Block>(from, rows, list.count(), to, columns, tile.columns, crowds);
      }
      transpose_by_columns<Block>(from, rows, list.count(), to, columns, tile.columns);
    });
  }

  // Rows and columns that are both long.
  template <class Block, class Rows, class Columns>
  static void move_long(const uint8_t* source, Rows row_at, int64_t rows, uint8_t* destination,
                        Columns column_at, int64_t columns, bool crowds) {
    if (crowds) {
      PackedTranspose<Block, Rows, Columns>::run(source, row_at, rows, rows, destination, column_at, columns);
    } else {
      transpose_by_columns<Block>(source, row_at, rows, destination, column_at, columns);
    }
  }

  // The columns of all rectangles are side by side in the source. `at_once` rectangles go through the buffer,
  // and leave it in the order of the destination.
  [[gnu::noinline]] static void move_columns(const Tile tile, int64_t count, int64_t destination_stride) {
    alignas(kLineBytes) uint8_t buffer[kBufferBytes];
    const int64_t run = tile.rows * kSize;
    const int64_t at_once = kBufferBytes / (run * tile.columns);
    for (int64_t first = 0; first < count; first += at_once) {
      const int64_t chain = std::min(at_once, count - first);
      Tile part = tile;
      part.source += first * tile.columns * kSize;
      part.columns = chain * tile.columns;
      part.destination = buffer;
      part.destination_column = run;
      part.stores = Stores::kCached;
      fetch_behind(part, part.rows - part.zero_rows);
      transpose(part);
      for (int64_t c = 0; c < tile.columns; ++c) {
        uint8_t* to = tile.destination + c * tile.destination_column + first * destination_stride;
        copy_runs(to, destination_stride, buffer + c * run, run * tile.columns, run, chain);
      }
    }
  }

  // The rows of all rectangles are side by side in the destination.
  [[gnu::noinline]] static void move_rows(const Tile tile, int64_t count, int64_t source_stride) {
    alignas(kLineBytes) uint8_t buffer[kBufferBytes];
    const int64_t run = tile.columns * kSize;
    const int64_t at_once = kBufferBytes / (run * tile.rows);
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
      transpose(part);
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
