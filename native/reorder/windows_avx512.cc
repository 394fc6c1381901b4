#include "reorder/windows_avx512.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "cpu/features.h"
#include "policy/thresholds.h"
#include "reorder/cache_lines.h"
#include "reorder/kernels.h"
#include "reorder/panel_steps.h"
#include "reorder/registers_avx512.h"

namespace tilework {
namespace {

constexpr int64_t kTaps = 9;
// A piece: windows side by side with four bytes of each tap. Sixteen pieces make a line of each tap.
constexpr int64_t kPieceTapBytes = 4;
constexpr int64_t kPieces = kLineBytes / kPieceTapBytes;
constexpr int64_t kPieceBytes = kPieceTapBytes * kTaps;
constexpr __mmask64 kPieceMask = (uint64_t{1} << kPieceBytes) - 1;
// Of one tap, that a panel has at most.
constexpr int64_t kMostLines = kMostWindowLines.value;

// From which byte of one or two registers each byte of a line comes.
using Order = std::array<uint8_t, kLineBytes>;

template <class SourceOf>
constexpr Order order_of(SourceOf source_of) {
  Order order{};
  for (int64_t i = 0; i < kLineBytes; ++i) order[i] = static_cast<uint8_t>(source_of(i));
  return order;
}

TILEWORK_INLINE __m512i load_order(const Order& order) { return load64(order.data()); }

// Orders of units of kSize bytes. Two pieces, a register each, have eight bytes of each tap: a unit of 8.
template <int64_t kSize>
struct Orders {
  // Byte `i` of the unit of a tap; bytes of the second piece count from 64 on.
  static constexpr int64_t in_two_pieces(int64_t i, int64_t tap) {
    const int64_t window = i % kPieceTapBytes / kSize;
    return i / kPieceTapBytes * kLineBytes + (window * kTaps + tap) * kSize + i % kSize;
  }
  alignas(kLineBytes) static constexpr Order kEightTaps = order_of([](int64_t i) {
    return in_two_pieces(i % 8, i / 8);
  });
  alignas(kLineBytes) static constexpr Order kNinthTap = order_of([](int64_t i) {
    return in_two_pieces(i % 8, kTaps - 1);
  });

  // Piece `p`, of the units of eight taps of it and its neighbour, and of a line of the ninth tap.
  static constexpr Order piece(int64_t p) {
    return order_of([p](int64_t i) {
      const int64_t tap = i / kSize % kTaps;
      const int64_t byte = i / kSize / kTaps * kSize + i % kSize;
      return tap == kTaps - 1 ? kLineBytes + (p * kPieceTapBytes + byte) % kLineBytes
                              : tap * 8 + (p % 2 * kPieceTapBytes + byte) % 8;
    });
  }
  struct Pieces {
    alignas(kLineBytes) Order of[kPieces];
  };
  static constexpr Pieces kPiece = [] {
    Pieces pieces{};
    for (int64_t p = 0; p < kPieces; ++p) pieces.of[p] = piece(p);
    return pieces;
  }();
};

// Lines that have kHigh units of each window side by side, from lines in the order of pieces, which have the
// windows of each unit side by side; and back.
template <int64_t kSize, int64_t kHigh>
struct LineOrders {
  static constexpr int64_t kWindows = kLineBytes / kSize / kHigh;
  // Transposes the units of a line, of which kCount follow each other then.
  template <int64_t kCount>
  static constexpr Order transposed() {
    return order_of([](int64_t i) {
      const int64_t unit = i / kSize;
      return (unit % kCount * (kLineBytes / kSize / kCount) + unit / kCount) * kSize + i % kSize;
    });
  }
  alignas(kLineBytes) static constexpr Order kFromPieces = transposed<kHigh>();
  alignas(kLineBytes) static constexpr Order kToPieces = transposed<kWindows>();
};

// Unit i of 8 bytes of line k becomes unit k of line i.
TILEWORK_INLINE void transpose_units(__m512i (&lines)[8]) {
  __m512i even[4];
  __m512i odd[4];
  for (int i = 0; i < 4; ++i) {
    even[i] = _mm512_unpacklo_epi64(lines[2 * i], lines[2 * i + 1]);
    odd[i] = _mm512_unpackhi_epi64(lines[2 * i], lines[2 * i + 1]);
  }
  transpose_lanes(even);
  transpose_lanes(odd);
  for (int i = 0; i < 4; ++i) {
    lines[2 * i] = even[i];
    lines[2 * i + 1] = odd[i];
  }
}

// Where the pieces and the lines of a panel are on their sides, in bytes.
struct Places {
  int64_t lines = 0;
  int64_t piece_at[kMostLines * kPieces];
  int64_t line_at[kMostLines * kTaps];
  // Null where lines have the order of pieces.
  const Order* from_pieces = nullptr;
  const Order* to_pieces = nullptr;
};

// The source has pieces.
template <int64_t kSize, bool kStreams>
void write_lines(const Panel& panel, const Places& places) {
  TILEWORK_WAY(kStreams ? "windows: lines, streamed" : "windows: lines");
  const __m512i eight_taps = load_order(Orders<kSize>::kEightTaps);
  const __m512i ninth_tap = load_order(Orders<kSize>::kNinthTap);
  const bool is_ordered = places.from_pieces == nullptr;
  const __m512i order = is_ordered ? __m512i{} : load_order(*places.from_pieces);
  at_steps(panel, [&](const uint8_t* source, uint8_t* destination) {
    for (int64_t l = 0; l < places.lines; ++l) {
      const int64_t* piece_at = places.piece_at + l * kPieces;
      const int64_t* line_at = places.line_at + l * kTaps;
      __m512i lines[8];
      __m512i ninth = _mm512_setzero_si512();
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        const __m512i first = _mm512_maskz_loadu_epi8(kPieceMask, source + piece_at[2 * i]);
        const __m512i second = _mm512_maskz_loadu_epi8(kPieceMask, source + piece_at[2 * i + 1]);
        lines[i] = _mm512_permutex2var_epi8(first, eight_taps, second);
        const __mmask64 unit = uint64_t{0xff} << (8 * i);
        ninth = _mm512_or_si512(ninth, _mm512_maskz_permutex2var_epi8(unit, first, ninth_tap, second));
      }
      transpose_units(lines);
      const auto store = [&](int tap, __m512i line) {
        const __m512i ordered = is_ordered ? line : _mm512_permutexvar_epi8(order, line);
        store64<kStreams>(destination + line_at[tap], ordered);
      };
#pragma GCC unroll 8
      for (int tap = 0; tap < 8; ++tap) store(tap, lines[tap]);
      store(8, ninth);
    }
  });
}

// The destination has pieces.
template <int64_t kSize>
void write_pieces(const Panel& panel, const Places& places) {
  TILEWORK_WAY("windows: pieces");
  const bool is_ordered = places.to_pieces == nullptr;
  const __m512i order = is_ordered ? __m512i{} : load_order(*places.to_pieces);
  at_steps(panel, [&](const uint8_t* source, uint8_t* destination) {
    for (int64_t l = 0; l < places.lines; ++l) {
      const int64_t* piece_at = places.piece_at + l * kPieces;
      const int64_t* line_at = places.line_at + l * kTaps;
      const auto load = [&](int tap) {
        const __m512i line = load64(source + line_at[tap]);
        return is_ordered ? line : _mm512_permutexvar_epi8(order, line);
      };
      __m512i lines[8];
#pragma GCC unroll 8
      for (int tap = 0; tap < 8; ++tap) lines[tap] = load(tap);
      const __m512i ninth = load(8);
      transpose_units(lines);
#pragma GCC unroll 16
      for (int p = 0; p < kPieces; ++p) {
        const __m512i from = load_order(Orders<kSize>::kPiece.of[p]);
        const __m512i piece = _mm512_permutex2var_epi8(lines[p / 2], from, ninth);
        _mm512_mask_storeu_epi8(destination + piece_at[p], kPieceMask, piece);
      }
    }
  });
}

// The `near` dimension of a panel has the taps of a window, or 8 or 16 units that follow each other in a
// line; the other one, `far`, has a list of all else that a line is made of.
template <int64_t kSize>
class Windows {
 public:
  // Other leaves write pieces of wider units faster, and lines of four bytes in the caches.
  static bool fit(const PanelShape& shape) {
    const Edge near = near_of(shape);
    return near != Edge::kNone && (kSize == 1 || reads_pieces(shape, near));
  }

  static void move(const Panel& panel) {
    const PanelShape shape = shape_of(panel);
    const Edge near = near_of(shape);
    Places places;
    const bool is_streamed = panel.stores == Stores::kStreaming;
    const bool are_windows = (is_streamed || has_many_steps(panel)) && find(panel, near, places);
    const bool streams = are_windows && is_streamed && has_whole_lines(panel, places);
    if (!are_windows || (kSize == 4 && !streams)) return leaves__avx2().of(shape).run(panel);
    if (!reads_pieces(shape, near)) return write_pieces<kSize>(panel, places);
    streams ? write_lines<kSize, true>(panel, places) : write_lines<kSize, false>(panel, places);
  }

  static bool streams_lines(const Panel& panel) {
    const PanelShape shape = shape_of(panel);
    const Edge near = near_of(shape);
    Places places;
    return reads_pieces(shape, near) && find(panel, near, places) && has_whole_lines(panel, places);
  }

 private:
  // Places are listed once for all steps, which costs as much as to move a tile. Of a tile that is put
  // together in a buffer there is one.
  static bool has_many_steps(const Panel& panel) {
    return kSize < 4 && panel.inner.count * panel.outer.count >= kFewestWindowSteps;
  }

  static Edge near_of(const PanelShape& shape) {
    if (shape.column_step != kSize || shape.holes > 0 || shape.dropped > 0) return Edge::kNone;
    if (!shape.has_even_rows && make_lines(shape.columns, shape.rows)) return Edge::kColumns;
    return !shape.has_even_columns && make_lines(shape.rows, shape.columns) ? Edge::kRows : Edge::kNone;
  }

  static bool make_lines(int64_t near, int64_t far) {
    if (near != kTaps && near != 8 && near != 16) return false;
    const int64_t line = kLineBytes / kSize * kTaps / near;
    return far % line == 0 && far / line <= kMostWindowLines;
  }

  // The taps of a window are columns, which follow each other in the source.
  static bool reads_pieces(const PanelShape& shape, Edge near) {
    return near == Edge::kColumns ? shape.columns == kTaps : shape.rows != kTaps;
  }

  static bool find(const Panel& panel, Edge near, Places& places) {
    const At row_at{panel.row_at, panel.row_stride};
    const At column_at{panel.column_at, panel.column_stride};
    if (near == Edge::kNone) return false;
    return near == Edge::kColumns ? find(panel.columns, column_at, panel.rows, panel.row_at, places)
                                  : find(panel.rows, row_at, panel.columns, panel.column_at, places);
  }

  static bool find(int64_t near, At near_at, int64_t far, const int64_t* far_at, Places& places) {
    switch (near) {
      case kTaps:
        return find_inner(near_at, far, far_at, places);
      case 8:
        return find_outer<8>(near_at, far, far_at, places);
      default:
        return find_outer<16>(near_at, far, far_at, places);
    }
  }

  // The windows of a piece follow each other in a line.
  static bool find_inner(At tap_at, int64_t far, const int64_t* far_at, Places& places) {
    constexpr int64_t kPieceWindows = kPieceTapBytes / kSize;
    int64_t differences = 0;
    for (int64_t i = 0; i < far; i += kPieceWindows) {
      places.piece_at[i / kPieceWindows] = far_at[i];
      for (int64_t w = 1; w < kPieceWindows; ++w)
        differences |= far_at[i + w] ^ (far_at[i] + w * kTaps * kSize);
    }
    places.lines = far * kSize / kLineBytes;
    for (int64_t l = 0; l < places.lines; ++l)
      for (int64_t tap = 0; tap < kTaps; ++tap)
        places.line_at[l * kTaps + tap] = tap_at(tap) + l * kLineBytes;
    return differences == 0;
  }

  // kHigh units of each window follow each other in a line; `far` are taps.
  template <int64_t kHigh>
  static bool find_outer(At high_at, int64_t far, const int64_t* far_at, Places& places) {
    using Line = LineOrders<kSize, kHigh>;
    constexpr int64_t kLineFar = Line::kWindows * kTaps;
    places.lines = far / kLineFar;
    int64_t differences = 0;
    for (int64_t l = 0; l < places.lines; ++l) {
      const int64_t* tap_at = far_at + l * kLineFar;
      std::copy_n(tap_at, kTaps, places.line_at + l * kTaps);
      for (int64_t w = 1; w < Line::kWindows; ++w)
        for (int64_t tap = 0; tap < kTaps; ++tap)
          differences |= tap_at[w * kTaps + tap] ^ (tap_at[tap] + w * kHigh * kSize);
    }
    constexpr int64_t kRowPieces = kPieces / kHigh;
    for (int64_t p = 0; p < places.lines * kPieces; ++p) {
      const int64_t in_row = p / kPieces * kRowPieces + p % kRowPieces;
      places.piece_at[p] = high_at(p % kPieces / kRowPieces) + in_row * kPieceBytes;
    }
    places.from_pieces = &Line::kFromPieces;
    places.to_pieces = &Line::kToPieces;
    return differences == 0;
  }

  static bool has_whole_lines(const Panel& panel, const Places& places) {
    const auto is_line = [](int64_t offset) { return offset % kLineBytes == 0; };
    return bytes_past(panel.destination, kLineBytes) == 0 && is_line(panel.inner.destination) &&
           is_line(panel.outer.destination) &&
           std::all_of(places.line_at, places.line_at + places.lines * kTaps, is_line);
  }
};

}  // namespace

Leaf windows_leaf(const PanelShape& shape) {
  static const bool has_permutations = cpu_has("avx512vbmi");
  const auto leaf_of = [&]<int64_t kSize>(std::integral_constant<int64_t, kSize>) {
    using Of = Windows<kSize>;
    const bool fits = has_permutations && Of::fit(shape);
    return fits ? Leaf{"windows", Of::move, Of::streams_lines} : Leaf{};
  };
  switch (shape.unit_bytes) {
    case 1:
      return leaf_of(std::integral_constant<int64_t, 1>{});
    case 2:
      return leaf_of(std::integral_constant<int64_t, 2>{});
    case 4:
      return leaf_of(std::integral_constant<int64_t, 4>{});
    default:
      return {};
  }
}

}  // namespace tilework
