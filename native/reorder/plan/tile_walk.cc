#include "reorder/plan/tile_walk.h"

#include <algorithm>

#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/leaf/line_writer.h"

namespace tilework {
namespace {

// The end of a range that ends with the storage: no tile reaches beyond it.
constexpr int64_t kNoEnd = INT64_MAX / 2;

using Outer = Tiling::Outer;
using BlockOf = Tiling::Outer::BlockOf;

int64_t column_at(const Panel& panel, int64_t c) {
  return panel.column_at == nullptr ? c * panel.column_stride : panel.column_at[c];
}

}  // namespace

TileWalk::TileWalk(const TileProgram& program, int64_t begin, int64_t end, Stores stores,
                   const OuterRange& range)
    : program_(program),
      nest_(program.nest_),
      tiling_(program.tiling_),
      origin_(begin * program.offsets_per_byte()),
      end_(end == program.destination_bytes_ ? kNoEnd : (end - begin) * program.offsets_per_byte()),
      stores_(stores),
      range_(range) {}

void TileWalk::run(TileSink& sink) {
  sink_ = &sink;
  const int64_t e = program_.context_.element_bytes;
  walk(0, nest_.source_base * e, nest_.destination_base * e - origin_, nest_.all_zero);
}

std::vector<std::shared_ptr<const TileState>> TileWalk::foresee() {
  foresee_at(0, nest_.all_zero);
  return std::move(kept_);
}

// Visits the first iteration of each segment of each loop.
void TileWalk::foresee_at(size_t level, bool hole) {
  if (static_cast<int64_t>(kept_.size()) >= kKeptStates) return;
  if (level == tiling_.outer.size()) {
    ++foreseen_;
    static_cast<void>(state_now(hole));
    return;
  }
  const Outer& outer = tiling_.outer[level];
  const auto [lo, hi] = iterations_at(level, 0);
  int64_t next = lo;
  for (int64_t i = lo; i < hi && foreseen_ < kMostForeseen; i = next) {
    step(outer, i);
    next = outer.loop.lookup == kNone ? segment_at(level, i, hi, 0, 0).to : hi;
    foresee_at(level + 1, hole);
    step(outer, -i);
  }
}

// ---- Iterations and segments

const TileLoop& TileWalk::block_of(const Outer& outer) const {
  return (outer.block_of == BlockOf::kRows ? tiling_.rows : tiling_.columns).back();
}

// Blocks of the list that a loop continues, the last one incomplete.
int64_t TileWalk::blocks_of(const Outer& outer) const {
  return ceil_div(block_of(outer).whole_count, block_of(outer).count);
}

int64_t TileWalk::block_index(const Outer& outer) const {
  return outer.block_of == BlockOf::kRows ? position_.row_block : position_.column_block;
}

// Iterations that are written and reach into the range.
std::pair<int64_t, int64_t> TileWalk::iterations_at(size_t level, int64_t d) const {
  const Outer& outer = tiling_.outer[level];
  const TileLoop& loop = outer.loop;
  int64_t lo = 0;
  int64_t hi = loop.count;
  if (outer.block_of != BlockOf::kNone) {
    const int64_t left = blocks_of(outer) - block_index(outer);
    hi = std::min(hi, ceil_div(left, outer.blocks));
  }
  if (loop.variable != kNone) {
    const Variable& variable = nest_.variables[loop.variable];
    const int64_t base = position_.index[loop.variable];
    lo = std::max(lo, ceil_div(variable.write_lo - base - program_.facts_[level].below, loop.weight));
    hi = std::min(hi, ceil_div(variable.write_hi - base, loop.weight));
  }
  const int64_t stride = loop.destination_stride;
  if (d < 0) lo = std::max(lo, floor_div(-d - outer.span, stride) + 1);
  if (d + (hi - 1) * stride >= end_) hi = std::min(hi, ceil_div(end_ - d, stride));
  if (level < range_.levels) {
    lo = std::max(lo, range_.of_level[level].first);
    hi = std::min(hi, range_.of_level[level].last);
  }
  return {lo, hi};
}

// Iterations from `i`, the one that the indices are at, on, below `hi`, that find the tile in the same state.
TileWalk::Segment TileWalk::segment_at(size_t level, int64_t i, int64_t hi, int64_t d, int64_t span) const {
  const Outer& outer = tiling_.outer[level];
  const TileLoop& loop = outer.loop;
  Segment segment{hi, true};
  if (outer.block_of != BlockOf::kNone) {
    const int64_t left = block_of(outer).whole_count / block_of(outer).count - block_index(outer);
    segment.to = std::min(segment.to, i + std::max<int64_t>(left / outer.blocks, 1));
  }
  if (loop.variable != kNone) {
    const Variable& variable = nest_.variables[loop.variable];
    const int64_t reach = program_.facts_[level].below;
    const int64_t index = position_.index[loop.variable];
    for (int64_t bound : {variable.write_lo, variable.write_hi, variable.valid_lo, variable.valid_hi}) {
      const int64_t left = bound - index;
      if (left <= 0) continue;
      const int64_t same = left > reach ? floor_div(left - reach - 1, loop.weight) + 1 : 1;
      segment.to = std::min(segment.to, i + same);
    }
  }
  cut_segment(segment, level, i, d, span);
  return segment;
}

// Ends a segment where tiles begin, or cease, to be cut by the range.
void TileWalk::cut_segment(Segment& segment, size_t level, int64_t i, int64_t d, int64_t span) const {
  const int64_t stride = tiling_.outer[level].loop.destination_stride;
  const int64_t at = d + i * stride;
  if (at < 0 || at + span > end_) {
    segment.is_whole = false;
    // Of tiles, all that the range cuts.
    if (level + 1 < tiling_.outer.size()) {
      segment.to = i + 1;
    } else if (at + span <= end_) {
      segment.to = std::min(segment.to, ceil_div(-d, stride));
    }
  } else if (d + (segment.to - 1) * stride + span > end_) {
    segment.to = floor_div(end_ - span - d, stride) + 1;
  }
}

// Moves the indices by a number of iterations of a loop.
void TileWalk::step(const Outer& outer, int64_t iterations) {
  const TileLoop& loop = outer.loop;
  if (loop.variable != kNone) position_.index[loop.variable] += iterations * loop.weight;
  if (loop.lookup != kNone) position_.lookup_index[loop.lookup] += iterations * loop.lookup_stride;
  if (outer.block_of == BlockOf::kRows) position_.row_block += iterations * outer.blocks;
  if (outer.block_of == BlockOf::kColumns) position_.column_block += iterations * outer.blocks;
}

// ---- Loops

void TileWalk::walk(size_t level, int64_t s, int64_t d, bool hole) {
  const size_t levels = tiling_.outer.size();
  if (level == levels) {
    const TileState& state = state_now(hole);
    run_tiles(state, s, d, {}, {}, d >= 0 && d + state.span <= end_);
    return;
  }
  const Outer& outer = tiling_.outer[level];
  const TileLoop& loop = outer.loop;
  const auto [lo, hi] = iterations_at(level, d);
  if (loop.lookup == kNone && level + 1 == levels) return strips(level, {lo, hi}, s, d, hole, {}, true);
  if (level + 2 == levels && can_pair()) return pairs(level, {lo, hi}, s, d, hole);
  for (int64_t i = lo; i < hi && !sink_->is_full(); ++i) {
    step(outer, i);
    int64_t from = s + i * loop.source_stride;
    int64_t offset = 0;
    if (program_.facts_[level].looks_up && !hole)
      offset = nest_.lookups[loop.lookup].at(position_.lookup_index[loop.lookup]);
    const bool in_hole = hole || offset == kHole;
    if (offset != kSkip) {
      if (!in_hole) from += offset * program_.context_.element_bytes;
      walk(level + 1, from, d + i * loop.destination_stride, in_hole);
    }
    step(outer, -i);
  }
}

// All iterations of the innermost outer loop; the steps of the loop around it come with each.
void TileWalk::strips(size_t level, std::pair<int64_t, int64_t> iterations, int64_t s, int64_t d, bool hole,
                      const Steps& around, bool is_whole) {
  const Outer& outer = tiling_.outer[level];
  const TileLoop& loop = outer.loop;
  int64_t next = iterations.first;
  for (int64_t i = iterations.first; i < iterations.second; i = next) {
    step(outer, i);
    const TileState& state = state_now(hole);
    Segment segment = segment_at(level, i, iterations.second, d, around.count > 1 ? 0 : state.span);
    if (around.count > 1) segment.is_whole = is_whole;
    const Steps steps{segment.to - i, loop.source_stride, loop.destination_stride};
    next = segment.to;
    run_tiles(state, s + i * loop.source_stride, d + i * loop.destination_stride, steps, around,
              segment.is_whole);
    step(outer, -i);
  }
}

int64_t TileWalk::iterations() const {
  const size_t levels = tiling_.outer.size();
  const size_t in_segments = levels < 2 ? levels : can_pair() ? 2 : 1;
  int64_t iterations = 1;
  for (size_t level = 0; level + in_segments < levels; ++level) iterations *= tiling_.outer[level].loop.count;
  return iterations;
}

// Whether the two innermost outer loops cut a rectangle of tiles in one state.
bool TileWalk::can_pair() const {
  const size_t levels = tiling_.outer.size();
  const TileLoop& outer = tiling_.outer[levels - 2].loop;
  const TileLoop& inner = tiling_.outer[levels - 1].loop;
  if (outer.lookup != kNone || inner.lookup != kNone) return false;
  return outer.variable == kNone || outer.variable != inner.variable;
}

void TileWalk::pairs(size_t level, std::pair<int64_t, int64_t> iterations, int64_t s, int64_t d, bool hole) {
  const Outer& outer = tiling_.outer[level];
  const TileLoop& loop = outer.loop;
  int64_t next = iterations.first;
  for (int64_t i = iterations.first; i < iterations.second; i = next) {
    const int64_t di = d + i * loop.destination_stride;
    const int64_t si = s + i * loop.source_stride;
    step(outer, i);
    const Segment segment = segment_at(level, i, iterations.second, d, outer.span);
    next = segment.to;
    const Steps around{segment.to - i, loop.source_stride, loop.destination_stride};
    strips(level + 1, iterations_at(level + 1, di), si, di, hole, around, segment.is_whole);
    step(outer, -i);
  }
}

// ---- Tiles

// Tiles in one state: `inner` steps of each of `outer` steps.
void TileWalk::run_tiles(const TileState& state, int64_t s, int64_t d, const Steps& inner, const Steps& outer,
                         bool is_whole) {
  if (!is_whole) {
    TILEWORK_WAY("program: tiles that a range cuts");
    for (int64_t o = 0; o < outer.count; ++o)
      run_cut(state, s + o * outer.source, d + o * outer.destination, inner);
    return;
  }
  if (is_staged(state)) return run_staged(state, s, d, inner, outer);
  if (state.panels.size() + state.zeros.size() == 1 || !sink_->shares_lines())
    return run_state(state, s, d, inner, outer);
  // Several panels share cache lines: all of them come before the steps go on.
  const int64_t bytes = std::max<int64_t>(state.units * tiling_.unit_bytes, 1);
  const int64_t chunk = std::max<int64_t>(kChunkBytes.value / bytes, 1);
  for (int64_t o = 0; o < outer.count; ++o) {
    for (int64_t i = 0; i < inner.count && !sink_->is_full(); i += chunk) {
      run_state(state, s + o * outer.source + i * inner.source,
                d + o * outer.destination + i * inner.destination,
                {std::min(chunk, inner.count - i), inner.source, inner.destination}, {});
    }
  }
}

bool TileWalk::is_staged(const TileState& state) const {
  return stores_ == Stores::kStreaming && state.scatters_columns && state.span <= kMaxTileBytes &&
         program_.context_.leaves.stream_lines != nullptr && sink_->has_addresses();
}

// Tiles are made in a buffer, one by one.
void TileWalk::run_staged(const TileState& state, int64_t s, int64_t d, const Steps& inner,
                          const Steps& outer) {
  TileSink* const sink = sink_;
  const ByteSink* bytes = sink->as_bytes();
  stores_ = Stores::kCached;
  LineWriter lines(program_.context_.leaves.stream_lines);
  for (int64_t o = 0; o < outer.count; ++o) {
    for (int64_t i = 0; i < inner.count && !sink->is_full(); ++i) {
      const int64_t from = s + o * outer.source + i * inner.source;
      const int64_t to = d + o * outer.destination + i * inner.destination;
      if (bytes == nullptr) {
        run_state(state, from, 0, {}, {});
        continue;
      }
      TILEWORK_WAY("program: tiles are staged and leave as lines");
      lines.put(bytes->destination() + to, state.span, [&](uint8_t* buffer) {
        ByteSink staged(bytes->source(), buffer);
        sink_ = &staged;
        run_state(state, from, 0, {}, {});
      });
    }
  }
  sink_ = sink;
  stores_ = Stores::kStreaming;
}

void TileWalk::run_state(const TileState& state, int64_t s, int64_t d, const Steps& inner,
                         const Steps& outer) {
  for (const ZeroRun& zero : state.zeros) {
    for (int64_t o = 0; o < outer.count; ++o) {
      const int64_t at = d + zero.destination + o * outer.destination;
      if (zero.bytes == inner.destination) {
        sink_->clear(at, zero.bytes * inner.count);
        continue;
      }
      for (int64_t i = 0; i < inner.count; ++i) sink_->clear(at + i * inner.destination, zero.bytes);
    }
  }
  for (const PanelMove& move : state.panels) {
    Panel panel = placed(move.panel, s, d, inner, outer);
    sink_->move(panel, move.leaf);
  }
}

// A panel of a tile that begins at `s` and `d`.
Panel TileWalk::placed(const Panel& panel, int64_t s, int64_t d, const Steps& inner,
                       const Steps& outer) const {
  Panel one = panel;
  one.source_offset += s;
  one.destination_offset += d;
  one.inner = inner;
  one.outer = outer;
  one.stores = stores_;
  return one;
}

// ---- Tiles that the range cuts

void TileWalk::run_cut(const TileState& state, int64_t s, int64_t d, const Steps& steps) {
  for (const ZeroRun& zero : state.zeros) {
    for (int64_t i = 0; i < steps.count; ++i)
      move_bytes(0, d + zero.destination + i * steps.destination, zero.bytes, false);
  }
  for (const PanelMove& move : state.panels) run_cut_panel(move, placed(move.panel, s, d, {}, {}), steps);
}

// Columns that lie in the range at the same steps move together; what the range cuts, unit by unit.
void TileWalk::run_cut_panel(const PanelMove& move, const Panel& panel, const Steps& steps) {
  const int64_t bytes = panel.rows * panel.unit_bytes + panel.rest_bytes + panel.zero_bytes;
  int64_t first = 0;
  Inside common{};
  for (int64_t c = 0; c < panel.columns; ++c) {
    const int64_t at = column_at(panel, c);
    const bool is_dropped = at == kDropped;
    const Inside inside = is_dropped ? Inside{} : steps_inside(panel.destination_offset + at, bytes, steps);
    if (inside.first != common.first || inside.last != common.last || is_dropped) {
      run_columns(move, panel, {first, c}, common, steps);
      first = is_dropped ? c + 1 : c;
      common = inside;
    }
    for (int64_t i = inside.touched_first; i < inside.touched_last; ++i) {
      if (i < inside.first || i >= inside.last) move_units(panel, c, i, steps);
    }
  }
  run_columns(move, panel, {first, panel.columns}, common, steps);
}

TileWalk::Inside TileWalk::steps_inside(int64_t d, int64_t bytes, const Steps& steps) const {
  const int64_t step = std::max<int64_t>(steps.destination, 1);
  const auto clamped = [&](int64_t i) { return std::clamp<int64_t>(i, 0, steps.count); };
  Inside inside{clamped(ceil_div(-d, step)), clamped(floor_div(end_ - bytes - d, step) + 1),
                clamped(floor_div(-bytes - d, step) + 1), clamped(ceil_div(end_ - d, step))};
  if (inside.first >= inside.last) inside.first = inside.last = 0;
  return inside;
}

void TileWalk::run_columns(const PanelMove& move, const Panel& panel, Columns columns, const Inside& inside,
                           const Steps& steps) {
  if (columns.count() <= 0 || inside.first >= inside.last) return;
  Panel part = panel;
  part.columns = columns.count();
  part.dropped = 0;
  part.inner = {inside.last - inside.first, steps.source, steps.destination};
  part.source_offset += columns.first * panel.column_step + inside.first * steps.source;
  part.destination_offset += inside.first * steps.destination;
  if (part.columns == 1 || panel.column_at == nullptr) {
    // Leaves of a single column do not ask where it is.
    part.destination_offset += column_at(panel, columns.first);
    part.column_at = nullptr;
  } else {
    part.column_at += columns.first;
  }
  const Leaves& leaves = program_.context_.leaves;
  const Leaf leaf =
      part.columns == panel.columns ? move.leaf : leaves.of(part, program_.context_.has_nibbles);
  sink_->move(part, leaf);
}

void TileWalk::move_units(const Panel& panel, int64_t c, int64_t step, const Steps& steps) {
  const int64_t s = panel.source_offset + c * panel.column_step + step * steps.source;
  const int64_t d = panel.destination_offset + column_at(panel, c) + step * steps.destination;
  const int64_t valid = panel.rows - panel.zero_rows;
  for (int64_t r = 0; r < panel.rows; ++r) {
    const int64_t row = panel.row_at == nullptr ? r * panel.row_stride : panel.row_at[r];
    move_bytes(s + row, d + r * panel.unit_bytes, panel.unit_bytes, r < valid && row != kNoSource);
  }
  const int64_t end = d + panel.rows * panel.unit_bytes;
  move_bytes(s + panel.rows * panel.row_stride, end, panel.rest_bytes, true);
  move_bytes(0, end + panel.rest_bytes, panel.zero_bytes, false);
}

// Bytes that both sides keep together, or zeros, as far as they lie in the range.
void TileWalk::move_bytes(int64_t s, int64_t d, int64_t bytes, bool has_source) {
  const int64_t lo = std::max<int64_t>(d, 0);
  const int64_t hi = std::min(d + bytes, end_);
  if (lo >= hi) return;
  has_source ? sink_->copy(s + (lo - d), lo, hi - lo) : sink_->clear(lo, hi - lo);
}

// ---- States

const TileState& TileWalk::state_now(bool hole) {
  const StateKey key = key_of(program_.context_, position_, hole);
  if (last_ != nullptr && last_->key == key) return *last_;
  for (const auto& state : program_.states_) {
    if (state->key == key) return *(last_ = state.get());
  }
  for (const auto& state : kept_) {
    if (state->key == key) return *(last_ = state.get());
  }
  auto state = std::make_shared<const TileState>(build_state(program_.context_, position_, hole));
  last_ = state.get();
  if (static_cast<int64_t>(kept_.size()) < kKeptStates) {
    kept_.push_back(std::move(state));
  } else {
    kept_[next_] = std::move(state);
    next_ = (next_ + 1) % kept_.size();
  }
  return *last_;
}

}  // namespace tilework
