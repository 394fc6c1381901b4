// Transposes rows and columns of any places in blocks that one instruction set moves at a time. Shared by the
// kernels of all instruction sets; each brings its blocks:
//
//   struct Block {
//     using Unit = uint32_t;
//     // Of an element of the source, which is cast on the way where that is not sizeof(Unit).
//     static constexpr int64_t kSourceSize;
//     static constexpr int64_t kRows, kColumns;
//     // Column c of row r: source + row_at(r) + c * kSourceSize, in bytes, goes to
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
#include <cstring>
#include <type_traits>

#include "reorder/leaf/tile.h"

namespace tilework {
namespace {

// Calls body with the first of some blocks that is no larger than so many rows and columns; false where none
// is. Blocks may be void.
template <class... Blocks, class Body>
bool with_block(int64_t rows, int64_t columns, Body body) {
  const auto with_one = [&](auto block) {
    using Block = typename decltype(block)::type;
    if constexpr (!std::is_void_v<Block>) {
      if (rows < Block::kRows || columns < Block::kColumns) return false;
      body(block);
      return true;
    }
    return false;
  };
  return (... || with_one(std::type_identity<Blocks>{}));
}

// What is done before a block: nothing.
struct NothingBefore {
  void operator()() const {}
};

// Rows or columns of any places, `strip` columns at a time, and a block at least. Calls `before` for each
// block.
template <class Block, class Rows, class Columns, class Before = NothingBefore>
[[gnu::noinline]] void transpose_places(const uint8_t* source, Rows row_at, int64_t rows,
                                        uint8_t* destination, Columns column_at, int64_t columns,
                                        int64_t strip, Before before = {}) {
  constexpr int64_t kSize = sizeof(typename Block::Unit);
  strip = std::max<int64_t>(strip, Block::kColumns);
  for (int64_t first = 0; first < columns; first += strip) {
    const int64_t end = std::min(first + strip, columns);
    const auto each_column = [&](auto move) {
      for (int64_t c = first; c < end; c += Block::kColumns) {
        const int64_t column = std::min(c, columns - Block::kColumns);
        before();
        move(source + column * Block::kSourceSize, column_at.from(column));
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
  for (int64_t c = 0; c < columns; c += Block::kColumns) {
    const int64_t column = std::min(c, columns - Block::kColumns);
    transpose_columns<Block>(source + column * Block::kSourceSize, row_at, rows, destination,
                             column_at.from(column));
  }
}

}  // namespace
}  // namespace tilework
