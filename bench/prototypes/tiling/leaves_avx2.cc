// Leaves with AVX2.
#include <algorithm>
#include <cstring>

#include "panel.h"
#include "reorder/blocks_avx2.h"
#include "reorder/channels.h"
#include "reorder/channels_avx2.h"
#include "reorder/odd_rows.h"
#include "reorder/padded_pixels_avx2.h"
#include "reorder/run_copy.h"
#include "reorder/streamed_blocks_avx2.h"
#include "reorder/streamed_lanes_avx2.h"
#include "reorder/tile_kernel.h"

namespace tilework {
namespace {

struct Vector {
  static constexpr int64_t kBytes = 32;
  static void copy(uint8_t* destination, const uint8_t* source) { store32(destination, load32(source)); }
  static void copy_half(uint8_t* destination, const uint8_t* source) { store16(destination, load16(source)); }
  static void stream(uint8_t* destination, const uint8_t* source) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(destination), load32(source));
  }
};

// Steps that continue the rows or the columns of a panel become a part of it.
bool merge_step(Panel& panel, Steps& step) {
  if (step.count == 1 && step.tail == 0) return true;
  const int64_t unit = panel.unit_bytes;
  if (panel.column_at == nullptr && step.tail_of != Edge::kRows && step.source == panel.columns * unit &&
      (panel.columns == 1 || step.destination == panel.columns * panel.column_stride)) {
    if (panel.columns == 1) panel.column_stride = step.destination;
    panel.columns = panel.columns * step.count + (step.tail_of == Edge::kColumns ? step.tail : 0);
    step = {};
    return true;
  }
  if (panel.row_at == nullptr && panel.zero_rows == 0 && step.tail_of != Edge::kColumns && step.destination == panel.rows * unit &&
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
struct SpecialTiles : Channels<T, PixelsAvx2<T>> {
  static bool run(const Tile& tile) {
    if constexpr (sizeof(T) <= 4) {
      if (PaddedPixels<T>::run(tile) || StreamedBlocks<T>::run(tile)) return true;
      if (Channels<T, PixelsAvx2<T>>::run(tile)) return true;
      return OddRows<WideBlock<T>, NarrowBlock<T>, HalfBlock<T>>::run(tile);
    }
    return Channels<T, PixelsAvx2<T>>::run(tile);
  }
};

template <class T>
using Tiles = AnyTile<WideBlock<T>, NarrowBlock<T>, SpecialTiles<T>, HalfOrNone<T>>;

// Rows and columns with constant distances.
template <class AnyTiles>
void move_even(const Panel& panel) {
  const Panel one = merged(panel);
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    AnyTiles::run({source, destination, one.columns, one.rows, one.zero_rows, one.row_stride, one.column_stride, one.stores});
  });
}

// Zeros that rows without a source are read from.
constexpr int64_t kZeroBytes = 4096;
alignas(kLineBytes) constexpr uint8_t kZeros[kZeroBytes] = {};
constexpr int64_t kMostListed = 1024;

// Rows or columns, or both, from lists.
template <class Block>
void move_listed(const Panel& panel) {
  const Panel one = merged(panel);
  const int64_t strip = one.columns;
  const auto with_rows = [&](const uint8_t* source, uint8_t* destination, auto row_at) {
    if (one.column_at == nullptr) {
      transpose_places<Block>(source, row_at, one.rows, destination, Strided{one.column_stride}, one.columns, strip);
    } else {
      transpose_places<Block>(source, row_at, one.rows, destination, Listed{one.column_at}, one.columns, strip);
    }
  };
  if (one.holes > 0) {
    int64_t rows[kMostListed];
    at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
      const auto zeros = static_cast<int64_t>(reinterpret_cast<intptr_t>(kZeros) - reinterpret_cast<intptr_t>(source));
      const int64_t valid = one.rows - one.zero_rows;
      for (int64_t r = 0; r < one.rows; ++r) {
        const int64_t at = one.row_at == nullptr ? r * one.row_stride : one.row_at[r];
        rows[r] = r >= valid || at == kNoSource ? zeros : at;
      }
      with_rows(source, destination, Listed{rows});
    });
    return;
  }
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    if (one.row_at == nullptr) {
      with_rows(source, destination, Strided{one.row_stride});
    } else {
      with_rows(source, destination, Listed{one.row_at});
    }
  });
}

struct At {
  const int64_t* list;
  int64_t stride;
  int64_t operator()(int64_t i) const { return list == nullptr ? i * stride : list[i]; }
};

// Copies of one size, chosen before the loops over units.
template <int64_t kBytes>
struct CopyFixed {
  explicit CopyFixed(int64_t) {}
  void operator()(uint8_t* to, const uint8_t* from) const { std::memcpy(to, from, kBytes); }
};
// Sizes from kPiece to 2 * kPiece: two pieces that may overlap.
template <int64_t kPiece>
struct CopyEnds {
  int64_t last;
  explicit CopyEnds(int64_t bytes) : last(bytes - kPiece) {}
  void operator()(uint8_t* to, const uint8_t* from) const {
    uint8_t first_piece[kPiece];
    uint8_t last_piece[kPiece];
    std::memcpy(first_piece, from, kPiece);
    std::memcpy(last_piece, from + last, kPiece);
    std::memcpy(to, first_piece, kPiece);
    std::memcpy(to + last, last_piece, kPiece);
  }
};
struct CopyAny {
  int64_t bytes;
  explicit CopyAny(int64_t size) : bytes(size) {}
  void operator()(uint8_t* to, const uint8_t* from) const { copy_run<Vector>(to, from, bytes, Stores::kCached); }
};
template <int64_t kBytes>
struct StreamFixed {
  explicit StreamFixed(int64_t) {}
  void operator()(uint8_t* to, const uint8_t* from) const {
    for (int64_t i = 0; i < kBytes; i += 32) _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i), load32(from + i));
  }
};
struct StreamAny {
  int64_t bytes;
  explicit StreamAny(int64_t size) : bytes(size) {}
  void operator()(uint8_t* to, const uint8_t* from) const { copy_run<Vector>(to, from, bytes, Stores::kStreaming); }
};

// Units that are copied one by one.
template <class Copy>
[[gnu::noinline]] void copy_units(const Panel one) {
  const Copy copy(one.unit_bytes);
  const int64_t unit = one.unit_bytes;
  const int64_t valid = one.rows - one.zero_rows;
  if (one.row_at == nullptr && one.column_at == nullptr && one.zero_rows == 0) {
    // As many rows at a time as make a line.
    const int64_t group = std::max<int64_t>(kLineBytes / unit, 1);
    at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
      int64_t r = 0;
      if (group == 2) {
        for (; r + 2 <= valid; r += 2) {
          const uint8_t* from = source + r * one.row_stride;
          uint8_t* to = destination + r * unit;
          for (int64_t c = 0; c < one.columns; ++c) {
            copy(to, from);
            copy(to + unit, from + one.row_stride);
            to += one.column_stride;
            from += unit;
          }
        }
      } else if (group == 4) {
        for (; r + 4 <= valid; r += 4) {
          const uint8_t* from = source + r * one.row_stride;
          uint8_t* to = destination + r * unit;
          for (int64_t c = 0; c < one.columns; ++c) {
            for (int64_t k = 0; k < 4; ++k) copy(to + k * unit, from + k * one.row_stride);
            to += one.column_stride;
            from += unit;
          }
        }
      }
      for (; r < valid; ++r) {
        const uint8_t* from = source + r * one.row_stride;
        uint8_t* to = destination + r * unit;
        for (int64_t c = 0; c < one.columns; ++c) {
          copy(to, from);
          to += one.column_stride;
          from += unit;
        }
      }
    });
    return;
  }
  const At row_at{one.row_at, one.row_stride};
  const At column_at{one.column_at, one.column_stride};
  at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
    for (int64_t c = 0; c < one.columns; ++c) {
      const uint8_t* from = source + c * unit;
      uint8_t* to = destination + column_at(c);
      for (int64_t r = 0; r < valid; ++r) {
        if (one.holes > one.zero_rows && row_at(r) == kNoSource) {
          std::memset(to + r * unit, 0, static_cast<size_t>(unit));
        } else {
          copy(to + r * unit, from + row_at(r));
        }
      }
      if (one.zero_rows > 0) std::memset(to + valid * unit, 0, static_cast<size_t>(one.zero_rows * unit));
    }
  });
}

bool has_aligned_stores(const Panel& panel) {
  int64_t bits = panel.inner.destination | panel.outer.destination | panel.column_stride | panel.unit_bytes;
  if (panel.column_at != nullptr) {
    for (int64_t c = 0; c < panel.columns; ++c) bits |= panel.column_at[c];
  }
  return is_aligned(panel.destination, 32) && bits % 32 == 0;
}

template <int64_t kUnit>
void move_units(const Panel& panel) {
  const Panel one = merged(panel);
  if constexpr (kUnit % 32 == 0) {
    if (one.stores == Stores::kStreaming && has_aligned_stores(one) && one.rows * kUnit % kLineBytes == 0) return copy_units<StreamFixed<kUnit>>(one);
  }
  copy_units<CopyFixed<kUnit>>(one);
}

void move_runs(const Panel& panel) {
  const Panel one = merged(panel);
  const int64_t unit = one.unit_bytes;
  if (one.stores == Stores::kStreaming && unit >= 256) return copy_units<StreamAny>(one);
  if (unit > 64) return copy_units<CopyAny>(one);
  if (unit > 32) return copy_units<CopyEnds<32>>(one);
  if (unit > 16) return copy_units<CopyEnds<16>>(one);
  if (unit > 8) return copy_units<CopyEnds<8>>(one);
  if (unit > 4) return copy_units<CopyEnds<4>>(one);
  copy_units<CopyFixed<3>>(one);
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
    for (int r = 0; r < kCount; ++r) from[r] = r < valid ? source + row_at(r) : nullptr;
    for (int64_t c = 0; c < one.columns; c += kWidth) {
      const int64_t column = std::min(c, one.columns - kWidth);
      __m256i rows[kCount];
      for (int r = 0; r < kCount; ++r) {
        rows[r] = r < valid ? load32(from[r] + column * kSize) : _mm256_setzero_si256();
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

template <class T>
Leaf transpose_for(const PanelShape& shape) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kWidth = 32 / kSize;
  Leaf leaf{};
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
    if (shape.columns >= kWidth && shape.has_even_columns && shape.column_stride == shape.rows * kSize && !(shape.has_even_rows)) {
      by_count(shape.rows, [](auto count) { return Leaf{"zip", zip<T, decltype(count)::value>}; });
      if (leaf.run) return leaf;
    }
    if (shape.rows >= kWidth && shape.has_even_rows && shape.row_stride == shape.columns * kSize && !(shape.has_even_columns)) {
      by_count(shape.columns, [](auto count) { return Leaf{"unzip", unzip<T, decltype(count)::value>}; });
      if (leaf.run) return leaf;
    }
    if (shape.has_even_rows && shape.has_even_columns) return {"even", move_even<Tiles<T>>};
    if (shape.rows > kMostListed) return leaf;
    with_block<WideBlock<T>, NarrowBlock<T>, HalfOrNone<T>, ThinOrNone<T>>(shape.rows, shape.columns, [&](auto block) {
      leaf = {"listed", move_listed<typename decltype(block)::type>};
    });
  }
  return leaf;
}

}  // namespace

Leaf leaf_for(const PanelShape& shape) {
  Leaf leaf{};
  switch (shape.unit_bytes) {
    case 1: leaf = transpose_for<uint8_t>(shape); break;
    case 2: leaf = transpose_for<uint16_t>(shape); break;
    case 4: leaf = transpose_for<uint32_t>(shape); break;
    case 8: leaf = transpose_for<uint64_t>(shape); break;
    case 16:
      if (shape.has_even_rows && shape.has_even_columns && (shape.rows > 1 || shape.columns > 1)) return {"even", move_even<AnyTile<LaneBlock, LaneBlock, StreamedLanes, void>>};
      break;
    default: break;
  }
  if (leaf.run != nullptr) return leaf;
  switch (shape.unit_bytes) {
    case 1: return {"units", move_units<1>};
    case 2: return {"units", move_units<2>};
    case 3: return {"units", move_units<3>};
    case 4: return {"units", move_units<4>};
    case 6: return {"units", move_units<6>};
    case 8: return {"units", move_units<8>};
    case 12: return {"units", move_units<12>};
    case 16: return {"units", move_units<16>};
    case 24: return {"units", move_units<24>};
    case 32: return {"units", move_units<32>};
    case 48: return {"units", move_units<48>};
    case 64: return {"units", move_units<64>};
    case 96: return {"units", move_units<96>};
    case 128: return {"units", move_units<128>};
    case 256: return {"units", move_units<256>};
    default: return {"runs", move_runs};
  }
}

}  // namespace tilework
