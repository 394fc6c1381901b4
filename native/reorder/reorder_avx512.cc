// Squares of cache lines with AVX-512, and runs past the caches; everything else is moved as with AVX2.
// Compiled for AVX-512, so it must not be entered on another processor, and must not define anything that
// others might link to: all of it but the kernel is internal.
//
// Of a square, each line of the source is read once and each line of the destination is written once, all of
// it. So it does not matter that rows, or columns, share sets of the cache, and no line waits for its rest.
#include <immintrin.h>

#include <algorithm>

#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/cache_lines.h"
#include "reorder/cache_sets.h"
#include "reorder/kernels.h"
#include "reorder/panel_steps.h"
#include "reorder/registers_avx512.h"
#include "reorder/runs.h"
#include "reorder/tile.h"
#include "reorder/vector_avx2.h"
#include "reorder/windows_avx512.h"

namespace tilework {
namespace {

// As many rows as columns, so that both are a line long.
template <class T>
struct Square {
  static constexpr int64_t kUnits = kLineBytes / sizeof(T);
  // Rows whose units fill a lane.
  static constexpr int kLaneRows = 16 / sizeof(T);

  template <bool kStreams, class Rows, class Columns>
  [[gnu::noinline]] static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination,
                                          Columns column_at) {
    alignas(64) uint8_t buffer[4 * kLaneRows * kLineBytes];
    for (int lane = 0; lane < 4; ++lane) {
      __m512i rows[kLaneRows];
#pragma GCC unroll 16
      for (int r = 0; r < kLaneRows; ++r) rows[r] = load64(source + row_at(lane * kLaneRows + r));
      for (int done = 1; done < kLaneRows; done *= 2) step<sizeof(T)>(rows);
#pragma GCC unroll 16
      for (int r = 0; r < kLaneRows; ++r) store64<false>(buffer + (r * 4 + lane) * kLineBytes, rows[r]);
    }
    for (int r = 0; r < kLaneRows; ++r) {
      __m512i lines[4];
      for (int lane = 0; lane < 4; ++lane) lines[lane] = load64(buffer + (r * 4 + lane) * kLineBytes);
      transpose_lanes(lines);
      for (int lane = 0; lane < 4; ++lane)
        store64<kStreams>(destination + column_at(lane * kLaneRows + r), lines[lane]);
    }
  }
};

template <class T>
class Squares {
 public:
  static constexpr int64_t kUnits = Square<T>::kUnits;

  // Of units of 4 bytes a block of AVX2 is as good as one square.
  static bool fits(const PanelShape& shape) {
    const int64_t longest = std::max(shape.rows, shape.columns);
    return shape.column_step == kSize && std::min(shape.rows, shape.columns) >= kUnits &&
           (kSize < 4 || longest >= 2 * kUnits) && shape.holes == 0 && shape.dropped == 0 &&
           !(shape.rows * shape.columns < kLeastSquareShare.times(wasted_units(shape)));
  }

  static void move(const Panel& panel) {
    const Panel one = merged(panel);
    if (!pays(one)) return leaves__avx2().of(shape_of(panel)).run(panel);
    const bool streams = one.stores == Stores::kStreaming;
    TILEWORK_WAY(one.stores == Stores::kStreaming ? "squares: lines" : "squares: rows");
    at_steps(one, [&](const uint8_t* source, uint8_t* destination) {
      if (streams) {
        move_lines(one, source, destination);
      } else {
        move_rows<false>(one, source, destination, 0, one.rows);
      }
    });
  }

 private:
  static constexpr int64_t kSize = sizeof(T);

  static int64_t wasted_units(const PanelShape& shape) {
    const auto squared = [](int64_t count) { return ceil_div(count, kUnits) * kUnits; };
    return squared(shape.rows) * squared(shape.columns) - shape.rows * shape.columns;
  }

  // Where measurements say so (docs/decisions/007). Past the caches blocks of AVX2 ask for lines ahead, which
  // is worth more, but for rows of one or two lines side by side and for lists. Of wider units a block of
  // AVX2 has whole lines too: few columns that are far apart are written as well by it, and those that crowd
  // sets better.
  static bool pays(const Panel& panel) {
    const bool is_even = panel.row_at == nullptr && panel.column_at == nullptr;
    if (panel.stores == Stores::kStreaming) {
      const bool is_near = panel.row_stride == panel.columns * kSize && panel.row_stride <= kNearSquareRow;
      return has_lines(panel) && (panel.row_at != nullptr || is_near);
    }
    if constexpr (kSize == 1) return !is_even || panel.row_stride % kSetBytes != 0;
    const bool is_crowded =
        is_even && (crowds_sets(panel.row_stride, kUnits) || crowds_sets(panel.column_stride, kUnits));
    const int64_t column = panel.rows * kSize;
    const bool is_dense =
        panel.column_at == nullptr && panel.column_stride == column && column <= kShortSquareColumn;
    const bool has_many = kSize == 2 && (!is_even || panel.columns >= 2 * kUnits);
    return !is_crowded && (is_dense || has_many);
  }

  // Columns that begin at one place of a line each.
  static bool has_lines(const Panel& panel) {
    return panel.column_at == nullptr && panel.column_stride % kLineBytes == 0 &&
           panel.inner.destination % kLineBytes == 0 && panel.outer.destination % kLineBytes == 0 &&
           bytes_past(panel.destination, kLineBytes) % kSize == 0 && panel.rows >= 2 * kUnits;
  }

  // Rows before the first line, and behind the last one, lie in a square with others.
  static void move_lines(const Panel& panel, const uint8_t* source, uint8_t* destination) {
    const int64_t first = elements_before_line(destination, kSize);
    const int64_t end = first + (panel.rows - first) / kUnits * kUnits;
    if (first > 0) move_rows<false>(panel, source, destination, 0, kUnits);
    move_rows<true>(panel, source, destination, first, end);
    if (end < panel.rows) move_rows<false>(panel, source, destination, panel.rows - kUnits, panel.rows);
  }

  template <bool kStreams>
  static void move_rows(const Panel& panel, const uint8_t* source, uint8_t* destination, int64_t begin,
                        int64_t end) {
    if (panel.row_at == nullptr) {
      with_columns<kStreams>(panel, source, Strided{panel.row_stride}, destination, begin, end);
    } else {
      with_columns<kStreams>(panel, source, Listed{panel.row_at}, destination, begin, end);
    }
  }

  template <bool kStreams, class Rows>
  static void with_columns(const Panel& panel, const uint8_t* source, Rows row_at, uint8_t* destination,
                           int64_t begin, int64_t end) {
    if (panel.column_at == nullptr) {
      each_square<kStreams>(panel, source, row_at, destination, Strided{panel.column_stride}, begin, end);
    } else {
      each_square<kStreams>(panel, source, row_at, destination, Listed{panel.column_at}, begin, end);
    }
  }

  // The last squares may begin inside the ones before.
  template <bool kStreams, class Rows, class Columns>
  static void each_square(const Panel& panel, const uint8_t* source, Rows row_at, uint8_t* destination,
                          Columns column_at, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r += kUnits) {
      const int64_t row = std::min(r, end - kUnits);
      for (int64_t c = 0; c < panel.columns; c += kUnits) {
        const int64_t column = std::min(c, panel.columns - kUnits);
        Square<T>::template transpose<kStreams>(source + column * kSize, row_at.from(row),
                                                destination + row * kSize, column_at.from(column));
      }
    }
  }
};

// A line that is streamed in two stores may leave the processor in two pieces.
struct LineVector : Vector {
  static void stream_line(uint8_t* destination, const uint8_t* source) {
    store64<true>(destination, load64(source));
  }
};

void stream_lines(uint8_t* destination, const uint8_t* source, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kLineBytes) LineVector::stream_line(destination + i, source + i);
}

// In the caches 64-byte stores are slower on some processors.
void move_lines_of_runs(const Panel& panel) {
  panel.stores == Stores::kStreaming ? move_runs<LineVector>(panel) : leaves__avx2().of_runs().run(panel);
}

Leaf of_runs() { return {"runs", move_lines_of_runs}; }

template <class T>
Leaf squares_or(Leaf leaf, const PanelShape& shape) {
  return Squares<T>::fits(shape) ? Leaf{"squares", Squares<T>::move} : leaf;
}

Leaf leaf_of(const PanelShape& shape) {
  if (const Leaf windows = windows_leaf(shape); windows.run != nullptr) return windows;
  const Leaf leaf = leaves__avx2().of(shape);
  switch (shape.unit_bytes) {
    case 1:
      return squares_or<uint8_t>(leaf, shape);
    case 2:
      return squares_or<uint16_t>(leaf, shape);
    case 4:
      return squares_or<uint32_t>(leaf, shape);
    default:
      return leaf.run == leaves__avx2().of_runs().run ? of_runs() : leaf;
  }
}

Leaves with_lines(Leaves leaves) {
  leaves.of = leaf_of;
  leaves.of_runs = of_runs;
  leaves.stream_lines = stream_lines;
  return leaves;
}

}  // namespace

const Leaves& leaves__avx512() {
  static const Leaves kLeaves = with_lines(leaves__avx2());
  return kLeaves;
}

void reorder_tiles__avx512(const ReorderArguments& a) {
  run_programs(a, leaves__avx512());
  if (a.stores == Stores::kStreaming) _mm_sfence();
}

}  // namespace tilework
