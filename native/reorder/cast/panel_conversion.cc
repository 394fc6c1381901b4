#include "reorder/cast/panel_conversion.h"

#include <algorithm>
#include <cstring>
#include <variant>
#include <vector>

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

// Whole lines for a unit of so many bytes, and for a call.
int64_t least_room(int64_t unit_bytes) {
  return ceil_div(at_least(unit_bytes, kCastCallBytes), kLineBytes) * kLineBytes;
}

bool is_hole(const Panel& panel, int64_t r) {
  return r >= panel.rows - panel.zero_rows || At{panel.row_at, panel.row_stride}(r) == kNoSource;
}

Leaf leaf_of(const Leaves& leaves, const PanelShape& shape, bool has_nibbles) {
  return has_nibbles ? leaves.of_nibbles(shape) : leaves.of(shape);
}

CastLeaf leaf_of_chain(const CastChain& chain) {
  const bool is_cast = chain.steps().size() == 1 && std::holds_alternative<Cast>(chain.steps().front());
  return is_cast ? cast_leaf(chain.from(), chain.to()) : nullptr;
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

void PanelConversion::run(const Panel& panel, const Leaves& leaves) const {
  if (in_registers_ != nullptr && cast_in_registers(panel)) return;
  const bool is_run = panel.columns == 1 && (panel.rest_bytes > 0 || panel.zero_bytes > 0);
  if (panel.unit_bytes >= kLongUnitBytes || (is_run && order_ == Order::kCastFirst)) return move_units(panel);
  if (is_run) return cast_run(panel, leaves);
  order_ == Order::kCastFirst ? cast_rows(merged(panel), leaves) : cast_columns(merged(panel), leaves);
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
  TILEWORK_WAY("cast: units");
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

bool PanelConversion::cast_in_registers(const Panel& panel) const {
  const bool is_even =
      panel.row_at == nullptr && panel.column_at == nullptr && panel.holes <= panel.zero_rows;
  if (!is_even || panel.unit_bytes != base_offsets_ || panel.column_step != base_offsets_) return false;
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
  if (!in_registers_(one)) return false;
  TILEWORK_WAY("cast: in registers");
  return true;
}

void PanelConversion::cast_rows(const Panel& panel, const Leaves& leaves) const {
  TILEWORK_WAY("cast: rows, then moved");
  alignas(kLineBytes) uint8_t buffer[kSpacedBufferBytes];
  const At row_at{panel.row_at, panel.row_stride};
  const int64_t step = panel.column_step;
  const int64_t row_bytes = panel.columns * step;
  const bool is_dense = panel.row_at == nullptr && panel.holes == 0 && panel.row_stride == row_bytes &&
                        row_bytes <= kMostDenseBytes && step == panel.unit_bytes;
  const int64_t most_rows =
      std::clamp<int64_t>(kBufferBytes / (is_dense ? row_bytes : least_room(step)), 1, panel.rows);
  const int64_t room = kBufferBytes / most_rows / kLineBytes * kLineBytes;
  const int64_t stride = is_dense ? row_bytes : room + kLineBytes;
  const int64_t most_columns = is_dense ? panel.columns : std::min(panel.columns, room / step);
  std::vector<int64_t> places(static_cast<size_t>(is_dense ? 0 : most_rows));
  const auto cast = [&](int64_t s, uint8_t* to, int64_t offsets) {
    chain_.run(panel.source + source_bytes(s), to, 0, elements_of(offsets));
  };
  at_offsets(panel, [&](int64_t s, int64_t d) {
    for (int64_t r = 0; r < panel.rows; r += most_rows) {
      const int64_t rows = std::min(most_rows, panel.rows - r);
      for (int64_t c = 0; c < panel.columns; c += most_columns) {
        Panel part = panel;
        part.columns = std::min(most_columns, panel.columns - c);
        part.holes = 0;
        if (is_dense) cast(s + row_at(r), buffer, rows * row_bytes);
        for (int64_t i = 0; i < rows && !is_dense; ++i) {
          const bool has_source = !is_hole(panel, r + i);
          places[static_cast<size_t>(i)] = has_source ? i * stride : kNoSource;
          part.holes += !has_source;
          if (!has_source) continue;
          const int64_t from = s + c * step + row_at(r + i);
          const int64_t next = std::min(most_columns, panel.columns - c - part.columns);
          if (panel.stores == Stores::kStreaming)
            fetch(panel.source, from + most_columns * step, next * step);
          cast(from, buffer + i * stride, (part.columns - 1) * step + panel.unit_bytes);
        }
        const int64_t skipped = panel.column_at == nullptr ? c * panel.column_stride : 0;
        part.source = buffer;
        part.destination = panel.destination + d + r * panel.unit_bytes + skipped;
        part.rows = rows;
        part.zero_rows = 0;
        part.row_at = part.holes > 0 ? places.data() : nullptr;
        part.row_stride = stride;
        part.dropped = 0;
        if (part.column_at != nullptr) {
          part.column_at += c;
          part.dropped = std::count(part.column_at, part.column_at + part.columns, kDropped);
        }
        part.inner = part.outer = {};
        const PanelShape shape{
            part.unit_bytes,           step,       rows,         part.columns, part.holes == 0,
            part.column_at == nullptr, part.holes, part.dropped, stride,       part.column_stride};
        leaves.of(shape).run(part);
      }
    }
  });
}

void PanelConversion::cast_columns(const Panel& panel, const Leaves& leaves) const {
  TILEWORK_WAY("cast: moved, then columns");
  alignas(kLineBytes) uint8_t buffer[kSpacedBufferBytes];
  const bool has_nibbles = source_bits_ < 8;
  const int64_t per_byte = has_nibbles ? 2 : 1;
  const At column_at{panel.column_at, panel.column_stride};
  const int64_t unit = panel.unit_bytes;
  const int64_t column_offsets = panel.rows * unit;
  const bool is_dense = panel.column_at == nullptr && panel.column_stride == column_offsets &&
                        column_offsets <= kMostDenseBytes.times(per_byte) && column_offsets % per_byte == 0;
  const int64_t most_columns = std::clamp<int64_t>(
      kBufferBytes * per_byte / (is_dense ? column_offsets : least_room(ceil_div(unit, per_byte)) * per_byte),
      1, panel.columns);
  const int64_t room = kBufferBytes / most_columns / kLineBytes * kLineBytes;
  const int64_t stride = is_dense ? column_offsets : (room + kLineBytes) * per_byte;
  const int64_t most_rows = is_dense ? panel.rows : std::min(panel.rows, room * per_byte / unit);
  const int64_t valid = panel.rows - panel.zero_rows;
  at_offsets(panel, [&](int64_t s, int64_t d) {
    for (int64_t r = 0; r < panel.rows; r += most_rows) {
      for (int64_t c = 0; c < panel.columns; c += most_columns) {
        Panel part = panel;
        part.rows = std::min(most_rows, panel.rows - r);
        part.columns = std::min(most_columns, panel.columns - c);
        part.zero_rows = std::clamp<int64_t>(r + part.rows - valid, 0, part.rows);
        part.source_offset = s + c * panel.column_step + (panel.row_at == nullptr ? r * panel.row_stride : 0);
        if (!has_nibbles) part.source = panel.source + part.source_offset;
        part.destination = buffer;
        part.destination_offset = 0;
        if (part.row_at != nullptr) part.row_at += r;
        part.column_at = nullptr;
        part.column_stride = stride;
        part.dropped = 0;
        part.inner = part.outer = {};
        part.stores = Stores::kCached;
        const PanelShape shape{unit, panel.column_step, part.rows, part.columns,     panel.row_at == nullptr,
                               true, panel.holes,       0,         panel.row_stride, stride};
        leaf_of(leaves, shape, has_nibbles).run(part);
        const int64_t to = d + r * unit;
        if (is_dense) {
          cast_from_buffer(buffer, panel, to + c * stride, part.columns * stride);
        } else {
          for (int64_t i = 0; i < part.columns; ++i) {
            if (column_at(c + i) == kDropped) continue;
            cast_from_buffer(buffer + i * stride / per_byte, panel, to + column_at(c + i), part.rows * unit);
          }
        }
        if (keeps_zero_bits_ || panel.holes == 0) continue;
        for (int64_t i = 0; i < part.columns; ++i) {
          if (column_at(c + i) != kDropped) clear_holes(panel, r, part.rows, d + column_at(c + i));
        }
      }
    }
  });
}

// What is cast next: the rows of a piece are shorter than what processors follow by themselves.
void PanelConversion::fetch(const uint8_t* source, int64_t s, int64_t count) const {
  const uint8_t* from = source + source_bytes(s);
  for (int64_t i = 0; i < source_bytes(count); i += kLineBytes) __builtin_prefetch(from + i, 0, kSecondLevel);
}

// Runs with a shorter one, or zeros, behind them: moved into the buffer together.
void PanelConversion::cast_run(const Panel& panel, const Leaves& leaves) const {
  alignas(kLineBytes) uint8_t buffer[kBufferBytes];
  const bool has_nibbles = source_bits_ < 8;
  const Threshold room = kPanelBufferBytes.times(has_nibbles ? 2 : 1);
  const int64_t run = panel.rows * panel.unit_bytes + panel.rest_bytes;
  const int64_t piece = run + panel.zero_bytes;
  if (piece > room || (has_nibbles && piece % 2 != 0)) return move_units(panel);
  TILEWORK_WAY("cast: runs with zeros");
  const int64_t most = panel.inner.destination == piece ? at_most(panel.inner.count, room.over(piece)) : 1;
  const Leaf leaf = has_nibbles ? leaves.of_nibble_runs() : leaves.of_runs();
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
