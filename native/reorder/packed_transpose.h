// Transposes rectangles whose rows, or columns, share sets of the cache: those of 1024 x 1024 weights, say.
// Pieces of rows that are long enough to be read fast are packed side by side first, of as many rows as make
// pieces of columns that are written fast. No processor follows so many pieces in pages of their own: those
// that are written next are asked for while rows are packed, and those that are read next while columns are
// written. Beyond the caches pieces of columns are put together first, and leave line by line. Internal to
// each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "io/checked_math.h"
#include "reorder/panel_steps.h"
#include "reorder/transpose_places.h"

namespace tilework {
namespace {

class PackedTranspose {
 public:
  // Rows from `valid_rows` on have no source and become zeros. At least a block.
  PackedTranspose(const BlockMoves& block, const uint8_t* source, At row_at, int64_t rows, int64_t valid_rows,
                  uint8_t* destination, At column_at, int64_t columns, Stores stores)
      : block_(block),
        source_(source),
        row_at_(row_at),
        rows_(rows),
        valid_rows_(valid_rows),
        destination_(destination),
        column_at_(column_at),
        columns_(columns),
        high_(std::min(std::max(std::min(kPieceBytes / block.size, kMostPiece), block.rows), rows)),
        wide_(std::min(piece_of(block.source_size, block.columns), columns)),
        streams_(stores == Stores::kStreaming && high_ * block.size % kLineBytes == 0) {}

  void run() {
    for (int64_t r = 0; r < rows_; r += high_) {
      // The last part may begin inside the one before.
      const int64_t row = std::min(r, rows_ - high_);
      const int64_t valid = std::clamp<int64_t>(valid_rows_ - row, 0, high_);
      std::memset(packed_ + valid * block_.packed_stride, 0,
                  static_cast<size_t>((high_ - valid) * block_.packed_stride));
      for (int64_t c = 0; c < columns_; c += wide_) {
        const Part part{row, valid, std::min(c, columns_ - wide_), c + wide_ < columns_};
        pack(part);
        write(part);
      }
    }
  }

 private:
  // Rows from `row` on, of which `valid` have a source, and columns from `column` on.
  struct Part {
    int64_t row;
    int64_t valid;
    int64_t column;
    bool has_next;
  };

  void pack(const Part& part) {
    const int64_t size = block_.source_size;
    const int64_t bytes = wide_ * size;
    const uint8_t* from = source_ + part.column * size;
    const uint8_t* to = destination_ + part.row * block_.size;
    const int64_t columns_a_row = ceil_div(wide_, high_);
    const int64_t to_fetch = streams_ ? 0 : wide_;
    int64_t next = 0;
    for (int64_t i = 0; i < part.valid; ++i) {
      for (const int64_t end = std::min(next + columns_a_row, to_fetch); next < end; ++next)
        fetch_piece(to + column_at_(part.column + next), high_ * block_.size);
      uint8_t* at = packed_ + i * block_.packed_stride;
      // The compiler unrolls a copy of a known size.
      bytes == kPieceBytes ? copy_piece(at, from + row_at_(part.row + i), kPieceBytes)
                           : copy_piece(at, from + row_at_(part.row + i), bytes);
    }
  }

  void write(const Part& part) {
    const int64_t size = block_.source_size;
    const uint8_t* behind = source_ + (part.column + wide_) * size;
    uint8_t* to = destination_ + part.row * block_.size;
    const int64_t rows_a_block = part.has_next ? ceil_div(part.valid, ceil_div(wide_, block_.columns)) : 0;
    int64_t places[kMostBlockColumns];
    int64_t next = 0;
    for (int64_t c = 0; c < wide_; c += block_.columns) {
      for (const int64_t end = std::min(next + rows_a_block, part.valid); next < end; ++next)
        fetch_piece(behind + row_at_(part.row + next), wide_ * size);
      const int64_t column = std::min(c, wide_ - block_.columns);
      for (int64_t i = 0; i < block_.columns; ++i) places[i] = column_at_(part.column + column + i);
      const uint8_t* from = packed_ + column * size;
      if (streams_) {
        stream_columns(from, to, places);
      } else {
        block_.packed(from, high_, to, places);
      }
    }
  }

  // Whole lines of a block's columns.
  void stream_columns(const uint8_t* packed, uint8_t* destination, const int64_t* column_at) {
    const int64_t bytes = high_ * block_.size;
    int64_t places[kMostBlockColumns];
    for (int64_t c = 0; c < block_.columns; ++c) places[c] = c * bytes;
    block_.packed(packed, high_, lines_, places);
    for (int64_t c = 0; c < block_.columns; ++c)
      block_.store_lines(destination + column_at[c], lines_ + c * bytes, bytes, Stores::kStreaming);
  }

  const BlockMoves& block_;
  const uint8_t* source_;
  At row_at_;
  int64_t rows_;
  int64_t valid_rows_;
  uint8_t* destination_;
  At column_at_;
  int64_t columns_;
  // Rows and columns of a part.
  int64_t high_;
  int64_t wide_;
  bool streams_;
  alignas(kLineBytes) uint8_t packed_[kMostPiece * (kPieceBytes + kLineBytes)];
  alignas(kLineBytes) uint8_t lines_[kMostBlockColumns * kMostPiece];
};

}  // namespace
}  // namespace tilework
