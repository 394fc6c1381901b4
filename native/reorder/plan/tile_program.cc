#include "reorder/plan/tile_program.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/leaf/line_writer.h"
#include "reorder/leaf/nibbles.h"

namespace tilework {
namespace {

// The end of a range that ends with the storage: no tile reaches beyond it.
constexpr int64_t kNoEnd = INT64_MAX / 2;

// Tiles of 4-bit elements have two lines of elements a side, as elements are counted in half bytes. The side
// that is cast is longer, as each call of a cast has a cost.
Tiling make_tiling(const LoopNest& nest, int element_bits, const PanelConversion* conversion) {
  using Order = PanelConversion::Order;
  const int64_t edge = (element_bits < 8 ? 2 : 1) * kTileEdgeBytes.value;
  const auto edge_of = [&](Order cast) {
    const bool is_called =
        conversion != nullptr && conversion->order() == cast && !conversion->has_registers();
    return is_called ? kCastEdgeBytes.value : edge;
  };
  return tiling_of(nest, offsets_of_element(element_bits), edge_of(Order::kMoveFirst),
                   edge_of(Order::kCastFirst));
}

}  // namespace

class TileRun {
 public:
  TileRun(const TileProgram& program, const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end,
          Stores stores, OuterRange range)
      : program_(program),
        nest_(program.nest_),
        tiling_(program.tiling_),
        source_(source),
        has_nibbles_(program.context_.has_nibbles),
        conversion_(program.conversion_),
        destination_(destination),
        origin_(has_nibbles_ ? begin * 2 : begin),
        end_(end == program.destination_bytes_ ? kNoEnd
             : has_nibbles_                    ? (end - begin) * 2
                                               : end - begin),
        stores_(stores),
        range_(range) {}

  // Where the loops of the nest begin, if not with their first iterations.
  void start_at(const TilePosition& position) { position_ = position; }

  // The states that a walk finds, each once.
  std::vector<std::shared_ptr<const TileState>> foresee() {
    foresee_at(0, nest_.all_zero);
    return std::move(kept_);
  }

  // The panels of a walk over all of the destination, in their order; none where they are many, or not all
  // that a run does.
  std::vector<PlannedPanel> plan() {
    if (conversion_ != nullptr || !nest_.lookups.empty() || iterations_walked() > kKeptPanels) return {};
    is_planning_ = true;
    run();
    return kept_.empty() && planned_ ? *std::move(planned_) : std::vector<PlannedPanel>();
  }

  void run() {
    const int64_t e = program_.context_.element_bytes;
    walk(0, nest_.source_base * e, nest_.destination_base * e - origin_, nest_.all_zero);
  }

  // Instead of moving anything.
  void note(const Footprint& footprint) {
    footprint_ = &footprint;
    run();
  }

  // Of the first panel of the first tile.
  const char* first_leaf() {
    const TileState& state = state_now(nest_.all_zero);
    return state.panels.empty() ? "zeros" : state.panels[0].leaf.name;
  }

 private:
  // Visits the first iteration of each segment of each loop.
  void foresee_at(size_t level, bool hole) {
    if (kept_count() >= kKeptStates) return;
    if (level == tiling_.outer.size()) {
      ++foreseen_;
      static_cast<void>(state_now(hole));
      return;
    }
    const TileLoop& loop = tiling_.outer[level].loop;
    const auto [lo, hi] = iterations(level, 0);
    int64_t next = lo;
    for (int64_t i = lo; i < hi && foreseen_ < kMostForeseen; i = next) {
      at_iteration(level, i, [&, hi = hi] {  // Clang 15 captures no structured bindings.
        next = loop.lookup == kNone ? segment_at(level, i, hi, 0, 0).to : hi;
        foresee_at(level + 1, hole);
      });
    }
  }

  using Outer = Tiling::Outer;
  using BlockOf = Tiling::Outer::BlockOf;

  // Ends before iteration `to`.
  struct Segment {
    int64_t to;
    // Every tile lies inside of the range.
    bool is_whole;
  };

  const TileLoop& block_of(const Outer& outer) const {
    return (outer.block_of == BlockOf::kRows ? tiling_.rows : tiling_.columns).back();
  }
  // Blocks of the list that a loop continues, the last one incomplete.
  int64_t blocks_of(const Outer& outer) const {
    return ceil_div(block_of(outer).whole_count, block_of(outer).count);
  }
  int64_t block_index(const Outer& outer) const {
    return outer.block_of == BlockOf::kRows ? position_.row_block : position_.column_block;
  }

  // Iterations that are written and reach into the range.
  std::pair<int64_t, int64_t> iterations(size_t level, int64_t d) const {
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

  // Iterations from `i`, the one that the indices are at, on, below `hi`, that find the tile in the same
  // state.
  Segment segment_at(size_t level, int64_t i, int64_t hi, int64_t d, int64_t span) const {
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
    const int64_t stride = loop.destination_stride;
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
    return segment;
  }

  template <class Body>
  void at_iteration(size_t level, int64_t i, Body body) {
    const Outer& outer = tiling_.outer[level];
    const TileLoop& loop = outer.loop;
    if (loop.variable != kNone) position_.index[loop.variable] += i * loop.weight;
    if (loop.lookup != kNone) position_.lookup_index[loop.lookup] += i * loop.lookup_stride;
    if (outer.block_of == BlockOf::kRows) position_.row_block += i * outer.blocks;
    if (outer.block_of == BlockOf::kColumns) position_.column_block += i * outer.blocks;
    body();
    if (loop.variable != kNone) position_.index[loop.variable] -= i * loop.weight;
    if (loop.lookup != kNone) position_.lookup_index[loop.lookup] -= i * loop.lookup_stride;
    if (outer.block_of == BlockOf::kRows) position_.row_block -= i * outer.blocks;
    if (outer.block_of == BlockOf::kColumns) position_.column_block -= i * outer.blocks;
  }

  void walk(size_t level, int64_t s, int64_t d, bool hole) {
    const size_t levels = tiling_.outer.size();
    if (level == levels) {
      const TileState& state = state_now(hole);
      run_tiles(state, s, d, {}, {}, d >= 0 && d + state.span <= end_);
      return;
    }
    const TileLoop& loop = tiling_.outer[level].loop;
    const auto [lo, hi] = iterations(level, d);
    if (loop.lookup == kNone && level + 1 == levels) {
      strips(level, lo, hi, s, d, hole, {}, true);
      return;
    }
    if (level + 2 == levels && can_pair()) {
      pairs(level, lo, hi, s, d, hole);
      return;
    }
    for (int64_t i = lo; i < hi; ++i) {
      at_iteration(level, i, [&] {
        int64_t from = s + i * loop.source_stride;
        bool in_hole = hole;
        if (program_.facts_[level].looks_up && !hole) {
          const int64_t offset = nest_.lookups[loop.lookup].at(position_.lookup_index[loop.lookup]);
          if (offset == kSkip) return;
          in_hole = offset == kHole;
          if (!in_hole) from += offset * program_.context_.element_bytes;
        }
        walk(level + 1, from, d + i * loop.destination_stride, in_hole);
      });
    }
  }

  // All iterations of the innermost outer loop; the steps of the loop around it come with each.
  void strips(size_t level, int64_t lo, int64_t hi, int64_t s, int64_t d, bool hole, const Steps& around,
              bool is_whole) {
    const TileLoop& loop = tiling_.outer[level].loop;
    int64_t next = lo;
    for (int64_t i = lo; i < hi; i = next) {
      at_iteration(level, i, [&] {
        const TileState& state = state_now(hole);
        Segment segment = segment_at(level, i, hi, d, around.count > 1 ? 0 : state.span);
        if (around.count > 1) segment.is_whole = is_whole;
        const Steps steps{segment.to - i, loop.source_stride, loop.destination_stride};
        next = segment.to;
        run_tiles(state, s + i * loop.source_stride, d + i * loop.destination_stride, steps, around,
                  segment.is_whole);
      });
    }
  }

  // Iterations of the loops that the walk takes one by one.
  int64_t iterations_walked() const {
    const size_t levels = tiling_.outer.size();
    const size_t in_segments = levels < 2 ? levels : can_pair() ? 2 : 1;
    int64_t iterations = 1;
    for (size_t level = 0; level + in_segments < levels; ++level)
      iterations *= tiling_.outer[level].loop.count;
    return iterations;
  }

  // Whether the two innermost outer loops cut a rectangle of tiles in one state.
  bool can_pair() const {
    const size_t levels = tiling_.outer.size();
    const TileLoop& outer = tiling_.outer[levels - 2].loop;
    const TileLoop& inner = tiling_.outer[levels - 1].loop;
    if (outer.lookup != kNone || inner.lookup != kNone) return false;
    return outer.variable == kNone || outer.variable != inner.variable;
  }

  void pairs(size_t level, int64_t lo, int64_t hi, int64_t s, int64_t d, bool hole) {
    const Outer& outer = tiling_.outer[level];
    const TileLoop& loop = outer.loop;
    int64_t next = lo;
    for (int64_t i = lo; i < hi; i = next) {
      const int64_t di = d + i * loop.destination_stride;
      const int64_t si = s + i * loop.source_stride;
      at_iteration(level, i, [&] {
        const Segment segment = segment_at(level, i, hi, d, outer.span);
        next = segment.to;
        const auto [inner_lo, inner_hi] = iterations(level + 1, di);
        const Steps around{segment.to - i, loop.source_stride, loop.destination_stride};
        strips(level + 1, inner_lo, inner_hi, si, di, hole, around, segment.is_whole);
      });
    }
  }

  // Tiles in one state: `inner` steps of each of `outer` steps.
  void run_tiles(const TileState& state, int64_t s, int64_t d, const Steps& inner, const Steps& outer,
                 bool is_whole) {
    if (is_planning_ && !can_plan(state, inner, outer)) return planned_.reset();
    if (!is_whole) {
      TILEWORK_WAY("program: tiles that a range cuts");
      for (int64_t o = 0; o < outer.count; ++o)
        run_cut(state, s + o * outer.source, d + o * outer.destination, inner);
      return;
    }
    if (is_staged(state)) return run_staged(state, s, d, inner, outer);
    if (state.panels.size() + state.zeros.size() == 1 || footprint_ != nullptr) {
      run_state(state, s, d, inner, outer);
      return;
    }
    const int64_t chunk = steps_together(state);
    for (int64_t o = 0; o < outer.count; ++o) {
      for (int64_t i = 0; i < inner.count; i += chunk) {
        run_state(state, s + o * outer.source + i * inner.source,
                  d + o * outer.destination + i * inner.destination,
                  {std::min(chunk, inner.count - i), inner.source, inner.destination}, {});
      }
    }
  }

  // Several panels share cache lines: all of them come before the steps go on.
  int64_t steps_together(const TileState& state) const {
    const int64_t bytes = static_cast<int64_t>(state.rows.size() * state.columns.size()) * tiling_.unit_bytes;
    return std::max<int64_t>(kChunkBytes.value / std::max<int64_t>(bytes, 1), 1);
  }

  // Whether panels, and few, are all that tiles consist of.
  bool can_plan(const TileState& state, const Steps& inner, const Steps& outer) const {
    if (!planned_ || !state.zeros.empty()) return false;
    const auto panels = static_cast<int64_t>(state.panels.size());
    const int64_t times = panels == 1 ? 1 : outer.count * ceil_div(inner.count, steps_together(state));
    return static_cast<int64_t>(planned_->size()) + panels * times <= kKeptPanels;
  }

  bool is_staged(const TileState& state) const {
    return stores_ == Stores::kStreaming && state.scatters_columns && state.span <= kMaxTileBytes &&
           !has_offsets() && program_.context_.leaves.stream_lines != nullptr;
  }

  // Tiles are made in a buffer, one by one.
  void run_staged(const TileState& state, int64_t s, int64_t d, const Steps& inner, const Steps& outer) {
    TILEWORK_WAY("program: tiles are staged and leave as lines");
    uint8_t* const destination = std::exchange(destination_, nullptr);
    stores_ = Stores::kCached;
    {
      LineWriter lines(program_.context_.leaves.stream_lines);
      for (int64_t o = 0; o < outer.count; ++o) {
        for (int64_t i = 0; i < inner.count; ++i) {
          const int64_t to = d + o * outer.destination + i * inner.destination;
          lines.put(destination + to, state.span, [&](uint8_t* buffer) {
            destination_ = buffer;
            run_state(state, s + o * outer.source + i * inner.source, 0, {}, {});
          });
        }
      }
    }
    destination_ = destination;
    stores_ = Stores::kStreaming;
  }

  void run_state(const TileState& state, int64_t s, int64_t d, const Steps& inner, const Steps& outer) {
    for (const ZeroRun& zero : state.zeros) {
      for (int64_t o = 0; o < outer.count; ++o) {
        const int64_t at = d + zero.destination + o * outer.destination;
        if (zero.bytes == inner.destination) {
          clear(at, zero.bytes * inner.count);
          continue;
        }
        for (int64_t i = 0; i < inner.count; ++i) clear(at + i * inner.destination, zero.bytes);
      }
    }
    for (const StatePanel& panel : state.panels) {
      move(panel_of(state, panel, s, d, inner, outer), panel.leaf);
    }
  }

  void move(const Panel& panel, const Leaf& leaf) {
    if (footprint_ != nullptr) return footprint_->add(panel);
    if (is_planning_) return planned_->push_back({panel, leaf.run});
    if (conversion_ != nullptr) return conversion_->run(panel, program_.context_.leaves);
    leaf.run(panel);
  }

  // Whether panels begin at offsets of the storages: elements have no addresses, or nothing is moved.
  bool has_offsets() const { return has_nibbles_ || conversion_ != nullptr || footprint_ != nullptr; }

  Panel panel_of(const TileState& state, const StatePanel& panel, int64_t s, int64_t d, const Steps& inner,
                 const Steps& outer) const {
    const int64_t from = s + panel.source;
    const int64_t to = d + panel.destination;
    const PanelShape& shape = panel.shape;
    return {has_offsets() ? source_ : source_ + from,
            has_offsets() ? destination_ : destination_ + to,
            shape.unit_bytes,
            shape.column_step,
            shape.rows,
            panel.zero_rows,
            shape.holes,
            shape.dropped,
            panel.rest_bytes,
            panel.zero_bytes,
            shape.columns,
            shape.has_even_rows ? nullptr : state.row_lists.data() + panel.row_list,
            shape.row_stride,
            shape.has_even_columns ? nullptr : state.column_lists.data() + panel.column_list,
            shape.column_stride,
            inner,
            outer,
            stores_,
            from,
            to,
            origin_};
  }

  // What lies in the range of tiles that reach beyond it.
  void run_cut(const TileState& state, int64_t s, int64_t d, const Steps& steps) {
    for (const ZeroRun& zero : state.zeros) {
      for (int64_t i = 0; i < steps.count; ++i) {
        const int64_t at = d + zero.destination + i * steps.destination;
        const int64_t lo = std::max<int64_t>(at, 0);
        const int64_t hi = std::min(at + zero.bytes, end_);
        if (lo < hi) clear(lo, hi - lo);
      }
    }
    for (const StatePanel& panel : state.panels) {
      run_cut(panel, panel_of(state, panel, s, d, {}, {}), steps);
    }
  }

  // Columns that lie in the range at the same steps move together; what the range cuts, unit by unit.
  void run_cut(const StatePanel& state, const Panel& panel, const Steps& steps) {
    const int64_t bytes = panel.rows * panel.unit_bytes + panel.rest_bytes + panel.zero_bytes;
    int64_t first = 0;
    Inside common{};
    for (int64_t c = 0; c < panel.columns; ++c) {
      const int64_t at = column_at(panel, c);
      const bool is_dropped = at == kDropped;
      const Inside inside = is_dropped ? Inside{} : steps_inside(panel.destination_offset + at, bytes, steps);
      if (inside.first != common.first || inside.last != common.last || is_dropped) {
        run_columns(state, panel, {first, c}, common, steps);
        first = is_dropped ? c + 1 : c;
        common = inside;
      }
      for (int64_t i = inside.touched_first; i < inside.touched_last; ++i) {
        if (i < inside.first || i >= inside.last) move_units(panel, c, i, steps);
      }
    }
    run_columns(state, panel, {first, panel.columns}, common, steps);
  }

  // Steps at which bytes lie in the range, and those at which a part of them does; both in a row.
  struct Inside {
    int64_t first = 0;
    int64_t last = 0;
    int64_t touched_first = 0;
    int64_t touched_last = 0;
  };

  Inside steps_inside(int64_t d, int64_t bytes, const Steps& steps) const {
    const int64_t step = std::max<int64_t>(steps.destination, 1);
    const auto clamped = [&](int64_t i) { return std::clamp<int64_t>(i, 0, steps.count); };
    Inside inside{clamped(ceil_div(-d, step)), clamped(floor_div(end_ - bytes - d, step) + 1),
                  clamped(floor_div(-bytes - d, step) + 1), clamped(ceil_div(end_ - d, step))};
    if (inside.first >= inside.last) inside.first = inside.last = 0;
    return inside;
  }

  static int64_t column_at(const Panel& panel, int64_t c) {
    return panel.column_at == nullptr ? c * panel.column_stride : panel.column_at[c];
  }

  struct Columns {
    int64_t first;
    int64_t last;
    int64_t count() const { return last - first; }
  };

  void run_columns(const StatePanel& state, const Panel& panel, Columns columns, const Inside& inside,
                   const Steps& steps) {
    if (columns.count() <= 0 || inside.first >= inside.last) return;
    Panel part = panel;
    part.columns = columns.count();
    part.dropped = 0;
    part.inner = {inside.last - inside.first, steps.source, steps.destination};
    part.source_offset += columns.first * panel.column_step + inside.first * steps.source;
    part.destination_offset += inside.first * steps.destination;
    PanelShape shape = state.shape;
    shape.columns = part.columns;
    shape.dropped = 0;
    if (part.columns == 1 || panel.column_at == nullptr) {
      // Leaves of a single column do not ask where it is.
      part.destination_offset += column_at(panel, columns.first);
      part.column_at = nullptr;
      shape.has_even_columns = true;
    } else {
      part.column_at += columns.first;
    }
    if (!has_offsets()) {
      part.source = source_ + part.source_offset;
      part.destination = destination_ + part.destination_offset;
    }
    const Leaves& leaves = program_.context_.leaves;
    const Leaf leaf = part.columns == panel.columns ? state.leaf
                      : has_nibbles_                ? leaves.of_nibbles(shape)
                                                    : leaves.of(shape);
    move(part, leaf);
  }

  void move_units(const Panel& panel, int64_t c, int64_t step, const Steps& steps) {
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

  // Bytes that both sides keep together, as far as they lie in the range.
  void move_bytes(int64_t s, int64_t d, int64_t bytes, bool has_source) {
    const int64_t lo = std::max<int64_t>(d, 0);
    const int64_t hi = std::min(d + bytes, end_);
    if (lo >= hi) return;
    const int64_t from = s + (lo - d);
    if (!has_source) {
      clear(lo, hi - lo);
    } else if (footprint_ != nullptr) {
      if (footprint_->read != nullptr) footprint_->read->add(from, hi - lo);
      if (footprint_->written != nullptr) footprint_->written->add(lo, hi - lo);
    } else if (conversion_ != nullptr) {
      conversion_->move(source_, from, destination_, lo, hi - lo, origin_);
    } else if (has_nibbles_) {
      copy_nibbles(source_, from, destination_, lo, hi - lo);
    } else {
      std::memcpy(destination_ + lo, source_ + from, static_cast<size_t>(hi - lo));
    }
  }

  void clear(int64_t d, int64_t count) {
    if (footprint_ != nullptr) {
      if (footprint_->written != nullptr) footprint_->written->add(d, count);
      return;
    }
    if (conversion_ != nullptr) return conversion_->clear(destination_, d, count);
    if (has_nibbles_) return zero_nibbles(destination_, d, count);
    std::memset(destination_ + d, 0, static_cast<size_t>(count));
  }

  int64_t kept_count() const { return static_cast<int64_t>(kept_.size()); }

  const TileState& state_now(bool hole) {
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
    if (kept_count() < kKeptStates) {
      kept_.push_back(std::move(state));
    } else {
      kept_[next_] = std::move(state);
      next_ = (next_ + 1) % kept_.size();
    }
    return *last_;
  }

  const TileProgram& program_;
  const LoopNest& nest_;
  const Tiling& tiling_;
  const uint8_t* source_;
  // Offsets, the range's too, count half bytes.
  bool has_nibbles_;
  const PanelConversion* conversion_;
  uint8_t* destination_;
  // Of the range in the storage; offsets of the destination count from here.
  int64_t origin_;
  int64_t end_;
  Stores stores_;
  OuterRange range_;
  TilePosition position_;
  // Takes panels in place of their leaves, where it is set.
  const Footprint* footprint_ = nullptr;
  // Keeps panels in place of moving them, as long as they are few, and all that a run does.
  bool is_planning_ = false;
  std::optional<std::vector<PlannedPanel>> planned_{std::in_place};
  std::vector<std::shared_ptr<const TileState>> kept_;
  const TileState* last_ = nullptr;
  int foreseen_ = 0;
  size_t next_ = 0;
};

TileProgram::TileProgram(const LoopNest& nest, int element_bits, int64_t destination_bytes,
                         const Leaves& leaves, const PanelConversion* conversion)
    : nest_(nest),
      element_bits_(element_bits),
      destination_bytes_(destination_bytes),
      conversion_(conversion),
      tiling_(make_tiling(nest, element_bits, conversion)),
      context_(nest_, tiling_, element_bits, leaves) {
  facts_.resize(tiling_.outer.size());
  std::vector<int64_t> below = context_.reach;
  std::vector<bool> has_lookup = context_.looks_up;
  for (size_t i = tiling_.outer.size(); i-- > 0;) {
    const TileLoop& loop = tiling_.outer[i].loop;
    if (loop.variable != kNone) {
      facts_[i].below = below[loop.variable];
      below[loop.variable] += (loop.count - 1) * loop.weight;
    }
    if (loop.lookup != kNone && !has_lookup[loop.lookup]) {
      facts_[i].looks_up = true;
      has_lookup[loop.lookup] = true;
    }
  }
  states_ = TileRun(*this, nullptr, nullptr, 0, destination_bytes, Stores::kCached, {}).foresee();
  panels_ = TileRun(*this, nullptr, nullptr, 0, destination_bytes, Stores::kCached, {}).plan();
}

void TileProgram::run(const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end, Stores stores,
                      OuterRange range) const {
  const bool is_whole = begin == 0 && end == destination_bytes_ && range.levels == 0;
  if (!is_whole || panels_.empty() || stores == Stores::kStreaming) {
    TileRun(*this, source, destination, begin, end, stores, range).run();
    return;
  }
  TILEWORK_WAY("program: kept panels");
  for (const auto& [planned, run] : panels_) {
    Panel panel = planned;
    panel.source = source + (context_.has_nibbles ? 0 : panel.source_offset);
    panel.destination = destination + (context_.has_nibbles ? 0 : panel.destination_offset);
    run(panel);
  }
}

void TileProgram::run_at(const TilePosition& position, const uint8_t* source, uint8_t* destination) const {
  TileRun run(*this, source, destination, 0, destination_bytes_, Stores::kCached, {});
  run.start_at(position);
  run.run();
}

void TileProgram::note(int64_t begin, int64_t end, const TilePosition& position,
                       const Footprint& footprint) const {
  TileRun run(*this, nullptr, nullptr, begin, end, Stores::kCached, {});
  run.start_at(position);
  run.note(footprint);
}

std::shared_ptr<const TileProgram> TileProgram::with(const Leaves& leaves) const {
  return std::make_shared<const TileProgram>(nest_, element_bits_, destination_bytes_, leaves, conversion_);
}

std::string TileProgram::summary() const {
  const auto units = [](const std::vector<TileLoop>& loops) {
    int64_t count = 1;
    for (const TileLoop& loop : loops) count *= loop.count;
    return std::to_string(count);
  };
  TileRun run(*this, nullptr, nullptr, 0, destination_bytes_, Stores::kCached, {});
  return units(tiling_.rows) + " x " + units(tiling_.columns) + " units of " +
         std::to_string(tiling_.unit_bytes) + (context_.has_nibbles ? " x 4 bits" : " bytes") +
         " at a time (" + run.first_leaf() + ")";
}

int64_t TileProgram::reach_bytes() const {
  const int64_t reach = reach_of(tiling_);
  return context_.has_nibbles ? ceil_div(reach, 2) : reach;
}

int64_t TileProgram::footprint() const {
  auto bytes = static_cast<int64_t>(sizeof(TileProgram));
  const auto add = [&bytes](const auto& list) {
    bytes += static_cast<int64_t>(list.capacity() * sizeof(list[0]));
  };
  for (const Lookup& lookup : nest_.lookups) add(lookup.table);
  add(panels_);
  for (const auto& state : states_) {
    bytes += static_cast<int64_t>(sizeof(TileState));
    add(state->panels);
    add(state->zeros);
    add(state->row_lists);
    add(state->column_lists);
    add(state->rows);
    add(state->columns);
    add(state->panel_columns);
  }
  return bytes;
}

}  // namespace tilework
