// AVX2 leaves of the prototype: register transposes of today's engine behind lists of rows and columns.
#include <cstring>

#include "engine.h"
#include "leaves.h"
#include "reorder/blocks_avx2.h"

namespace tilework {
namespace {

template <int64_t kUnit>
void move_pair(const TileArguments& a, int64_t r, int64_t c) {
  const EdgeList& rows = a.state.rows;
  const EdgeList& columns = a.state.columns;
  uint8_t* to = a.destination + columns.destination[c] + rows.destination[r];
  if (rows.valid[r] && columns.valid[c]) {
    std::memcpy(to, a.source + columns.source[c] + rows.source[r], kUnit);
  } else {
    std::memset(to, 0, kUnit);
  }
}

// Dense rows and columns with a constant stride: the loops need no lists.
template <class Block, class Rows, class Columns>
void transpose_dense(const TileArguments& a, Rows row_at, Columns column_at, int64_t row_count,
                     int64_t column_count) {
  constexpr int64_t kUnit = sizeof(typename Block::Unit);
  const uint8_t* source = a.source;
  uint8_t* destination = a.destination;
  for (int64_t n = 0; n < a.repeat; ++n) {
    for (int64_t c = 0; c < column_count; c += Block::kColumns) {
      const int64_t column = std::min(c, column_count - Block::kColumns);
      const uint8_t* from = source + column * kUnit;
      uint8_t* to = destination + column_at(column);
      const auto columns = column_at.relative(column);
      int64_t r = 0;
      if constexpr (Block::kMakesLines) {
        for (; r + 2 * Block::kRows <= row_count; r += 2 * Block::kRows) {
          Block::transpose_lines(from + row_at(r), row_at.relative(r), to + r * kUnit, columns);
        }
      }
      for (; r < row_count; r += Block::kRows) {
        const int64_t row = std::min(r, row_count - Block::kRows);
        Block::transpose(from + row_at(row), row_at.relative(row), to + row * kUnit, columns);
      }
    }
    source += a.source_step;
    destination += a.destination_step;
  }
}

struct EvenAt {
  int64_t stride;
  int64_t base = 0;
  int64_t operator()(int64_t i) const { return base + i * stride; }
  EvenAt relative(int64_t) const { return {stride}; }
  EvenAt from(int64_t i) const { return {stride, base + i * stride}; }
};
struct ListFrom {
  const int64_t* at;
  int64_t first = 0;
  int64_t operator()(int64_t i) const { return at[i] - first; }
  ListFrom relative(int64_t i) const { return {at + i, at[i]}; }
  ListFrom from(int64_t i) const { return {at + i, first}; }
};

// Blocks of registers, then what is left: rows outside of blocks, columns outside of blocks.
template <class Block>
void transpose(const TileArguments& all) {
  constexpr int64_t kUnit = sizeof(typename Block::Unit);
  TileArguments a = all;
  const EdgeList& rows = a.state.rows;
  const EdgeList& columns = a.state.columns;
  if (rows.is_dense && columns.is_dense) {
    a.source += rows.source[0] + columns.source[0];
    a.destination += rows.destination[0] + columns.destination[0];
    int64_t count = columns.count;
    if (columns.stride != 0 && a.source_step == count * kUnit && a.destination_step == count * columns.stride) {
      count *= a.repeat;
      a.repeat = 1;
    }
    const EvenAt even_rows{rows.stride};
    const EvenAt even_columns{columns.stride};
    const ListFrom row_list{rows.source.data(), rows.source[0]};
    const ListFrom column_list{columns.destination.data(), columns.destination[0]};
    if (rows.stride != 0 && columns.stride != 0) return transpose_dense<Block>(a, even_rows, even_columns, rows.count, count);
    if (rows.stride != 0) return transpose_dense<Block>(a, even_rows, column_list, rows.count, count);
    if (columns.stride != 0) return transpose_dense<Block>(a, row_list, even_columns, rows.count, count);
    return transpose_dense<Block>(a, row_list, column_list, rows.count, count);
  }
  const size_t row_blocks = rows.blocks.size();
  const bool has_single = !rows.single.empty() || !columns.single.empty();
  for (int64_t n = 0; n < all.repeat; ++n) {
    for (int32_t c : columns.blocks) {
      const Listed to{columns.destination.data() + c};
      const uint8_t* from = a.source + columns.source[c];
      for (size_t i = 0; i < row_blocks; ++i) {
        const int32_t r = rows.blocks[i];
        Block::transpose(from, Listed{rows.source.data() + r}, a.destination + rows.destination[r], to);
      }
      for (int64_t k = 0; k < Block::kColumns && !rows.single.empty(); ++k) {
        for (int32_t r : rows.single) move_pair<kUnit>(a, r, c + k);
      }
    }
    if (has_single) {
      for (int32_t c : columns.single) {
        for (int64_t r = 0; r < rows.count; ++r) move_pair<kUnit>(a, r, c);
      }
    }
    a.source += a.source_step;
    a.destination += a.destination_step;
  }
}

template <class Block>
constexpr Leaf leaf(const char* name) {
  return {name, int64_t{sizeof(typename Block::Unit)}, Block::kRows, Block::kColumns, transpose<Block>};
}

constexpr Leaf kLeaves[] = {
    leaf<WideBlock<uint8_t>>("transpose_x8_32x16__avx2"),  leaf<NarrowBlock<uint8_t>>("transpose_x8_16x32__avx2"),
    leaf<WideBlock<uint16_t>>("transpose_x16_16x8__avx2"), leaf<NarrowBlock<uint16_t>>("transpose_x16_8x16__avx2"),
    leaf<WideBlock<uint32_t>>("transpose_x32_8x4__avx2"),  leaf<NarrowBlock<uint32_t>>("transpose_x32_4x8__avx2"),
    leaf<WideBlock<uint64_t>>("transpose_x64_4x2__avx2"),
};

}  // namespace

std::span<const Leaf> avx2_leaves() { return kLeaves; }

const Leaf& leaf_for(const Tiling& tiling) {
  for (const Leaf& each : avx2_leaves()) {
    if (each.unit_bytes == tiling.unit_bytes && tiling.direct_row_bytes >= each.block_rows * each.unit_bytes &&
        tiling.direct_column_bytes >= each.block_columns * each.unit_bytes) {
      return each;
    }
  }
  for (const Leaf& each : portable_leaves()) {
    if (each.unit_bytes == tiling.unit_bytes || each.unit_bytes == 0) return each;
  }
  __builtin_unreachable();
}

}  // namespace tilework
