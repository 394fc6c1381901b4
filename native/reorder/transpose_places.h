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
//     // Parts of a block, where `kTransposesParts` is true: its last `kCount` columns alone, a half or a
//     // quarter of them; and the first half of its rows, with `kMore` rows more at places of their own and
//     // zeros in place of the others.
//     static constexpr bool kTransposesParts;
//     template <int kCount, class Rows, class Columns>
//     static void transpose_last(const uint8_t* source, Rows row_at, uint8_t* destination,
//                                Columns column_at);
//     template <int kMore, class Rows, class Columns>
//     static void transpose_few_rows(const uint8_t* source, Rows row_at, Listed more_at,
//                                    uint8_t* destination, Columns column_at);
//     // Writes cache lines; the same for all blocks of an instruction set.
//     struct Lines {
//       static void store_line(uint8_t* destination, const uint8_t* line, Stores stores);
//     };
//   };
//
// What walks over rectangles is compiled once for all blocks of an instruction set, and calls a block's
// functions (BlockMoves) for a whole strip of it.
//
// Rectangles that are no multiple of a block end with a block that overlaps the one before: it writes the
// same values again, which costs less than masks and works on every processor.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "reorder/cache_lines.h"
#include "reorder/tile.h"

namespace tilework {
namespace {

// Zeros that rows without a source are read from.
constexpr int64_t kZeroBytes = 4096;
alignas(kLineBytes) constexpr uint8_t kZeros[kZeroBytes] = {};

// Place of those zeros for a source that begins at `source`.
inline int64_t place_of_zeros(const uint8_t* source) {
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(kZeros) - reinterpret_cast<intptr_t>(source));
}

// The most rows and columns that a block may have.
constexpr int64_t kMostBlockRows = 64;
constexpr int64_t kMostBlockColumns = 64;
// Lines of each column that a panel makes at most.
constexpr int64_t kPanelLines = 2;
// Parts of a block (kTransposesParts): a quarter of its columns, or an eighth of its rows, or half of them.
enum class BlockPart : uint8_t { kFew, kHalf };

// Bytes of a piece of a row, or of a column, that is packed (packed_transpose.h); of bytes, half as many.
constexpr int64_t kPieceBytes = 256;
constexpr int64_t kMostPiece = 128;

// Columns of a piece. Of fewer columns, lines of the source are read one by one.
constexpr int64_t piece_of(int64_t source_size, int64_t block_columns) {
  return std::max(std::min(kPieceBytes / source_size, kMostPiece), block_columns);
}

// How one kind of block moves rectangles of at least a block. Strides are in bytes.
struct BlockMoves {
  // Bytes of a unit of the destination, and of an element of the source.
  int64_t size;
  int64_t source_size;
  int64_t rows;
  int64_t columns;
  // Rows and columns with constant distances.
  void (*even)(const uint8_t* source, int64_t row_stride, int64_t rows, uint8_t* destination,
               int64_t column_stride, int64_t columns);
  // The same for a multiple of twice the block's rows, a line of each column at a time; null where registers
  // do not hold that.
  void (*lines)(const uint8_t* source, int64_t row_stride, int64_t rows, uint8_t* destination,
                int64_t column_stride, int64_t columns);
  // The same as `even`, where rows from `valid` on have no source and become zeros.
  void (*completed)(const uint8_t* source, int64_t row_stride, int64_t rows, int64_t valid,
                    uint8_t* destination, int64_t column_stride, int64_t columns);
  // Rows from a list, which casts do not have. Asks for lines before each block.
  void (*listed)(const uint8_t* source, const int64_t* row_at, int64_t rows, uint8_t* destination,
                 Strided column_at, int64_t columns, LineRequests next);
  // The same as `even`, all rows of a block of columns at a time: one long piece of each column.
  void (*by_columns)(const uint8_t* source, int64_t row_stride, int64_t rows, uint8_t* destination,
                     int64_t column_stride, int64_t columns);
  // Of one block of listed columns, and rows that are packed `packed_stride` bytes apart.
  void (*packed)(const uint8_t* source, int64_t rows, uint8_t* destination, const int64_t* column_at);
  int64_t packed_stride;
  // Null where blocks have no parts: the last columns of one block of columns, and one block of rows of which
  // the first half and so much more are there; these are at places of their own, and the others become zeros.
  void (*last)(BlockPart part, const uint8_t* source, int64_t row_stride, int64_t rows, uint8_t* destination,
               int64_t column_stride);
  void (*few_rows)(BlockPart more, const uint8_t* source, int64_t row_stride, const int64_t* more_at,
                   uint8_t* destination, int64_t column_stride, int64_t columns);
  // Rows that make a line or two of the destination, of which those from `valid` on become zeros, times at
  // most line_columns, by way of a buffer. Asks for the lines of as many rows from `next` on, `step` apart.
  void (*panel)(const uint8_t* source, int64_t row_stride, int64_t rows, int64_t valid, uint8_t* destination,
                int64_t column_stride, int64_t columns, Stores stores, const uint8_t* next, int64_t step);
  // Writes `bytes` of one column: a multiple of lines.
  void (*store_lines)(uint8_t* destination, const uint8_t* lines, int64_t bytes, Stores stores);

  // Rows that make a line of the destination; columns that make a line of the source, or a block.
  int64_t line_rows = kLineBytes / size;
  int64_t line_columns = std::max(kLineBytes / source_size, columns);
  // Longer pieces of a row are read faster, until a strip of few rows no longer fits into a first-level
  // cache.
  int64_t max_strip = std::max(std::min<int64_t>(256, 512 / source_size), line_columns);

  bool fits(int64_t all_rows, int64_t all_columns) const {
    return all_rows >= rows && all_columns >= columns;
  }
  // Of a count, what is a multiple of a block's rows or columns, which are powers of two.
  static int64_t whole(int64_t count, int64_t block) { return count & -block; }
};

template <class Lines>
[[gnu::always_inline]] inline void store_each_line(uint8_t* destination, const uint8_t* lines, int64_t bytes,
                                                   Stores stores) {
  for (int64_t i = 0; i < bytes; i += kLineBytes) Lines::store_line(destination + i, lines + i, stores);
}
template <class Lines>
void store_lines(uint8_t* destination, const uint8_t* lines, int64_t bytes, Stores stores) {
  store_each_line<Lines>(destination, lines, bytes, stores);
}

// The functions of BlockMoves. Their loops are written out: the compiler inlines no block into a lambda.
template <class Block>
class MovesOf {
 public:
  static void even(const uint8_t* source, int64_t row_stride, int64_t rows, uint8_t* destination,
                   int64_t column_stride, int64_t columns) {
    for (int64_t r = 0; r < rows; r += Block::kRows) {
      const int64_t row = std::min(r, rows - Block::kRows);
      const uint8_t* from = source + row * row_stride;
      uint8_t* to = destination + row * kSize;
      for (int64_t c = 0; c < columns; c += Block::kColumns) {
        const int64_t column = std::min(c, columns - Block::kColumns);
        Block::transpose(from + column * kSourceSize, Strided{row_stride}, to + column * column_stride,
                         Strided{column_stride});
      }
    }
  }

  static void lines(const uint8_t* source, int64_t row_stride, int64_t rows, uint8_t* destination,
                    int64_t column_stride, int64_t columns) {
    for (int64_t r = 0; r < rows; r += 2 * Block::kRows) {
      const uint8_t* from = source + r * row_stride;
      uint8_t* to = destination + r * kSize;
      for (int64_t c = 0; c < columns; c += Block::kColumns) {
        const int64_t column = std::min(c, columns - Block::kColumns);
        Block::transpose_lines(from + column * kSourceSize, Strided{row_stride}, to + column * column_stride,
                               Strided{column_stride});
      }
    }
  }

  static void completed(const uint8_t* source, int64_t row_stride, int64_t rows, int64_t valid,
                        uint8_t* destination, int64_t column_stride, int64_t columns) {
    int64_t places[2 * Block::kRows];
    const auto list = [&](const uint8_t* from, int64_t left, int64_t count) {
      for (int64_t i = 0; i < count; ++i) places[i] = i < left ? i * row_stride : place_of_zeros(from);
    };
    int64_t r = 0;
    if constexpr (Block::kLinesInRegisters) {
      for (; r + 2 * Block::kRows <= rows; r += 2 * Block::kRows) {
        const uint8_t* from = source + r * row_stride;
        list(from, valid - r, 2 * Block::kRows);
        for (int64_t c = 0; c < columns; c += Block::kColumns) {
          const int64_t column = std::min(c, columns - Block::kColumns);
          Block::transpose_lines(from + column * kSourceSize, Listed{places},
                                 destination + r * kSize + column * column_stride, Strided{column_stride});
        }
      }
    }
    for (; r < rows; r += Block::kRows) {
      const int64_t row = std::min(r, rows - Block::kRows);
      const uint8_t* from = source + row * row_stride;
      list(from, valid - row, Block::kRows);
      uint8_t* to = destination + row * kSize;
      if constexpr (Block::kTransposesParts) {
        constexpr int64_t kHalf = Block::kRows / 2;
        constexpr int64_t kFew = Block::kRows / 8;
        if (valid - row > kHalf && valid - row <= kHalf + kFew) {
          half_and<kFew>(from, row_stride, places + kHalf, to, column_stride, columns);
          continue;
        }
      }
      for (int64_t c = 0; c < columns; c += Block::kColumns) {
        const int64_t column = std::min(c, columns - Block::kColumns);
        Block::transpose(from + column * kSourceSize, Listed{places}, to + column * column_stride,
                         Strided{column_stride});
      }
    }
  }

  template <class Columns>
  static void listed(const uint8_t* source, const int64_t* row_at, int64_t rows, uint8_t* destination,
                     Columns column_at, int64_t columns, LineRequests next) {
    int64_t r = 0;
    if constexpr (Block::kLinesInRegisters) {
      for (; r + 2 * Block::kRows <= rows; r += 2 * Block::kRows) {
        for (int64_t c = 0; c < columns; c += Block::kColumns) {
          const int64_t column = std::min(c, columns - Block::kColumns);
          next();
          Block::transpose_lines(source + column * kSourceSize, Listed{row_at + r}, destination + r * kSize,
                                 column_at.from(column));
        }
      }
    }
    for (; r < rows; r += Block::kRows) {
      const int64_t row = std::min(r, rows - Block::kRows);
      for (int64_t c = 0; c < columns; c += Block::kColumns) {
        const int64_t column = std::min(c, columns - Block::kColumns);
        next();
        Block::transpose(source + column * kSourceSize, Listed{row_at + row}, destination + row * kSize,
                         column_at.from(column));
      }
    }
  }

  static void panel(const uint8_t* source, int64_t row_stride, int64_t rows, int64_t valid,
                    uint8_t* destination, int64_t column_stride, int64_t columns, Stores stores,
                    const uint8_t* next, int64_t step) {
    constexpr int64_t kLineColumns = std::max(kLineBytes / kSourceSize, Block::kColumns);
    alignas(kLineBytes) uint8_t lines[kPanelLines * kLineColumns * kLineBytes];
    const int64_t bytes = rows * kSize;
    for (int64_t r = 0; r < rows; r += Block::kRows) {
      for (int64_t i = 0; i < Block::kRows; ++i)
        fetch_piece(next + (r + i) * step, kLineColumns * kSourceSize);
      const uint8_t* from = source + r * row_stride;
      uint8_t* to = lines + r * kSize;
      if (r + Block::kRows > valid) {
        completed(from, row_stride, Block::kRows, valid - r, to, bytes, columns);
        continue;
      }
      for (int64_t c = 0; c < columns; c += Block::kColumns) {
        const int64_t column = std::min(c, columns - Block::kColumns);
        Block::transpose(from + column * kSourceSize, Strided{row_stride}, to + column * bytes,
                         Strided{bytes});
      }
    }
    for (int64_t c = 0; c < columns; ++c)
      store_each_line<typename Block::Lines>(destination + c * column_stride, lines + c * bytes, bytes,
                                             stores);
  }

  // One block of columns. Nothing but the places of rows and columns takes registers and instructions, of
  // which a processor has to see many lines far ahead to wait for them all at once.
  template <class Rows, class Columns>
  [[gnu::always_inline]] static void long_columns(const uint8_t* source, Rows row_at, int64_t rows,
                                                  uint8_t* destination, Columns column_at) {
    const auto few = Few<Block::kColumns>::of(column_at);
    int64_t r = 0;
    if constexpr (Block::kMakesLines) {
      for (; r + 2 * Block::kRows <= rows; r += 2 * Block::kRows) {
        Block::transpose_lines(source + row_at(r), row_at, destination + r * kSize, few);
      }
    }
    for (; r < rows; r += Block::kRows) {
      const int64_t row = std::min(r, rows - Block::kRows);
      Block::transpose(source + row_at(row), row_at, destination + row * kSize, few);
    }
  }
  static void by_columns(const uint8_t* source, int64_t row_stride, int64_t rows, uint8_t* destination,
                         int64_t column_stride, int64_t columns) {
    for (int64_t c = 0; c < columns; c += Block::kColumns) {
      const int64_t column = std::min(c, columns - Block::kColumns);
      long_columns(source + column * kSourceSize, Strided{row_stride}, rows,
                   destination + column * column_stride, Strided{column_stride});
    }
  }
  static void packed(const uint8_t* source, int64_t rows, uint8_t* destination, const int64_t* column_at) {
    long_columns(source, Spaced<kPackedStride>{}, rows, destination, Listed{column_at});
  }
  // A line more than the columns of a piece (piece_of), so that rows do not share a set of the cache.
  static constexpr int64_t kPackedStride =
      (piece_of(Block::kSourceSize, Block::kColumns) * Block::kSourceSize + kLineBytes - 1) / kLineBytes *
          kLineBytes +
      kLineBytes;

  static void last(BlockPart part, const uint8_t* source, int64_t row_stride, int64_t rows,
                   uint8_t* destination, int64_t column_stride) {
    part == BlockPart::kFew
        ? last_of<Block::kColumns / 4>(source, row_stride, rows, destination, column_stride)
        : last_of<Block::kColumns / 2>(source, row_stride, rows, destination, column_stride);
  }

  static void few_rows(BlockPart more, const uint8_t* source, int64_t row_stride, const int64_t* more_at,
                       uint8_t* destination, int64_t column_stride, int64_t columns) {
    more == BlockPart::kFew
        ? half_and<Block::kRows / 8>(source, row_stride, more_at, destination, column_stride, columns)
        : half_and<Block::kRows / 2>(source, row_stride, more_at, destination, column_stride, columns);
  }

 private:
  static constexpr int64_t kSize = sizeof(typename Block::Unit);
  static constexpr int64_t kSourceSize = Block::kSourceSize;

  template <int kCount>
  static void last_of(const uint8_t* source, int64_t row_stride, int64_t rows, uint8_t* destination,
                      int64_t column_stride) {
    for (int64_t r = 0; r < rows; r += Block::kRows) {
      const int64_t row = std::min(r, rows - Block::kRows);
      Block::template transpose_last<kCount>(source + row * row_stride, Strided{row_stride},
                                             destination + row * kSize, Strided{column_stride});
    }
  }

  template <int kMore>
  static void half_and(const uint8_t* source, int64_t row_stride, const int64_t* more_at,
                       uint8_t* destination, int64_t column_stride, int64_t columns) {
    for (int64_t c = 0; c < columns; c += Block::kColumns) {
      const int64_t column = std::min(c, columns - Block::kColumns);
      Block::template transpose_few_rows<kMore>(source + column * kSourceSize, Strided{row_stride},
                                                Listed{more_at}, destination + column * column_stride,
                                                Strided{column_stride});
    }
  }
};

template <class Block>
constexpr BlockMoves moves_of_block() {
  static_assert(Block::kRows <= kMostBlockRows && Block::kColumns <= kMostBlockColumns);
  using Moves = MovesOf<Block>;
  BlockMoves moves{.size = sizeof(typename Block::Unit),
                   .source_size = Block::kSourceSize,
                   .rows = Block::kRows,
                   .columns = Block::kColumns,
                   .even = Moves::even,
                   .lines = nullptr,
                   .completed = Moves::completed,
                   .listed = nullptr,
                   .by_columns = Moves::by_columns,
                   .packed = Moves::packed,
                   .packed_stride = Moves::kPackedStride,
                   .last = nullptr,
                   .few_rows = nullptr,
                   .panel = Moves::panel,
                   .store_lines = store_lines<typename Block::Lines>};
  static_assert(std::has_single_bit(uint64_t{Block::kRows}) &&
                std::has_single_bit(uint64_t{Block::kColumns}));
  if constexpr (Block::kLinesInRegisters) moves.lines = Moves::lines;
  if constexpr (Block::kSourceSize == sizeof(typename Block::Unit))
    moves.listed = Moves::template listed<Strided>;
  if constexpr (Block::kTransposesParts) {
    moves.last = Moves::last;
    moves.few_rows = Moves::few_rows;
  }
  return moves;
}

template <class Block>
constexpr BlockMoves kMoves = moves_of_block<Block>();

}  // namespace
}  // namespace tilework
