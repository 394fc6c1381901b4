// Leaves of panels, put together from what one instruction set moves: register blocks, channels and runs.
// Shared by all instruction sets; each brings:
//
//   struct Machine {
//     // Blocks of transpose_places.h; Half and Thin, which only listed panels take, may be void.
//     template <class T> using Wide, Narrow, Half, Thin;
//     // Tiles that are no register blocks alone, as Channels of channels.h.
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
void move_tiles(const Panel& panel) {
  const Panel one = merged(panel);
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    AnyTiles::run({source, destination, one.columns, one.rows, one.zero_rows, one.row_stride,
                   one.column_stride, one.stores});
  });
}

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

template <class Block>
void move_listed(const Panel& panel) {
  constexpr int64_t kSize = sizeof(typename Block::Unit);
  Panel one = merged(panel);
  // Rows without a source are read from as many zeros as there are.
  if (one.holes > 0 && one.columns * kSize > kZeroBytes) {
    TILEWORK_WAY("listed: parts as long as the zeros");
    constexpr int64_t kMost = kZeroBytes.value / kSize;
    // The last part may begin inside the one before.
    for (int64_t c = 0; c < one.columns; c += kMost)
      move_listed<Block>(columns_of(one, std::min(c, one.columns - kMost), kMost));
    return;
  }
  // Whole blocks of zeros are stored; the others are read as rows.
  const int64_t zeros = one.zero_rows / Block::kRows * Block::kRows;
  const bool stores_zeros = zeros > 0 && one.rows - zeros >= Block::kRows && one.dropped == 0;
  if (stores_zeros) {
    TILEWORK_WAY("listed: whole blocks of zeros are stored");
    one.rows -= zeros;
    one.zero_rows -= zeros;
    one.holes -= zeros;
  }
  const int64_t bytes = one.rows * one.columns * kSize;
  const int64_t strip = one.columns;
  int64_t rows[kMostListed.value];
  int64_t columns[kMostListed.value];
  alignas(kLineBytes) uint8_t dropped[2 * kLineBytes];
  const int64_t valid = one.rows - one.zero_rows;
  const auto list_rows = [&](const uint8_t* source) {
    const auto zeros =
        static_cast<int64_t>(reinterpret_cast<intptr_t>(kZeros) - reinterpret_cast<intptr_t>(source));
    for (int64_t r = 0; r < one.rows; ++r) {
      const int64_t at = one.row_at == nullptr ? r * one.row_stride : one.row_at[r];
      rows[r] = r >= valid || at == kNoSource ? zeros : at;
    }
    return Listed{rows};
  };
  // Rows that are written to `dropped` begin there, whichever they are.
  const auto list_columns = [&](uint8_t* destination) {
    const auto nowhere =
        static_cast<int64_t>(reinterpret_cast<intptr_t>(dropped) - reinterpret_cast<intptr_t>(destination));
    for (int64_t c = 0; c < one.columns; ++c)
      columns[c] = one.column_at[c] == kDropped ? nowhere : one.column_at[c];
    return Listed{columns};
  };
  // Long columns are packed if only one dimension has a list, which keeps the code small: beyond the caches,
  // and where the lines of the other dimension share a few sets. Narrower units gained 1.4 on one thread from
  // the latter and lost 0.8 on two.
  using Packed = PackedTranspose<Block, Listed, Strided>;
  const bool has_set_conflicts = kSize >= 4 && one.rows >= Packed::kRows &&
                                 (one.column_at == nullptr ? crowds_sets(one.column_stride, one.columns)
                                                           : crowds_sets(one.row_stride, one.rows));
  const bool is_long = (one.stores == Stores::kStreaming || has_set_conflicts) && one.dropped == 0 &&
                       one.columns >= Packed::kPiece;
  const bool packs_rows = is_long && one.column_at == nullptr;
  const bool packs_columns = is_long && one.column_at != nullptr && one.row_at == nullptr && one.holes == 0;
  const auto pack = [&](const uint8_t* source, auto row_at, uint8_t* destination, auto column_at) {
    PackedTranspose<Block, decltype(row_at), decltype(column_at)>::run(
        source, row_at, one.rows, one.rows, destination, column_at, one.columns, one.stores);
  };
  // Each short row is read once, and its columns are written piece by piece side by side.
  const bool is_narrow = one.column_at == nullptr && one.columns * kSize <= kHalfLineBytes &&
                         (Block::kLinesInRegisters || !Block::kMakesLines);
  const auto with_columns = [&](const uint8_t* source, uint8_t* destination, auto row_at) {
    const LinePrefetcher<true> next(destination + bytes, one.inner.destination == bytes ? bytes : 0,
                                    one.columns / Block::kColumns);
    if (one.dropped > 0) {
      TILEWORK_WAY("listed: with dropped columns");
      // As many rows at a time as one block has, so that a dropped column needs room for no more.
      for (int64_t r = 0; r < one.rows; r += Block::kRows) {
        const int64_t row = std::min(r, one.rows - Block::kRows);
        uint8_t* to = destination + row * kSize;
        transpose_places<Block>(source, row_at.from(row), Block::kRows, to, list_columns(to), one.columns,
                                strip, next);
      }
    } else if (is_narrow) {
      TILEWORK_WAY("listed: short rows, column by column");
      transpose_by_columns<Block>(source, row_at, one.rows, destination, Strided{one.column_stride},
                                  one.columns);
    } else if (one.column_at == nullptr) {
      TILEWORK_WAY("listed: rows");
      transpose_places<Block>(source, row_at, one.rows, destination, Strided{one.column_stride}, one.columns,
                              strip, next);
    } else {
      TILEWORK_WAY("listed: columns");
      transpose_places<Block>(source, row_at, one.rows, destination, Listed{one.column_at}, one.columns,
                              strip, next);
    }
  };
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    if (packs_rows) {
      TILEWORK_WAY("listed: rows, packed");
      pack(source, list_rows(source), destination, Strided{one.column_stride});
    } else if (packs_columns) {
      TILEWORK_WAY("listed: columns, packed");
      pack(source, Strided{one.row_stride}, destination, Listed{one.column_at});
    } else if (one.holes > 0) {
      with_columns(source, destination, list_rows(source));
    } else if (one.row_at == nullptr) {
      with_columns(source, destination, Strided{one.row_stride});
    } else {
      with_columns(source, destination, Listed{one.row_at});
    }
    if (stores_zeros) {
      const At column_at{one.column_at, one.column_stride};
      const auto zero_columns = [&](auto bytes) {
        for (int64_t c = 0; c < one.columns; ++c)
          zero_bytes(destination + column_at(c) + one.rows * kSize, bytes);
      };
      constexpr std::integral_constant<int64_t, Block::kRows * kSize> kOfBlock;
      zeros == Block::kRows ? zero_columns(kOfBlock) : zero_columns(zeros * kSize);
    }
  });
}

// Chooses the leaf of a panel by its extents.
template <class Machine>
class PanelLeaves {
 public:
  static Leaf of(const PanelShape& shape) {
    const Leaf leaf = of_units(shape);
    if (leaf.run != nullptr) return leaf;
    switch (shape.unit_bytes) {
      case 1:
        return {"units", move_units<1>};
      case 2:
        return {"units", move_units<2>};
      case 4:
        return {"units", move_units<4>};
      case 8:
        return {"units", move_units<8>};
      default:
        return of_runs();
    }
  }

  // Of panels of one column, whose units may have any size.
  static Leaf of_runs() { return {"runs", move_runs}; }

 private:
  static Leaf of_units(const PanelShape& shape) {
    switch (shape.unit_bytes) {
      case 1:
        return of_elements<uint8_t>(shape);
      case 2:
        return of_elements<uint16_t>(shape);
      case 4:
        return of_elements<uint32_t>(shape);
      case 8:
        return of_elements<uint64_t>(shape);
      case 16:
        return of_lanes(shape);
      default:
        return {};
    }
  }

  static Leaf of_lanes(const PanelShape& shape) {
    const bool is_tile = shape.column_step == 16 && shape.has_even_rows && shape.has_even_columns &&
                         (shape.rows > 1 || shape.columns > 1);
    return is_tile ? Leaf{"even", move_tiles<typename Machine::LaneTiles>} : Leaf{};
  }

  template <class T>
  static Leaf of_elements(const PanelShape& shape) {
    constexpr int64_t kSize = sizeof(T);
    if (shape.column_step != kSize) return {"sparse", PackedRows<Machine, T>::move};
    if (shape.has_even_rows && shape.has_even_columns) return {"even", move_tiles<TilesOf<Machine, T>>};
    if (shape.rows > kMostListed || (shape.dropped > 0 && shape.columns > kMostListed)) return {};
    using Wide = typename Machine::template Wide<T>;
    using Thin = typename Machine::template Thin<T>;
    Leaf leaf{};
    with_block<Wide, typename Machine::template Narrow<T>, typename Machine::template Half<T>, Thin>(
        shape.rows, shape.columns, [&](auto block) {
          leaf = {"listed", move_listed<typename decltype(block)::type>};
        });
    return leaf;
  }
};

}  // namespace
}  // namespace tilework
