// Transposes rectangles whose rows, or columns, share sets of the cache: those of 1024 x 1024 weights, say.
// Internal to each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/leaf/transpose_places.h"

namespace tilework {
namespace {

// The same where rows, or columns, share sets of the cache: pieces of rows that are long enough to be read
// fast are packed side by side first, of as many rows as make pieces of columns that are written fast. Rows
// from `valid_rows` on have no source and become zeros. No processor follows so many pieces in pages of their
// own: those that are written next are asked for while rows are packed, and those that are read next while
// columns are written. Beyond the caches pieces of columns are put together first, and leave line by line.
template <class Block>
class PackedTranspose {
 public:
  // Columns of a piece that is packed. Of fewer columns, lines of the source are read one by one.
  static constexpr int64_t kPiece = std::max<int64_t>(
      std::min(kPackedPieceBytes.value / Block::kSourceSize, kPackedPieceUnits.value), Block::kColumns);

  // Rows that are packed together.
  static constexpr int64_t kRows = std::max<int64_t>(
      std::min(kPackedPieceBytes.value / int64_t{sizeof(typename Block::Unit)}, kPackedPieceUnits.value),
      Block::kRows);

  [[gnu::noinline]] static void run(const uint8_t* source, At row_at, int64_t rows, int64_t valid_rows,
                                    uint8_t* destination, At column_at, int64_t columns, Stores stores) {
    alignas(kLineBytes) uint8_t packed[kRows * kStride];
    constexpr int64_t kLineRows = kLineBytes / kSize;
    constexpr int64_t kLineColumns = std::max<int64_t>(kLineBytes / kSourceSize, Block::kColumns);
    // Or a part that is rounded up to lines would not fit into `packed`.
    static_assert(kRows % kLineRows == 0 && kPiece % kLineColumns == 0);
    const int64_t high = part_of(rows, kRows, kLineRows);
    const bool streams = stores == Stores::kStreaming && high * kSize % kLineBytes == 0;
    if (streams) TILEWORK_WAY("packed: columns are streamed");
    const int64_t wide = part_of(columns, kPiece, kLineColumns);
    for (int64_t r = 0; r < rows; r += high) {
      // The last part may begin inside the one before.
      const int64_t row = std::min(r, rows - high);
      const int64_t valid = std::clamp<int64_t>(valid_rows - row, 0, high);
      std::memset(packed + valid * kStride, 0, static_cast<size_t>((high - valid) * kStride));
      for (int64_t c = 0; c < columns; c += wide) {
        const int64_t column = std::min(c, columns - wide);
        const Part part{row, valid, high, column, wide, streams};
        uint8_t* to = destination + row * kSize;
        if (wide == kPiece) {
          pack(packed, source, row_at, part, kPiece * kSourceSize, to, column_at);
        } else {
          pack(packed, source, row_at, part, wide * kSourceSize, to, column_at);
        }
        write(packed, source, row_at, part, to, column_at, c + wide < columns);
      }
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(typename Block::Unit);
  static constexpr int64_t kSourceSize = Block::kSourceSize;
  // A line more than the columns, so that rows do not share a set of the cache.
  static constexpr int64_t kStride =
      (kPiece * kSourceSize + kLineBytes - 1) / kLineBytes * kLineBytes + kLineBytes;

  // As few equal parts of `count` as there are with at most `most` each: whole lines, as far as there are so
  // many.
  static int64_t part_of(int64_t count, int64_t most, int64_t line) {
    const int64_t parts = ceil_div(count, most);
    return std::min(ceil_div(count, parts * line) * line, count);
  }

  // Rows [row, row + high), of which `valid` have a source, and columns [column, column + wide).
  struct Part {
    int64_t row;
    int64_t valid;
    int64_t high;
    int64_t column;
    int64_t wide;
    bool streams;
  };

  [[gnu::always_inline]] static void pack(uint8_t* packed, const uint8_t* source, At row_at, const Part& part,
                                          int64_t bytes, const uint8_t* destination, At column_at) {
    const uint8_t* from = source + part.column * kSourceSize;
    const int64_t columns_a_row = ceil_div(part.wide, part.high);
    const int64_t to_fetch = part.streams ? 0 : part.wide;
    int64_t next = 0;
    for (int64_t i = 0; i < part.valid; ++i) {
      for (const int64_t end = std::min(next + columns_a_row, to_fetch); next < end; ++next) {
        fetch_piece(destination + column_at(part.column + next), part.high * kSize);
      }
      copy_piece(packed + i * kStride, from + row_at(part.row + i), bytes);
    }
  }

  [[gnu::always_inline]] static void write(const uint8_t* packed, const uint8_t* source, At row_at,
                                           const Part& part, uint8_t* destination, At column_at,
                                           bool has_next) {
    const uint8_t* behind = source + (part.column + part.wide) * kSourceSize;
    const int64_t blocks = ceil_div(part.wide, Block::kColumns);
    const int64_t rows_a_block = has_next ? ceil_div(part.valid, blocks) : 0;
    int64_t next = 0;
    for (int64_t c = 0; c < part.wide; c += Block::kColumns) {
      for (const int64_t end = std::min(next + rows_a_block, part.valid); next < end; ++next) {
        fetch_piece(behind + row_at(part.row + next), part.wide * kSourceSize);
      }
      const int64_t column = std::min(c, part.wide - Block::kColumns);
      const uint8_t* from = packed + column * kSourceSize;
      const At to = column_at.from(part.column + column);
      if (part.streams) {
        stream_columns(from, part.high, destination, to);
      } else {
        transpose_columns<Block>(from, Spaced<kStride>{}, part.high, destination, to);
      }
    }
  }

  // Whole lines of a block's columns.
  [[gnu::always_inline]] static void stream_columns(const uint8_t* packed, int64_t high, uint8_t* destination,
                                                    At column_at) {
    constexpr int64_t kColumn = kRows * kSize;
    alignas(kLineBytes) uint8_t lines[Block::kColumns * kColumn];
    transpose_columns<Block>(packed, Spaced<kStride>{}, high, lines, Spaced<kColumn>{});
    for (int64_t c = 0; c < Block::kColumns; ++c) {
      for (int64_t i = 0; i < high * kSize; i += kLineBytes) {
        Block::store_line(destination + column_at(c) + i, lines + c * kColumn + i, Stores::kStreaming);
      }
    }
  }
};

}  // namespace
}  // namespace tilework
