#include "reorder/cast/panel_conversion.h"

#include <algorithm>
#include <cstring>
#include <variant>

#include "cpu/cache.h"
#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/leaf/cache_lines.h"
#include "reorder/leaf/nibbles.h"
#include "reorder/leaf/panel_steps.h"
#include "reorder/plan/tiling.h"

namespace tilework {
namespace {

// Rows, or columns, in the buffer begin in different sets of the cache.
constexpr int64_t kBufferBytes = kPanelBufferBytes.value;
constexpr int64_t kMostLines = kBufferBytes / kCastCallBytes.value;
constexpr int64_t kSpacedBufferBytes = kBufferBytes + kMostLines * kLineBytes;

// Whole lines for a unit, and for a call.
int64_t least_room(int64_t unit_bytes) {
  return ceil_div(at_least(unit_bytes, kCastCallBytes), kLineBytes) * kLineBytes;
}

bool is_hole(const Panel& panel, int64_t r) {
  return r >= panel.rows - panel.zero_rows || At{panel.row_at, panel.row_stride}(r) == kNoSource;
}

CastLeaf leaf_of_chain(const CastChain& chain) {
  const bool is_cast = chain.steps().size() == 1 && std::holds_alternative<Cast>(chain.steps().front());
  return is_cast ? cast_leaf(chain.from(), chain.to()) : CastLeaf{};
}

}  // namespace

PanelConversion::PanelConversion(const CastChain& chain, Order order)
    : chain_(chain),
      order_(order),
      base_offsets_(offsets_of_element(base_bits())),
      source_bits_(info_of(chain.from()).bits),
      destination_bytes_(info_of(chain.to()).bits / 8),
      keeps_zero_bits_(chain.keeps_zero_bits()),
      in_registers_(leaf_of_chain(chain)) {}

Way PanelConversion::way_of(const Panel& panel) const {
  if (fits_registers(panel)) return Way::kCastBlocks;
  const bool is_cast_first = order_ == Order::kCastFirst;
  if (panel.unit_bytes >= kLongUnitBytes) return Way::kCastUnits;
  const bool is_run = panel.columns == 1 && (panel.rest_bytes > 0 || panel.zero_bytes > 0);
  if (!is_run) return is_cast_first ? Way::kCastRows : Way::kCastColumns;
  return is_cast_first || !fits_buffer(panel) ? Way::kCastUnits : Way::kCastRuns;
}

void PanelConversion::run(const Panel& panel, const Leaves& leaves) const {
  const Way way = way_of(panel);
  TILEWORK_TAKES(way);
  switch (way) {
    case Way::kCastBlocks:
      return in_registers_.run(in_bytes(panel));
    case Way::kCastRows:
      return cast_rows(merged(panel), leaves);
    case Way::kCastColumns:
      return cast_columns(merged(panel), leaves);
    case Way::kCastRuns:
      return cast_run(panel, leaves);
    default:
      return move_units(panel);
  }
}

void PanelConversion::move(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t count,
                           int64_t origin, Stores stores) const {
  if (count == 0) return;
  if (source_bits_ < 8 && s % 2 != 0) return move_from_high_half(source, s, destination, d, count, origin);
  chain_.run(source + source_bytes(s), destination + destination_bytes(d), elements_of(origin + d),
             elements_of(count), stores);
}

// A cast begins with the low half of a byte.
void PanelConversion::move_from_high_half(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d,
                                          int64_t count, int64_t origin) const {
  constexpr int64_t kAtOnce = 1024;
  uint8_t nibbles[kAtOnce / 2];
  for (int64_t i = 0; i < count; i += kAtOnce) {
    const int64_t part = std::min(kAtOnce, count - i);
    copy_nibbles(source, s + i, nibbles, 0, part);
    chain_.run(nibbles, destination + destination_bytes(d + i), elements_of(origin + d + i), part);
  }
}

void PanelConversion::clear(uint8_t* destination, int64_t d, int64_t count) const {
  std::memset(destination + destination_bytes(d), 0, static_cast<size_t>(destination_bytes(count)));
}

void PanelConversion::move_units(const Panel& panel) const {
  const bool has_rest = panel.rest_bytes > 0 || panel.zero_bytes > 0;
  const Panel one = has_rest ? panel : merged(panel);
  const At row_at{one.row_at, one.row_stride};
  const At column_at{one.column_at, one.column_stride};
  at_offsets(one, [&](int64_t s, int64_t d) {
    for (int64_t c = 0; c < one.columns; ++c) {
      if (column_at(c) == kDropped) continue;
      const int64_t to = d + column_at(c);
      for (int64_t r = 0; r < one.rows; ++r) {
        if (is_hole(one, r)) {
          clear(one.destination, to + r * one.unit_bytes, one.unit_bytes);
        } else {
          move(one.source, s + c * one.column_step + row_at(r), one.destination, to + r * one.unit_bytes,
               one.unit_bytes, one.origin, one.stores);
        }
      }
    }
    const int64_t end = d + one.rows * one.unit_bytes;
    if (one.rest_bytes > 0)
      move(one.source, s + row_at(one.rows), one.destination, end, one.rest_bytes, one.origin);
    clear(one.destination, end + one.rest_bytes, one.zero_bytes);
  });
}

// The panel with addresses and distances in bytes: of the source, and of the destination.
Panel PanelConversion::in_bytes(const Panel& panel) const {
  Panel one = panel;
  one.source += source_bytes(panel.source_offset);
  one.destination += destination_bytes(panel.destination_offset);
  one.unit_bytes = destination_bytes_;
  one.column_step = source_bits_ / 8;
  one.row_stride = source_bytes(panel.row_stride);
  one.column_stride = destination_bytes(panel.column_stride);
  for (Steps* steps : {&one.inner, &one.outer}) {
    steps->source = source_bytes(steps->source);
    steps->destination = destination_bytes(steps->destination);
  }
  return one;
}

bool PanelConversion::fits_registers(const Panel& panel) const {
  const bool is_even =
      panel.row_at == nullptr && panel.column_at == nullptr && panel.holes <= panel.zero_rows;
  return has_registers() && is_even && panel.unit_bytes == base_offsets_ &&
         panel.column_step == base_offsets_ && in_registers_.fits(in_bytes(panel));
}

template <class Body>
void PanelConversion::each_piece(const Panel& panel, const Room& room, Body body) {
  at_offsets(panel, [&](int64_t s, int64_t d) {
    for (int64_t r = 0; r < panel.rows; r += room.rows) {
      for (int64_t c = 0; c < panel.columns; c += room.columns) {
        body(Piece{s, d, r, std::min(room.rows, panel.rows - r), c,
                   std::min(room.columns, panel.columns - c)});
      }
    }
  });
}

PanelConversion::Room PanelConversion::room_for_rows(const Panel& panel) const {
  const int64_t step = panel.column_step;
  const int64_t row = panel.columns * step;
  const bool is_dense = panel.row_at == nullptr && panel.holes == 0 && panel.row_stride == row &&
                        row <= kMostDenseBytes && step == panel.unit_bytes;
  const int64_t rows = std::clamp<int64_t>(kBufferBytes / (is_dense ? row : least_room(step)), 1, panel.rows);
  if (is_dense) return {true, rows, panel.columns, row};
  const int64_t room = kBufferBytes / rows / kLineBytes * kLineBytes;
  return {false, rows, std::min(panel.columns, room / step), room + kLineBytes};
}

void PanelConversion::cast_rows(const Panel& panel, const Leaves& leaves) const {
  alignas(kLineBytes) uint8_t buffer[kSpacedBufferBytes];
  int64_t row_at[kMostLines];
  const Room room = room_for_rows(panel);
  each_piece(panel, room, [&](const Piece& piece) {
    const bool has_stride = panel.column_at == nullptr;
    Panel part = panel;
    part.rows = piece.rows;
    part.columns = piece.columns;
    part.zero_rows = 0;
    part.holes = cast_rows_of(panel, piece, room, buffer, row_at);
    part.row_at = part.holes > 0 ? row_at : nullptr;
    part.row_stride = room.stride;
    part.column_at = has_stride ? nullptr : panel.column_at + piece.column;
    part.dropped = has_stride ? 0 : std::count(part.column_at, part.column_at + part.columns, kDropped);
    part.inner = part.outer = {};
    part.source = buffer;
    part.destination = panel.destination + piece.destination + piece.row * panel.unit_bytes +
                       (has_stride ? piece.column * panel.column_stride : 0);
    leaves.of_bytes(part).run(part);
  });
}

// Rows of a piece, cast into the buffer. Returns how many have no source, and lists the places of all.
int64_t PanelConversion::cast_rows_of(const Panel& panel, const Piece& piece, const Room& room,
                                      uint8_t* buffer, int64_t* row_at) const {
  const At source_row{panel.row_at, panel.row_stride};
  const int64_t step = panel.column_step;
  const auto cast = [&](int64_t s, uint8_t* to, int64_t offsets) {
    chain_.run(panel.source + source_bytes(s), to, 0, elements_of(offsets));
  };
  if (room.is_dense) {
    cast(piece.source + source_row(piece.row), buffer, piece.rows * room.stride);
    return 0;
  }
  int64_t holes = 0;
  for (int64_t i = 0; i < piece.rows; ++i) {
    const bool has_source = !is_hole(panel, piece.row + i);
    row_at[i] = has_source ? i * room.stride : kNoSource;
    holes += !has_source;
    if (!has_source) continue;
    const int64_t from = piece.source + piece.column * step + source_row(piece.row + i);
    if (panel.stores == Stores::kStreaming) {
      const int64_t next = std::min(room.columns, panel.columns - piece.column - piece.columns);
      fetch(panel.source, from + room.columns * step, next * step);
    }
    cast(from, buffer + i * room.stride, (piece.columns - 1) * step + panel.unit_bytes);
  }
  return holes;
}

PanelConversion::Room PanelConversion::room_for_columns(const Panel& panel) const {
  const int64_t per_byte = source_bits_ < 8 ? 2 : 1;
  const int64_t unit = panel.unit_bytes;
  const int64_t column = panel.rows * unit;
  const bool is_dense = panel.column_at == nullptr && panel.column_stride == column &&
                        column <= kMostDenseBytes.times(per_byte) && column % per_byte == 0;
  const int64_t least = is_dense ? column : least_room(ceil_div(unit, per_byte)) * per_byte;
  const int64_t columns = std::clamp<int64_t>(kBufferBytes * per_byte / least, 1, panel.columns);
  if (is_dense) return {true, panel.rows, columns, column};
  const int64_t room = kBufferBytes / columns / kLineBytes * kLineBytes;
  return {false, std::min(panel.rows, room * per_byte / unit), columns, (room + kLineBytes) * per_byte};
}

void PanelConversion::cast_columns(const Panel& panel, const Leaves& leaves) const {
  alignas(kLineBytes) uint8_t buffer[kSpacedBufferBytes];
  const bool has_nibbles = source_bits_ < 8;
  const int64_t valid = panel.rows - panel.zero_rows;
  const Room room = room_for_columns(panel);
  each_piece(panel, room, [&](const Piece& piece) {
    const bool has_stride = panel.row_at == nullptr;
    Panel part = panel;
    part.rows = piece.rows;
    part.columns = piece.columns;
    part.zero_rows = std::clamp<int64_t>(piece.row + piece.rows - valid, 0, piece.rows);
    part.row_at = has_stride ? nullptr : panel.row_at + piece.row;
    part.column_at = nullptr;
    part.column_stride = room.stride;
    part.dropped = 0;
    part.inner = part.outer = {};
    part.stores = Stores::kCached;
    part.source_offset =
        piece.source + piece.column * panel.column_step + (has_stride ? piece.row * panel.row_stride : 0);
    if (!has_nibbles) part.source = panel.source + part.source_offset;
    part.destination = buffer;
    part.destination_offset = 0;
    leaves.of(part, has_nibbles).run(part);
    cast_columns_of(panel, piece, room, buffer);
  });
}

// Columns of a piece, cast from the buffer. Zeros that a cast would not keep are written again.
void PanelConversion::cast_columns_of(const Panel& panel, const Piece& piece, const Room& room,
                                      const uint8_t* buffer) const {
  const int64_t per_byte = source_bits_ < 8 ? 2 : 1;
  const int64_t to = piece.destination + piece.row * panel.unit_bytes;
  const At column_at{panel.column_at, panel.column_stride};
  if (room.is_dense)
    cast_from_buffer(buffer, panel, to + piece.column * room.stride, piece.columns * room.stride);
  const bool has_cast_zeros = !keeps_zero_bits_ && panel.holes > 0;
  for (int64_t i = 0; i < piece.columns && (!room.is_dense || has_cast_zeros); ++i) {
    const int64_t at = column_at(piece.column + i);
    if (at == kDropped) continue;
    if (!room.is_dense) {
      cast_from_buffer(buffer + i * room.stride / per_byte, panel, to + at, piece.rows * panel.unit_bytes);
    }
    if (has_cast_zeros) clear_holes(panel, piece.row, piece.rows, piece.destination + at);
  }
}

// What is cast next: the rows of a piece are shorter than what processors follow by themselves.
void PanelConversion::fetch(const uint8_t* source, int64_t s, int64_t count) const {
  const uint8_t* from = source + source_bytes(s);
  for (int64_t i = 0; i < source_bytes(count); i += kLineBytes) __builtin_prefetch(from + i, 0, kSecondLevel);
}

// Whether a run, with the shorter one or the zeros behind it, finds room in the buffer.
bool PanelConversion::fits_buffer(const Panel& panel) const {
  const bool has_nibbles = source_bits_ < 8;
  const Threshold room = kPanelBufferBytes.times(has_nibbles ? 2 : 1);
  const int64_t piece = panel.rows * panel.unit_bytes + panel.rest_bytes + panel.zero_bytes;
  if (piece > room) return false;
  return !has_nibbles || piece % 2 == 0;
}

// Runs with a shorter one, or zeros, behind them: moved into the buffer together.
void PanelConversion::cast_run(const Panel& panel, const Leaves& leaves) const {
  alignas(kLineBytes) uint8_t buffer[kBufferBytes];
  const bool has_nibbles = source_bits_ < 8;
  const Threshold room = kPanelBufferBytes.times(has_nibbles ? 2 : 1);
  const int64_t run = panel.rows * panel.unit_bytes + panel.rest_bytes;
  const int64_t piece = run + panel.zero_bytes;
  const int64_t most = panel.inner.destination == piece ? at_most(panel.inner.count, room.over(piece)) : 1;
  const Leaf leaf = leaves.of_runs(has_nibbles);
  for (int64_t o = 0; o < panel.outer.count; ++o) {
    for (int64_t i = 0; i < panel.inner.count; i += most) {
      Panel part = panel;
      part.inner = {std::min(most, panel.inner.count - i), panel.inner.source, piece};
      part.outer = {};
      part.stores = Stores::kCached;
      part.source_offset += o * panel.outer.source + i * panel.inner.source;
      if (!has_nibbles) part.source = panel.source + part.source_offset;
      part.destination = buffer;
      part.destination_offset = 0;
      leaf.run(part);
      const int64_t d = panel.destination_offset + o * panel.outer.destination + i * panel.inner.destination;
      cast_from_buffer(buffer, panel, d, part.inner.count * piece);
      for (int64_t k = 0; k < part.inner.count && !keeps_zero_bits_; ++k)
        clear(panel.destination, d + k * piece + run, panel.zero_bytes);
    }
  }
}

void PanelConversion::cast_from_buffer(const uint8_t* buffer, const Panel& panel, int64_t d,
                                       int64_t count) const {
  const bool is_long = destination_bytes(count) >= kLongUnitBytes;
  chain_.run(buffer, panel.destination + destination_bytes(d), elements_of(panel.origin + d),
             elements_of(count), is_long ? panel.stores : Stores::kCached);
}

// Zeros that were cast.
void PanelConversion::clear_holes(const Panel& panel, int64_t first_row, int64_t rows, int64_t d) const {
  for (int64_t r = first_row; r < first_row + rows; ++r) {
    if (is_hole(panel, r)) clear(panel.destination, d + r * panel.unit_bytes, panel.unit_bytes);
  }
}

}  // namespace tilework
