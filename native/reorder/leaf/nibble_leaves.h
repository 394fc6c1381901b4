// Leaves of panels of 4-bit elements. Of two rows that follow each other in the destination each column gets
// one byte, so pairs of rows are made rows of bytes: in registers where blocks fit (nibbles.h), else in a
// buffer, from where a leaf of bytes moves them. Internal to each file, as leaves.h.
#pragma once

#include <algorithm>
#include <cstring>

#include "policy/thresholds.h"
#include "reorder/leaf/leaves.h"
#include "reorder/leaf/nibbles.h"
#include "reorder/plan/tiling.h"

namespace tilework {
namespace {

// Units of any size, one by one.
void move_nibble_units(const Panel& panel) {
  TILEWORK_TAKES(Way::kNibbleUnits);
  const Panel one = merged_runs(panel);
  const At row_at{one.row_at, one.row_stride};
  const At column_at{one.column_at, one.column_stride};
  const int64_t unit = one.unit_bytes;
  const int64_t valid = one.rows - one.zero_rows;
  at_offsets(one, [&](int64_t s, int64_t d) {
    for (int64_t c = 0; c < one.columns; ++c) {
      if (column_at(c) == kDropped) continue;
      const int64_t from = s + c * one.column_step;
      const int64_t to = d + column_at(c);
      for (int64_t r = 0; r < one.rows; ++r) {
        if (r >= valid || row_at(r) == kNoSource) {
          zero_nibbles(one.destination, to + r * unit, unit);
        } else {
          copy_nibbles(one.source, from + row_at(r), one.destination, to + r * unit, unit);
        }
      }
    }
    if (one.rest_bytes == 0 && one.zero_bytes == 0) return;
    const int64_t end = d + one.rows * unit;
    copy_nibbles(one.source, s + row_at(one.rows), one.destination, end, one.rest_bytes);
    zero_nibbles(one.destination, end + one.rest_bytes, one.zero_bytes);
  });
}

template <class Machine>
class NibbleTiles {
 public:
  explicit NibbleTiles(const Panel& panel)
      : panel_(merged(panel)),
        row_at_{panel_.row_at, panel_.row_stride},
        column_at_{panel_.column_at, panel_.column_stride},
        has_whole_bytes_(panel_.holes == 0 && panel_.column_step == 1 && has_even_rows()) {
    if (panel_.row_at != nullptr) return;
    for (int64_t i = 0; i < std::min(2 * kPairs, panel_.rows); ++i) rows_[i] = i * panel_.row_stride / 2;
  }

  // Of the first columns.
  Way way() {
    const int64_t s = panel_.source_offset;
    for (int64_t half : {0, 1}) {
      list_columns(panel_.destination_offset, 0, at_most(panel_.columns, kNibbleColumns), half);
      const int64_t pairs = at_most((panel_.rows - half) / 2, kNibblePairs);
      if (dropped_ < columns_) return fits_blocks(s, pairs) ? Way::kNibbleBlocks : Way::kNibblePairs;
    }
    return Way::kNibblePairs;
  }

  void run() {
    at_offsets(panel_, [&](int64_t s, int64_t d) {
      for (int64_t c = 0; c < panel_.columns; c += kWide) {
        // Columns that begin with the low half of a byte, then those that begin with the high one.
        for (int64_t half : {0, 1}) {
          list_columns(d, c, at_most(panel_.columns - c, kNibbleColumns), half);
          if (dropped_ < columns_) move_rows(s + c * panel_.column_step, d, c, half);
        }
      }
    });
  }

 private:
  static constexpr int64_t kWide = kNibbleColumns.value;
  static constexpr int64_t kPairs = kNibblePairs.value;
  static constexpr int64_t kRowBytes = kWide + 32;
  // Columns with gaps in the source are packed from so many of it.
  static constexpr int64_t kWindow = kWide * kMaxSparseStep.value;

  bool has_even_rows() const {
    if (panel_.row_at == nullptr) return panel_.row_stride % 2 == 0;
    return std::none_of(panel_.row_at, panel_.row_at + panel_.rows, [](int64_t at) { return at % 2 != 0; });
  }

  // Bytes of the destination at which the first pair of rows of each column goes.
  void list_columns(int64_t d, int64_t first, int64_t columns, int64_t half) {
    columns_ = columns;
    const int64_t begin = d + half + (panel_.column_at == nullptr ? first * panel_.column_stride : 0);
    is_even_ = panel_.column_at == nullptr && (columns == 1 || panel_.column_stride % 2 == 0);
    if (is_even_) {
      dropped_ = begin % 2 == 0 ? 0 : columns;
      base_ = begin / 2;
      return;
    }
    dropped_ = 0;
    base_ = d / 2;
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t at = column_at_(first + c);
      const bool is_other = at == kDropped || (d + half + at) % 2 != 0;
      list_[c] = is_other ? kDropped : (d + half + at) / 2 - base_;
      dropped_ += is_other;
    }
  }

  void move_rows(int64_t s, int64_t d, int64_t first_column, int64_t half) {
    if (half != 0) move_row(s, d, first_column, half, 0);
    int64_t r = half;
    while (r + 2 <= panel_.rows) {
      const int64_t pairs = at_most((panel_.rows - r) / 2, kNibblePairs);
      uint8_t* destination = panel_.destination + base_ + (r - half) / 2;
      if (fits_blocks(s, pairs)) {
        move_blocks(s, r, pairs, destination);
      } else {
        for (int64_t i = 0; i < pairs; ++i)
          pair_rows(place(s, r + 2 * i), place(s, r + 2 * i + 1), buffer_ + i * kRowBytes);
        move_bytes(pairs, destination);
      }
      r += 2 * pairs;
    }
    if (r < panel_.rows) move_row(s, d, first_column, half, r);
  }

  // Pairs of rows, and columns, that begin with the low half of a byte.
  bool fits_blocks(int64_t s, int64_t pairs) const {
    const bool has_columns = dropped_ == 0 && columns_ % 2 == 0 && columns_ >= NibbleBlock::kColumns;
    return has_whole_bytes_ && s % 2 == 0 && has_columns && pairs >= NibbleBlock::kPairs;
  }

  void move_blocks(int64_t s, int64_t r, int64_t pairs, uint8_t* destination) {
    using Block = NibbleBlock;
    TILEWORK_TAKES(Way::kNibbleBlocks);
    const uint8_t* source = panel_.source + s / 2;
    if (panel_.row_at == nullptr) {
      source += r * panel_.row_stride / 2;
    } else {
      for (int64_t i = 0; i < 2 * pairs; ++i) rows_[i] = panel_.row_at[r + i] / 2;
    }
    const auto move = [&](auto column_at) {
      for (int64_t c = 0; c < columns_; c += Block::kColumns) {
        const int64_t column = std::min(c, columns_ - Block::kColumns);
        for (int64_t i = 0; i < pairs; i += Block::kPairs) {
          const int64_t pair = std::min(i, pairs - Block::kPairs);
          Block::transpose(source + column / 2, Listed{rows_ + 2 * pair}, destination + pair,
                           column_at.from(column));
        }
      }
    };
    is_even_ ? move(Strided{panel_.column_stride / 2}) : move(Listed{list_});
  }

  int64_t place(int64_t s, int64_t r) const {
    const bool is_hole = r >= panel_.rows - panel_.zero_rows || row_at_(r) == kNoSource;
    return is_hole ? kNoNibbles : s + row_at_(r);
  }

  void pair_rows(int64_t low, int64_t high, uint8_t* bytes) {
    if (panel_.column_step == 1) return pair_nibbles(panel_.source, low, high, columns_, bytes);
    pair_nibbles(panel_.source, low, high, (columns_ - 1) * panel_.column_step + 1, window_);
    pack<Machine, uint8_t>(window_, panel_.column_step, bytes, columns_);
  }

  void move_bytes(int64_t pairs, uint8_t* destination) {
    TILEWORK_TAKES(Way::kNibblePairs);
    const int64_t stride = panel_.column_stride / 2;
    if (pairs == 1 && is_even_ && stride == 1) {
      std::memcpy(destination, buffer_, static_cast<size_t>(columns_));
      return;
    }
    const Panel bytes{.source = buffer_,
                      .destination = destination,
                      .unit_bytes = 1,
                      .column_step = 1,
                      .rows = pairs,
                      .dropped = dropped_,
                      .columns = columns_,
                      .row_stride = kRowBytes,
                      .column_at = is_even_ ? nullptr : list_,
                      .column_stride = stride};
    PanelLeaves<Machine>::of(bytes).run(bytes);
  }

  // A row without another one in its bytes.
  void move_row(int64_t s, int64_t d, int64_t first_column, int64_t half, int64_t r) {
    TILEWORK_TAKES(Way::kNibblePairs);
    pair_rows(place(s, r), kNoNibbles, buffer_);
    for (int64_t c = 0; c < columns_; ++c) {
      const int64_t at = column_at_(first_column + c);
      if (at != kDropped && (d + half + at) % 2 == 0) set_nibble(panel_.destination, d + at + r, buffer_[c]);
    }
  }

  const Panel panel_;
  const At row_at_;
  const At column_at_;
  const bool has_whole_bytes_;
  int64_t columns_ = 0;
  int64_t dropped_ = 0;
  bool is_even_ = false;
  int64_t base_ = 0;
  int64_t list_[kWide];
  int64_t rows_[2 * kPairs];
  alignas(kLineBytes) uint8_t buffer_[kPairs * kRowBytes];
  alignas(kLineBytes) uint8_t window_[kWindow];
};

template <class Machine>
struct NibbleLeaves {
  static Leaf of(const Panel& panel) {
    if (panel.unit_bytes != 1 || panel.columns < kFewestNibbles) return of_runs();
    return {[](const Panel& panel) { NibbleTiles<Machine>(panel).run(); },
            [](const Panel& panel) { return NibbleTiles<Machine>(panel).way(); }};
  }

  // Of panels of one column, whose units may have any size.
  static Leaf of_runs() {
    return {move_nibble_units, [](const Panel&) { return Way::kNibbleUnits; }};
  }
};

}  // namespace
}  // namespace tilework
