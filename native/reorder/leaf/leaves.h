// Leaves of panels, put together from what one instruction set moves: register blocks, channels and runs.
// Shared by all instruction sets; each brings:
//
//   struct Machine {
//     // Blocks of transpose_places.h; Half and Thin, which only listed panels take, may be void.
//     template <class T> using Wide, Narrow, Half, Thin;
//     // Tiles that are no register blocks alone, as SpecialTiles of special_tiles.h.
//     template <class T> using Special;
//     // Tiles of units of 16 bytes.
//     using LaneTiles;
//     // Whether the instruction set packs every kStep-th unit (backwards if kStep is negative), for steps of
//     // at most 16 bytes.
//     static constexpr bool kPacks;
//     template <class T, int kStep> static void pack(const uint8_t* source, uint8_t* packed, int64_t count);
//   };
//
// Internal to each file, as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "policy/cache_sets.h"
#include "policy/thresholds.h"
#include "reorder/leaf/any_tile.h"
#include "reorder/leaf/byte_elements.h"
#include "reorder/leaf/packed_rows.h"
#include "reorder/leaf/packed_transpose.h"
#include "reorder/leaf/panel_steps.h"
#include "reorder/leaf/runs.h"
#include "reorder/plan/panel.h"

namespace tilework {
namespace {

// Tiles with constant distances.
template <class AnyTiles>
struct EvenPanels {
  static Way way_of(const Panel& panel) {
    const Panel one = merged(panel);
    return AnyTiles::way_of(tile_of(one, one.source, one.destination));
  }

  static void move(const Panel& panel) {
    const Panel one = merged(panel);
    at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
      AnyTiles::run(tile_of(one, source, destination));
    });
  }
};

// Zeros that rows without a source are read from.
alignas(kLineBytes) constexpr uint8_t kZeros[kZeroBytes.value] = {};

// Columns [first, first + count) of a panel.
[[maybe_unused]] Panel columns_of(const Panel& panel, int64_t first, int64_t count) {
  Panel part = panel;
  part.columns = count;
  part.source += first * panel.column_step;
  if (panel.column_at == nullptr) {
    part.destination += first * panel.column_stride;
  } else {
    part.column_at += first;
  }
  return part;
}

// Panels whose rows or columns, or both, stand in lists.
template <class Block>
class ListedPanels {
 public:
  static Way way_of(const Panel& panel) {
    const Panel one = merged(panel);
    return ListedPanels(has_long_zeros(one) ? columns_of(one, 0, kZeroUnits) : one).way();
  }

  static void move(const Panel& panel) {
    const Panel one = merged(panel);
    if (!has_long_zeros(one)) return ListedPanels(one).run();
    TILEWORK_WAY("listed: parts as long as the zeros");
    // The last part may begin inside the one before.
    for (int64_t c = 0; c < one.columns; c += kZeroUnits)
      ListedPanels(columns_of(one, std::min(c, one.columns - kZeroUnits), kZeroUnits)).run();
  }

 private:
  static constexpr int64_t kSize = sizeof(typename Block::Unit);
  static constexpr int64_t kZeroUnits = kZeroBytes.value / kSize;
  using Packed = PackedTranspose<Block>;

  // Whole blocks of zeros are stored; the others are read as rows.
  explicit ListedPanels(const Panel& panel) : one_(panel), stored_zeros_(zeros_in_blocks(panel)) {
    one_.rows -= stored_zeros_;
    one_.zero_rows -= stored_zeros_;
    one_.holes -= stored_zeros_;
  }

  // Rows without a source are read from as many zeros as there are.
  static bool has_long_zeros(const Panel& one) { return one.holes > 0 && one.columns * kSize > kZeroBytes; }

  static int64_t zeros_in_blocks(const Panel& panel) {
    const int64_t zeros = panel.zero_rows / Block::kRows * Block::kRows;
    return panel.rows - zeros >= Block::kRows && panel.dropped == 0 ? zeros : 0;
  }

  Way way() const {
    if (packs()) return one_.column_at == nullptr ? Way::kPackedListedRows : Way::kPackedListedColumns;
    if (one_.dropped > 0) return Way::kListedDroppedColumns;
    if (one_.column_at != nullptr) return Way::kListedColumns;
    // Each short row is read once, and its columns are written piece by piece side by side.
    const bool is_short =
        one_.columns * kSize <= kHalfLineBytes && (Block::kLinesInRegisters || !Block::kMakesLines);
    return is_short ? Way::kListedShortRows : Way::kListedRows;
  }

  // Past the caches, and where the lines of a dimension without a list share a few sets. Narrower units
  // gained 1.4 on one thread from the latter and lost 0.8 on two.
  bool packs() const {
    if (one_.dropped > 0 || one_.columns < Packed::kPiece) return false;
    if (one_.stores == Stores::kStreaming) return true;
    if (kSize < 4 || one_.rows < Packed::kRows) return false;
    if (one_.column_at == nullptr) return crowds_sets(one_.column_stride, one_.columns);
    return one_.row_at == nullptr && crowds_sets(one_.row_stride, one_.rows);
  }

  // One copy, for both callers.
  [[gnu::noinline]] void run() {
    const Way way = this->way();
    TILEWORK_TAKES(way);
    at_steps(one_, [&](const uint8_t* source, uint8_t* destination) {
      if (way == Way::kPackedListedRows || way == Way::kPackedListedColumns) {
        pack(source, destination);
      } else if (one_.holes > 0) {
        transpose(way, source, list_rows(source), destination);
      } else if (one_.row_at == nullptr) {
        transpose(way, source, Strided{one_.row_stride}, destination);
      } else {
        transpose(way, source, Listed{one_.row_at}, destination);
      }
      if (stored_zeros_ > 0) store_zeros(destination);
    });
  }

  Listed list_rows(const uint8_t* source) {
    const auto zeros =
        static_cast<int64_t>(reinterpret_cast<intptr_t>(kZeros) - reinterpret_cast<intptr_t>(source));
    const int64_t valid = one_.rows - one_.zero_rows;
    const At row_at{one_.row_at, one_.row_stride};
    for (int64_t r = 0; r < one_.rows; ++r)
      rows_[r] = r >= valid || row_at(r) == kNoSource ? zeros : row_at(r);
    return {rows_};
  }

  // Columns that are dropped are written to a place of their own, whichever they are.
  Listed list_columns(uint8_t* destination) {
    const auto nowhere =
        static_cast<int64_t>(reinterpret_cast<intptr_t>(dropped_) - reinterpret_cast<intptr_t>(destination));
    for (int64_t c = 0; c < one_.columns; ++c)
      columns_[c] = one_.column_at[c] == kDropped ? nowhere : one_.column_at[c];
    return {columns_};
  }

  void pack(const uint8_t* source, uint8_t* destination) {
    const int64_t* rows = one_.holes > 0 ? list_rows(source).places : one_.row_at;
    Packed::run(source, {rows, one_.row_stride}, one_.rows, one_.rows, destination,
                {one_.column_at, one_.column_stride}, one_.columns, one_.stores);
  }

  template <class Rows>
  void transpose(Way way, const uint8_t* source, Rows row_at, uint8_t* destination) {
    if (way == Way::kListedDroppedColumns) return transpose_dropping(source, row_at, destination);
    const Strided even{one_.column_stride};
    if (way == Way::kListedShortRows) {
      return transpose_by_columns<Block>(source, row_at, one_.rows, destination, even, one_.columns);
    }
    const int64_t bytes = one_.rows * one_.columns * kSize;
    const LinePrefetcher<true> next(destination + bytes, one_.inner.destination == bytes ? bytes : 0,
                                    one_.columns / Block::kColumns);
    if (way == Way::kListedRows) {
      transpose_places<Block>(source, row_at, one_.rows, destination, even, one_.columns, one_.columns, next);
    } else {
      transpose_places<Block>(source, row_at, one_.rows, destination, Listed{one_.column_at}, one_.columns,
                              one_.columns, next);
    }
  }

  // As many rows at a time as one block has, so that a dropped column needs room for no more.
  template <class Rows>
  void transpose_dropping(const uint8_t* source, Rows row_at, uint8_t* destination) {
    const LinePrefetcher<true> no_next(destination, 0, one_.columns / Block::kColumns);
    for (int64_t r = 0; r < one_.rows; r += Block::kRows) {
      const int64_t row = std::min(r, one_.rows - Block::kRows);
      uint8_t* to = destination + row * kSize;
      transpose_places<Block>(source, row_at.from(row), Block::kRows, to, list_columns(to), one_.columns,
                              one_.columns, no_next);
    }
  }

  void store_zeros(uint8_t* destination) const {
    const At column_at{one_.column_at, one_.column_stride};
    const auto zero_columns = [&](auto bytes) {
      for (int64_t c = 0; c < one_.columns; ++c)
        zero_bytes(destination + column_at(c) + one_.rows * kSize, bytes);
    };
    constexpr std::integral_constant<int64_t, Block::kRows * kSize> kOfBlock;
    stored_zeros_ == Block::kRows ? zero_columns(kOfBlock) : zero_columns(stored_zeros_ * kSize);
  }

  Panel one_;
  int64_t stored_zeros_;
  int64_t rows_[kMostListed.value];
  int64_t columns_[kMostListed.value];
  alignas(kLineBytes) uint8_t dropped_[2 * kLineBytes];
};

// Chooses the leaf of a panel by its extents.
template <class Machine>
class PanelLeaves {
 public:
  static Leaf of(const Panel& panel) {
    const Leaf leaf = of_units(panel);
    if (leaf.run != nullptr) return leaf;
    switch (panel.unit_bytes) {
      case 1:
        return {move_units<1>, way_of_units};
      case 2:
        return {move_units<2>, way_of_units};
      case 4:
        return {move_units<4>, way_of_units};
      case 8:
        return {move_units<8>, way_of_units};
      default:
        return of_runs();
    }
  }

  // Of panels of one column, whose units may have any size.
  static Leaf of_runs() { return {move_runs, way_of_runs}; }

 private:
  template <class Panels>
  static constexpr Leaf leaf_of() {
    return {Panels::move, Panels::way_of};
  }

  static Leaf of_units(const Panel& panel) {
    switch (panel.unit_bytes) {
      case 1:
        return of_elements<uint8_t>(panel);
      case 2:
        return of_elements<uint16_t>(panel);
      case 4:
        return of_elements<uint32_t>(panel);
      case 8:
        return of_elements<uint64_t>(panel);
      case 16:
        return of_lanes(panel);
      default:
        return {};
    }
  }

  static Leaf of_lanes(const Panel& panel) {
    const bool is_tile = panel.column_step == 16 && panel.row_at == nullptr && panel.column_at == nullptr &&
                         (panel.rows > 1 || panel.columns > 1);
    return is_tile ? leaf_of<EvenPanels<typename Machine::LaneTiles>>() : Leaf{};
  }

  template <class T>
  static Leaf of_elements(const Panel& panel) {
    constexpr int64_t kSize = sizeof(T);
    if (panel.column_step != kSize) return leaf_of<PackedRows<Machine, T>>();
    if (panel.row_at == nullptr && panel.column_at == nullptr)
      return leaf_of<EvenPanels<TilesOf<Machine, T>>>();
    if (panel.rows > kMostListed || (panel.dropped > 0 && panel.columns > kMostListed)) return {};
    using Wide = typename Machine::template Wide<T>;
    using Thin = typename Machine::template Thin<T>;
    Leaf leaf{};
    with_block<Wide, typename Machine::template Narrow<T>, typename Machine::template Half<T>, Thin>(
        panel.rows, panel.columns,
        [&](auto block) { leaf = leaf_of<ListedPanels<typename decltype(block)::type>>(); });
    return leaf;
  }
};

}  // namespace
}  // namespace tilework
