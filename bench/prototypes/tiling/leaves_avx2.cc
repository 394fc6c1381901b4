// Leaves with AVX2.
#include <algorithm>
#include <cstring>

#include "panel.h"
#include "reorder/run_chain.h"
#include "reorder/run_copy.h"
#include "reorder/run_kernel.h"
#include "reorder/streamed_lanes_avx2.h"
#include "reorder/tile_kernel.h"
#include "reorder/tiles_avx2.h"

namespace tilework {
namespace {

// Steps that continue the rows or the columns of a panel become a part of it.
bool merge_step(Panel& panel, Steps& step) {
  if (step.count == 1 && step.tail == 0) return true;
  const int64_t unit = panel.unit_bytes;
  if (panel.column_at == nullptr && step.tail_of != Edge::kRows &&
      step.source == panel.columns * panel.column_step &&
      (panel.columns == 1 || step.destination == panel.columns * panel.column_stride)) {
    if (panel.columns == 1) panel.column_stride = step.destination;
    panel.columns = panel.columns * step.count + (step.tail_of == Edge::kColumns ? step.tail : 0);
    step = {};
    return true;
  }
  if (panel.row_at == nullptr && panel.zero_rows == 0 && step.tail_of != Edge::kColumns &&
      step.destination == panel.rows * unit &&
      (panel.rows == 1 || step.source == panel.rows * panel.row_stride)) {
    if (panel.rows == 1) panel.row_stride = step.source;
    panel.rows = panel.rows * step.count + (step.tail_of == Edge::kRows ? step.tail : 0);
    step = {};
    return true;
  }
  return false;
}

Panel merged(const Panel& panel) {
  Panel one = panel;
  merge_step(one, one.inner);
  if (merge_step(one, one.outer)) merge_step(one, one.inner);
  return one;
}

template <class Body>
[[gnu::always_inline]] inline void at_steps(const Panel& panel, Body body) {
  for (int64_t o = 0; o < panel.outer.count; ++o) {
    for (int64_t i = 0; i < panel.inner.count; ++i) {
      body(panel.source + o * panel.outer.source + i * panel.inner.source,
           panel.destination + o * panel.outer.destination + i * panel.inner.destination);
    }
  }
}

template <class T>
using Tiles = AnyTile<WideBlock<T>, NarrowBlock<T>, SpecialTiles<T>, HalfOrNone<T>>;

// Rows and columns with constant distances.
template <class AnyTiles>
void move_even(const Panel& panel) {
  const Panel one = merged(panel);
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    AnyTiles::run({source, destination, one.columns, one.rows, one.zero_rows, one.row_stride,
                   one.column_stride, one.stores});
  });
}

// Zeros that rows without a source are read from.
constexpr int64_t kZeroBytes = 4096;
alignas(kLineBytes) constexpr uint8_t kZeros[kZeroBytes] = {};
constexpr int64_t kMostListed = 1024;

// Rows or columns, or both, from lists.
struct At {
  const int64_t* list;
  int64_t stride;
  int64_t operator()(int64_t i) const { return list == nullptr ? i * stride : list[i]; }
};

// Requests the lines of the next step, a share with each block: its rows are too short for processors to
// follow.
class NextStep {
 public:
  NextStep(const Panel& panel, const uint8_t* source, uint8_t* destination, int64_t blocks)
      : row_at_{panel.row_at, panel.row_stride},
        source_(source + panel.inner.source),
        destination_(destination + panel.inner.destination),
        row_lines_(ceil_div(panel.columns * panel.unit_bytes, kLineBytes)),
        left_(panel.rows * row_lines_),
        destination_left_(panel.inner.destination == panel.rows * panel.columns * panel.unit_bytes
                              ? panel.inner.destination / kLineBytes
                              : 0),
        share_(ceil_div(left_, blocks)),
        destination_share_(ceil_div(destination_left_, blocks)) {}

  void operator()() {
    for (int64_t i = 0; i < share_ && left_ > 0; ++i, --left_) {
      const int64_t at = row_at_(row_);
      if (at != kNoSource) __builtin_prefetch(source_ + at + line_ * kLineBytes);
      if (++line_ == row_lines_) {
        line_ = 0;
        ++row_;
      }
    }
    for (int64_t i = 0; i < destination_share_ && destination_left_ > 0; ++i, --destination_left_) {
      __builtin_prefetch(destination_, 1);
      destination_ += kLineBytes;
    }
  }

 private:
  At row_at_;
  const uint8_t* source_;
  uint8_t* destination_;
  int64_t row_lines_;
  int64_t left_;
  int64_t destination_left_;
  int64_t share_;
  int64_t destination_share_;
  int64_t row_ = 0;
  int64_t line_ = 0;
};

template <class Block>
void move_listed(const Panel& panel) {
  const Panel one = merged(panel);
  const int64_t strip = one.columns;
  const int64_t blocks = std::max<int64_t>(one.columns / Block::kColumns * (one.rows / Block::kRows), 1);
  int64_t rows[kMostListed];
  int64_t columns[kMostListed];
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
  const auto with_columns = [&](const uint8_t* source, uint8_t* destination, auto row_at) {
    if (one.dropped > 0) {
      // As many rows at a time as one block has, so that a dropped column needs room for no more.
      for (int64_t r = 0; r < one.rows; r += Block::kRows) {
        const int64_t row = std::min(r, one.rows - Block::kRows);
        uint8_t* to = destination + row * int64_t{sizeof(typename Block::Unit)};
        transpose_places<Block>(source, row_at.from(row), Block::kRows, to, list_columns(to), one.columns,
                                strip);
      }
    } else if (one.column_at == nullptr) {
      transpose_places<Block>(source, row_at, one.rows, destination, Strided{one.column_stride}, one.columns,
                              strip);
    } else {
      transpose_places<Block>(source, row_at, one.rows, destination, Listed{one.column_at}, one.columns,
                              strip);
    }
  };
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    if (one.holes > 0) {
      with_columns(source, destination, list_rows(source));
    } else if (one.row_at == nullptr) {
      with_columns(source, destination, Strided{one.row_stride});
    } else {
      with_columns(source, destination, Listed{one.row_at});
    }
  });
}

// Units of any size: even ones as chains of runs, others one by one.
template <int64_t kUnit>
void move_units(const Panel& panel) {
  const Panel one = merged(panel);
  const int64_t unit = kUnit == 0 ? one.unit_bytes : kUnit;
  const At row_at{one.row_at, one.row_stride};
  const At column_at{one.column_at, one.column_stride};
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    for (int64_t c = 0; c < one.columns; ++c) {
      if (column_at(c) == kDropped) continue;
      const uint8_t* from = source + c * one.column_step;
      uint8_t* to = destination + column_at(c);
      for (int64_t r = 0; r < one.rows; ++r) {
        const bool is_hole = r >= one.rows - one.zero_rows || row_at(r) == kNoSource;
        if (is_hole) {
          std::memset(to + r * unit, 0, static_cast<size_t>(unit));
        } else {
          std::memcpy(to + r * unit, from + row_at(r), static_cast<size_t>(unit));
        }
      }
    }
  });
}

void move_runs(const Panel& panel) {
  // Steps cannot continue a unit that something follows.
  const Panel one = panel.rest_bytes > 0 || panel.zero_bytes > 0 ? panel : merged(panel);
  if (one.holes > 0 || one.row_at != nullptr || one.column_at != nullptr ||
      one.column_step != one.unit_bytes) {
    switch (one.unit_bytes) {
      case 16:
        return move_units<16>(panel);
      case 32:
        return move_units<32>(panel);
      case 64:
        return move_units<64>(panel);
      default:
        return move_units<0>(panel);
    }
  }
  if (one.columns == 1 && one.rows == 1 && one.rest_bytes == 0) {
    // The longer of the two steps is the inner one.
    for (int64_t o = 0; o < one.outer.count; ++o) {
      RunKernel<Vector, uint8_t>::move(
          {one.source + o * one.outer.source, one.destination + o * one.outer.destination, one.inner.count,
           one.unit_bytes, one.zero_bytes, one.inner.source, 1, one.inner.destination, one.stores});
    }
    return;
  }
  if (one.columns == 1) {
    for (int64_t o = 0; o < one.outer.count; ++o) {
      RectangleChain chain{InnerLoops::Chain::kRuns, one.rows, one.row_stride, one.unit_bytes};
      chain.rest = one.rest_bytes;
      const Rectangle runs{one.source + o * one.outer.source,
                           one.destination + o * one.outer.destination,
                           one.inner.count,
                           one.unit_bytes,
                           0,
                           one.inner.source,
                           1,
                           one.inner.destination,
                           one.stores};
      if (RunChain<Vector, uint8_t>::move(runs, chain)) continue;
      for (int64_t i = 0; i < one.inner.count; ++i) {
        const uint8_t* from = runs.source + i * one.inner.source;
        uint8_t* to = runs.destination + i * one.inner.destination;
        for (int64_t r = 0; r < one.rows; ++r)
          copy_run<Vector>(to + r * one.unit_bytes, from + r * one.row_stride, one.unit_bytes,
                           Stores::kCached);
        copy_run<Vector>(to + one.rows * one.unit_bytes, from + one.rows * one.row_stride, one.rest_bytes,
                         Stores::kCached);
      }
    }
    return;
  }
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    const RectangleChain chain{InnerLoops::Chain::kRuns, one.rows, one.row_stride, one.unit_bytes};
    RunChain<Vector, uint8_t>::move({source, destination, one.columns, one.unit_bytes, 0, one.unit_bytes, 1,
                                     one.column_stride, one.stores},
                                    chain);
  });
}

// Interleaves a few rows whose units follow each other without gaps in the destination.
template <class T, int kCount>
void zip(const Panel& panel) {
  const Panel one = merged(panel);
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kWidth = 32 / kSize;
  const At row_at{one.row_at, one.row_stride};
  const int64_t valid = one.rows - one.zero_rows;
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    const uint8_t* from[kCount];
    for (int r = 0; r < kCount; ++r)
      from[r] = r < valid && row_at(r) != kNoSource ? source + row_at(r) : nullptr;
    for (int64_t c = 0; c < one.columns; c += kWidth) {
      const int64_t column = std::min(c, one.columns - kWidth);
      __m256i rows[kCount];
      for (int r = 0; r < kCount; ++r) {
        rows[r] = from[r] != nullptr ? load32(from[r] + column * kSize) : _mm256_setzero_si256();
      }
      interleave<kSize>(rows);
      uint8_t* to = destination + column * kCount * kSize;
      for (int r = 0; r < kCount; ++r) store16(to + r * 16, _mm256_castsi256_si128(rows[r]));
      for (int r = 0; r < kCount; ++r) store16(to + (kCount + r) * 16, _mm256_extracti128_si256(rows[r], 1));
    }
  });
}

// Deinterleaves a few columns whose units follow each other without gaps in the source.
template <class T, int kCount>
void unzip(const Panel& panel) {
  const Panel one = merged(panel);
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kWidth = 32 / kSize;
  const At column_at{one.column_at, one.column_stride};
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    uint8_t* to[kCount];
    for (int c = 0; c < kCount; ++c) to[c] = destination + column_at(c);
    for (int64_t r = 0; r < one.rows; r += kWidth) {
      const int64_t row = std::min(r, one.rows - kWidth);
      const uint8_t* from = source + row * kCount * kSize;
      __m256i pixels[kCount];
      for (int i = 0; i < kCount; ++i) pixels[i] = load_lanes(from + i * 16, from + (kCount + i) * 16);
      take_apart<kSize>(pixels);
      for (int c = 0; c < kCount; ++c) store32(to[c] + row * kSize, pixels[c]);
    }
  });
}

// Every `step`-th unit, side by side. Reads no byte behind the last one.
template <class T, int kSlots>
void pack_slots(const uint8_t* source, uint8_t* packed, int64_t count) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kWidth = 32 / kSize;
  int64_t i = 0;
  for (; i + kWidth < count; i += kWidth) {
    __m256i slots[kSlots];
    const uint8_t* from = source + i * kSlots * kSize;
    for (int k = 0; k < kSlots; ++k) slots[k] = load_lanes(from + k * 16, from + (kSlots + k) * 16);
    take_apart<kSize>(slots);
    store32(packed + i * kSize, slots[0]);
  }
  for (; i < count; ++i) std::memcpy(packed + i * kSize, source + i * kSlots * kSize, kSize);
}

template <class T>
void pack(const uint8_t* source, int64_t step, uint8_t* packed, int64_t count) {
  constexpr int64_t kSize = sizeof(T);
  if constexpr (kSize <= 4) {
    switch (step / kSize) {
      case 2:
        return pack_slots<T, 2>(source, packed, count);
      case 3:
        return pack_slots<T, 3>(source, packed, count);
      case 4:
        return pack_slots<T, 4>(source, packed, count);
      default:
        break;
    }
  }
  for (int64_t i = 0; i < count; ++i) std::memcpy(packed + i * kSize, source + i * step, kSize);
}

// Columns with gaps in the source: rows are packed first.
template <class T>
void move_sparse(const Panel& panel) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kWide = 512 / kSize;
  constexpr int64_t kBufferBytes = 16 << 10;
  alignas(kLineBytes) uint8_t buffer[kBufferBytes];
  const Panel one = merged(panel);
  const At row_at{one.row_at, one.row_stride};
  const int64_t wide = std::min(one.columns, kWide);
  const int64_t stride = ceil_div(wide * kSize, kLineBytes) * kLineBytes;
  const int64_t high = kBufferBytes / stride;
  const int64_t valid = one.rows - one.zero_rows;
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    for (int64_t r = 0; r < one.rows; r += high) {
      const int64_t rows = std::min(high, one.rows - r);
      for (int64_t c = 0; c < one.columns; c += wide) {
        const int64_t columns = std::min(wide, one.columns - c);
        for (int64_t i = 0; i < rows; ++i) {
          uint8_t* packed = buffer + i * stride;
          if (r + i >= valid || row_at(r + i) == kNoSource) {
            std::memset(packed, 0, static_cast<size_t>(columns * kSize));
          } else {
            pack<T>(source + row_at(r + i) + c * one.column_step, one.column_step, packed, columns);
          }
        }
        if (one.column_at == nullptr) {
          Tiles<T>::run({buffer, destination + r * kSize + c * one.column_stride, columns, rows, 0, stride,
                         one.column_stride, Stores::kCached});
        } else {
          for (int64_t k = 0; k < columns; ++k) {
            for (int64_t i = 0; i < rows; ++i) {
              std::memcpy(destination + one.column_at[c + k] + (r + i) * kSize,
                          buffer + i * stride + k * kSize, kSize);
            }
          }
        }
      }
    }
  });
}

// One column, whose rows have gaps in the source.
template <class T>
void move_every(const Panel& panel) {
  const Panel one = merged(panel);
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    pack<T>(source, one.row_stride, destination, one.rows);
  });
}

template <class T>
Leaf transpose_for(const PanelShape& shape) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kWidth = 32 / kSize;
  Leaf leaf{};
  if (shape.column_step != kSize) return {"sparse", move_sparse<T>};
  if (shape.columns == 1 && shape.has_even_rows && shape.holes == 0 && shape.rows >= kWidth &&
      shape.row_stride > kSize && shape.row_stride <= 4 * kSize) {
    return {"every", move_every<T>};
  }
  if constexpr (kSize <= 8) {
    const auto by_count = [&](int64_t count, auto make) {
      if (count == 2 && kSize <= 8) leaf = make(std::integral_constant<int, 2>{});
      if constexpr (kSize <= 4) {
        if (count == 3) leaf = make(std::integral_constant<int, 3>{});
        if (count == 4) leaf = make(std::integral_constant<int, 4>{});
      }
      if constexpr (kSize <= 2) {
        if (count == 8) leaf = make(std::integral_constant<int, 8>{});
      }
    };
    if (shape.columns >= kWidth && shape.has_even_columns && shape.column_stride == shape.rows * kSize &&
        !(shape.has_even_rows)) {
      by_count(shape.rows, [](auto count) { return Leaf{"zip", zip<T, decltype(count)::value>}; });
      if (leaf.run) return leaf;
    }
    if (shape.holes == 0 && shape.dropped == 0 && shape.rows >= kWidth && shape.has_even_rows &&
        shape.row_stride == shape.columns * kSize && !(shape.has_even_columns)) {
      by_count(shape.columns, [](auto count) { return Leaf{"unzip", unzip<T, decltype(count)::value>}; });
      if (leaf.run) return leaf;
    }
    if (shape.has_even_rows && shape.has_even_columns) return {"even", move_even<Tiles<T>>};
    if (shape.rows > kMostListed || (shape.dropped > 0 && shape.columns > kMostListed)) return leaf;
    with_block<WideBlock<T>, NarrowBlock<T>, HalfOrNone<T>, ThinOrNone<T>>(
        shape.rows, shape.columns, [&](auto block) {
          leaf = {"listed", move_listed<typename decltype(block)::type>};
        });
  }
  return leaf;
}

}  // namespace

Leaf leaf_for(const PanelShape& shape) {
  Leaf leaf{};
  switch (shape.unit_bytes) {
    case 1:
      leaf = transpose_for<uint8_t>(shape);
      break;
    case 2:
      leaf = transpose_for<uint16_t>(shape);
      break;
    case 4:
      leaf = transpose_for<uint32_t>(shape);
      break;
    case 8:
      leaf = transpose_for<uint64_t>(shape);
      break;
    case 16:
      if (shape.column_step == 16 && shape.has_even_rows && shape.has_even_columns &&
          (shape.rows > 1 || shape.columns > 1))
        return {"even", move_even<AnyTile<LaneBlock, LaneBlock, StreamedLanes, void>>};
      break;
    default:
      break;
  }
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
      return {"runs", move_runs};
  }
}

Leaf leaf_of_runs() { return {"runs", move_runs}; }

}  // namespace tilework
