#include "engine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "io/checked_math.h"
#include "panel.h"

namespace tilework {
namespace {

// States that a run keeps: of 30,000 nests that were looked at, none has more than 16.
constexpr size_t kKeptStates = 16;

// The end of a range that ends with the storage: no tile reaches beyond it.
constexpr int64_t kNoEnd = INT64_MAX / 2;

struct Entry {
  int64_t source = 0;
  int64_t destination = 0;
  bool has_source = true;
};

// Rows or columns of a tile in one guard state.
struct EdgeList {
  std::vector<Entry> entries;
  // Index of each guard, and of each lookup, beside what the outer loops add.
  std::vector<std::vector<int64_t>> guard;
  std::vector<std::vector<int64_t>> looked_up;
};

struct StatePanel {
  int64_t source;
  int64_t destination;
  PanelShape shape;
  int64_t zero_rows;
  int64_t rest_bytes;
  int64_t zero_bytes;
  // Into offsets of the state; unused where even.
  size_t row_list;
  size_t column_list;
  PanelLeaf run;
  const char* name;
};

struct ZeroRun {
  int64_t destination;
  int64_t bytes;
};

// What the guards leave of the tile, and where its lookups and blocks are.
struct StateKey {
  // Upper bound: a flag for holes, two block counts, and per axis four bounds of a guard and the index of a
  // lookup.
  static constexpr size_t kMost = 3 + 5 * kMaxPlannedAxes;
  std::array<int64_t, kMost> parts;
  size_t count = 0;
  void add(int64_t part) { parts[count++] = part; }
  bool operator==(const StateKey& other) const {
    return count == other.count &&
           std::equal(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count), other.parts.begin());
  }
};

EdgeList expand(const std::vector<TileLoop>& loops, int64_t last_count, size_t variables, size_t lookups) {
  EdgeList list;
  list.entries.assign(1, {});
  list.guard.assign(variables, {0});
  list.looked_up.assign(lookups, {0});
  for (size_t level = 0; level < loops.size(); ++level) {
    const TileLoop& loop = loops[level];
    const int64_t count = level + 1 == loops.size() ? last_count : loop.count;
    const size_t inner = list.entries.size();
    for (int64_t i = 1; i < count; ++i) {
      for (size_t k = 0; k < inner; ++k) {
        const Entry& from = list.entries[k];
        list.entries.push_back(
            {from.source + i * loop.source_stride, from.destination + i * loop.destination_stride, true});
        for (size_t v = 0; v < variables; ++v) {
          list.guard[v].push_back(list.guard[v][k] +
                                  (static_cast<int>(v) == loop.variable ? i * loop.weight : 0));
        }
        for (size_t l = 0; l < lookups; ++l) {
          list.looked_up[l].push_back(list.looked_up[l][k] +
                                      (static_cast<int>(l) == loop.lookup ? i * loop.lookup_stride : 0));
        }
      }
    }
  }
  return list;
}

bool touches(const std::vector<TileLoop>& loops, size_t variable) {
  return std::any_of(loops.begin(), loops.end(), [variable](const TileLoop& loop) {
    return loop.variable == static_cast<int>(variable);
  });
}

}  // namespace

struct TileState {
  StateKey key;
  std::vector<StatePanel> panels;
  std::vector<ZeroRun> zeros;
  std::vector<int64_t> row_lists;
  std::vector<int64_t> column_lists;
  // Where rows and columns share a guard that cuts the tile, units are moved one by one.
  bool is_shared = false;
  std::vector<Entry> rows;
  std::vector<Entry> columns;
  // The columns that panels have: with those that lie in gaps.
  std::vector<Entry> panel_columns;
  EdgeList shared_rows;
  EdgeList shared_columns;
  // Bytes from the start of the tile in the destination to its last one.
  int64_t span = 0;
};
class EngineRun {
 public:
  EngineRun(const Engine& engine, const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end,
            Stores stores)
      : engine_(engine),
        nest_(engine.nest_),
        tiling_(engine.tiling_),
        source_(source),
        destination_(destination - begin),
        begin_(begin),
        end_(end == engine.destination_bytes_ ? kNoEnd : end),
        stores_(stores) {
    std::fill_n(index_, nest_.variables.size(), 0);
    std::fill_n(lookup_index_, nest_.lookups.size(), 0);
  }

  // The states that a walk finds, each once.
  std::vector<std::shared_ptr<const TileState>> foresee() {
    foresee_at(0, nest_.all_zero);
    return std::move(kept_);
  }

  void run() {
    const int64_t e = engine_.element_bytes_;
    walk(0, nest_.source_base * e, nest_.destination_base * e, nest_.all_zero);
  }

  std::string first_leaf() {
    const TileState& state = state_now(nest_.all_zero);
    return state.is_shared ? "units by guard" : state.panels.empty() ? "zeros" : state.panels[0].name;
  }

 private:
  // Enough for all states of the nests that were looked at.
  static constexpr int kMostForeseen = 256;

  // Visits the first iteration of each segment of each loop.
  void foresee_at(size_t level, bool hole) {
    if (foreseen_ >= kMostForeseen || kept_.size() >= kKeptStates) return;
    if (level == tiling_.outer.size()) {
      ++foreseen_;
      static_cast<void>(state_now(hole));
      return;
    }
    const TileLoop& loop = tiling_.outer[level].loop;
    const auto [lo, hi] = iterations(level, 0);
    int64_t next = lo;
    for (int64_t i = lo; i < hi && foreseen_ < kMostForeseen; i = next) {
      at_iteration(level, i, [&] {
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
    return outer.block_of == BlockOf::kRows ? row_block_ : column_block_;
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
      const int64_t base = index_[loop.variable];
      lo = std::max(lo, ceil_div(variable.write_lo - base - engine_.facts_[level].below, loop.weight));
      hi = std::min(hi, ceil_div(variable.write_hi - base, loop.weight));
    }
    const int64_t stride = loop.destination_stride;
    if (d < begin_) lo = std::max(lo, floor_div(begin_ - d - outer.span, stride) + 1);
    if (d + (hi - 1) * stride >= end_) hi = std::min(hi, ceil_div(end_ - d, stride));
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
      const int64_t reach = engine_.facts_[level].below;
      const int64_t index = index_[loop.variable];
      for (int64_t bound : {variable.write_lo, variable.write_hi, variable.valid_lo, variable.valid_hi}) {
        const int64_t left = bound - index;
        if (left <= 0) continue;
        const int64_t same = left > reach ? floor_div(left - reach - 1, loop.weight) + 1 : 1;
        segment.to = std::min(segment.to, i + same);
      }
    }
    const int64_t stride = loop.destination_stride;
    const int64_t at = d + i * stride;
    if (at < begin_ || at + span > end_) {
      segment.to = i + 1;
      segment.is_whole = false;
    } else if (d + (segment.to - 1) * stride + span > end_) {
      segment.to = floor_div(end_ - span - d, stride) + 1;
    }
    return segment;
  }

  template <class Body>
  void at_iteration(size_t level, int64_t i, Body body) {
    const Outer& outer = tiling_.outer[level];
    const TileLoop& loop = outer.loop;
    if (loop.variable != kNone) index_[loop.variable] += i * loop.weight;
    if (loop.lookup != kNone) lookup_index_[loop.lookup] += i * loop.lookup_stride;
    if (outer.block_of == BlockOf::kRows) row_block_ += i * outer.blocks;
    if (outer.block_of == BlockOf::kColumns) column_block_ += i * outer.blocks;
    body();
    if (loop.variable != kNone) index_[loop.variable] -= i * loop.weight;
    if (loop.lookup != kNone) lookup_index_[loop.lookup] -= i * loop.lookup_stride;
    if (outer.block_of == BlockOf::kRows) row_block_ -= i * outer.blocks;
    if (outer.block_of == BlockOf::kColumns) column_block_ -= i * outer.blocks;
  }

  void walk(size_t level, int64_t s, int64_t d, bool hole) {
    const size_t levels = tiling_.outer.size();
    if (level == levels) {
      const TileState& state = state_now(hole);
      run_tiles(state, s, d, {}, {}, d >= begin_ && d + state.span <= end_);
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
        if (engine_.facts_[level].looks_up && !hole) {
          const int64_t offset = nest_.lookups[loop.lookup].at(lookup_index_[loop.lookup]);
          if (offset == kSkip) return;
          in_hole = offset == kHole;
          if (!in_hole) from += offset * engine_.element_bytes_;
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
        if (around.count > 1 || around.tail > 0) segment.is_whole = is_whole;
        Steps steps{segment.to - i, loop.source_stride, loop.destination_stride};
        next = segment.to;
        if (segment.is_whole && add_tail(level, i, hi, state, steps)) ++next;
        run_tiles(state, s + i * loop.source_stride, d + i * loop.destination_stride, steps, around,
                  segment.is_whole);
      });
    }
  }

  // Adds the iteration behind the steps, in which the block is not complete, where that is all that differs.
  bool add_tail(size_t level, int64_t first, int64_t hi, const TileState& state, Steps& steps) {
    const Outer& outer = tiling_.outer[level];
    const int64_t last = first + steps.count;
    if (outer.block_of == BlockOf::kNone || outer.blocks != 1 || last + 1 != hi || end_ != kNoEnd ||
        state.panels.size() != 1 || !state.zeros.empty()) {
      return false;
    }
    const bool are_rows = outer.block_of == BlockOf::kRows;
    const TileLoop& block = block_of(outer);
    const int64_t tail = block.whole_count - (block_index(outer) + steps.count) * block.count;
    const StatePanel& panel = state.panels[0];
    if ((are_rows ? tiling_.rows : tiling_.columns).size() != 1 || tail >= block.count) return false;
    if (!(are_rows ? panel.shape.has_even_rows : panel.shape.has_even_columns) ||
        (are_rows && panel.zero_rows > 0))
      return false;
    const TileLoop& loop = outer.loop;
    if (loop.variable != kNone) {
      // The guard must leave the tail whole, as it does the blocks before.
      const Variable& variable = nest_.variables[loop.variable];
      const int64_t index = index_[loop.variable] + steps.count * loop.weight;
      const int64_t reach = engine_.facts_[level].below - (block.count - tail) * block.weight;
      if (index + reach >= std::min(variable.write_hi, variable.valid_hi)) return false;
    }
    steps.tail = tail;
    steps.tail_of = are_rows ? Edge::kRows : Edge::kColumns;
    return true;
  }

  // Whether the two innermost outer loops cut a rectangle of tiles in one state.
  bool can_pair() const {
    const size_t levels = tiling_.outer.size();
    const TileLoop& outer = tiling_.outer[levels - 2].loop;
    const TileLoop& inner = tiling_.outer[levels - 1].loop;
    if (outer.lookup != kNone || inner.lookup != kNone) return false;
    return outer.variable == kNone || outer.variable != inner.variable;
  }

  // The state that all iterations of the innermost outer loop find the tile in, but for a tail of its own;
  // null if there are several.
  const TileState* common_state(size_t level, int64_t lo, int64_t hi, int64_t d, bool hole) {
    const TileState* common = nullptr;
    at_iteration(level, lo, [&] {
      const TileState& state = state_now(hole);
      const Segment segment = segment_at(level, lo, hi, d, 0);
      Steps steps{segment.to - lo};
      if (segment.to == hi || add_tail(level, lo, hi, state, steps)) common = &state;
    });
    return common;
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
        Steps around{segment.to - i, loop.source_stride, loop.destination_stride};
        if (segment.is_whole && inner_lo < inner_hi && outer.block_of != BlockOf::kNone) {
          const TileState* state = common_state(level + 1, inner_lo, inner_hi, di, hole);
          if (state != nullptr && add_tail(level, i, hi, *state, around)) ++next;
        }
        strips(level + 1, inner_lo, inner_hi, si, di, hole, around, segment.is_whole);
      });
    }
  }

  static int64_t count_of_last(const std::vector<TileLoop>& loops, int64_t block) {
    if (loops.empty()) return 1;
    const TileLoop& last = loops.back();
    if (last.whole_count == 0) return last.count;
    return std::min(last.count, last.whole_count - block * last.count);
  }

  // Tiles in one state: `inner` steps of each of `outer` steps.
  void run_tiles(const TileState& state, int64_t s, int64_t d, const Steps& inner, const Steps& outer,
                 bool is_whole) {
    if (state.is_shared || !is_whole) {
      for (int64_t o = 0; o < outer.count; ++o) {
        for (int64_t i = 0; i < inner.count; ++i) {
          const int64_t source = s + o * outer.source + i * inner.source;
          const int64_t destination = d + o * outer.destination + i * inner.destination;
          if (state.is_shared) {
            run_shared(state, source, destination);
          } else {
            run_cut(state, source, destination);
          }
        }
      }
      return;
    }
    if (state.panels.size() + state.zeros.size() == 1) {
      run_state(state, s, d, inner, outer);
      return;
    }
    // Several panels share cache lines: all of them come before the steps go on.
    constexpr int64_t kChunkBytes = 16 << 10;
    const int64_t bytes = static_cast<int64_t>(state.rows.size() * state.columns.size()) * tiling_.unit_bytes;
    const int64_t chunk = std::max<int64_t>(kChunkBytes / std::max<int64_t>(bytes, 1), 1);
    for (int64_t o = 0; o < outer.count; ++o) {
      for (int64_t i = 0; i < inner.count; i += chunk) {
        run_state(state, s + o * outer.source + i * inner.source,
                  d + o * outer.destination + i * inner.destination,
                  {std::min(chunk, inner.count - i), inner.source, inner.destination}, {});
      }
    }
  }

  void run_state(const TileState& state, int64_t s, int64_t d, const Steps& inner, const Steps& outer) {
    for (const ZeroRun& zero : state.zeros) {
      for (int64_t o = 0; o < outer.count; ++o) {
        if (zero.bytes == inner.destination) {
          std::memset(destination_ + d + zero.destination + o * outer.destination, 0,
                      static_cast<size_t>(zero.bytes * inner.count));
          continue;
        }
        for (int64_t i = 0; i < inner.count; ++i) {
          std::memset(destination_ + d + zero.destination + o * outer.destination + i * inner.destination, 0,
                      static_cast<size_t>(zero.bytes));
        }
      }
    }
    for (const StatePanel& panel : state.panels) {
      panel.run({source_ + s + panel.source, destination_ + d + panel.destination, panel.shape.unit_bytes,
                 panel.shape.column_step, panel.shape.rows, panel.zero_rows, panel.shape.holes,
                 panel.shape.dropped, panel.rest_bytes, panel.zero_bytes, panel.shape.columns,
                 panel.shape.has_even_rows ? nullptr : state.row_lists.data() + panel.row_list,
                 panel.shape.row_stride,
                 panel.shape.has_even_columns ? nullptr : state.column_lists.data() + panel.column_list,
                 panel.shape.column_stride, inner, outer, stores_});
    }
  }

  // The units of a tile that lie in the range.
  void run_cut(const TileState& state, int64_t s, int64_t d) {
    for (const Entry& column : state.columns) {
      for (const Entry& row : state.rows) move_unit(row, column, s, d, row.has_source && column.has_source);
    }
  }

  void run_shared(const TileState& state, int64_t s, int64_t d) {
    for (size_t c = 0; c < state.columns.size(); ++c) {
      for (size_t r = 0; r < state.rows.size(); ++r) {
        bool written = true;
        bool valid = state.rows[r].has_source && state.columns[c].has_source;
        for (size_t v = 0; v < nest_.variables.size(); ++v) {
          const int64_t index = index_[v] + state.shared_rows.guard[v][r] + state.shared_columns.guard[v][c];
          const Variable& variable = nest_.variables[v];
          written = written && index >= variable.write_lo && index < variable.write_hi;
          valid = valid && index >= variable.valid_lo && index < variable.valid_hi;
        }
        if (written) move_unit(state.rows[r], state.columns[c], s, d, valid);
      }
    }
  }

  void move_unit(const Entry& row, const Entry& column, int64_t s, int64_t d, bool valid) {
    const int64_t at = d + row.destination + column.destination;
    const int64_t lo = std::max(at, begin_);
    const int64_t hi = std::min(at + tiling_.unit_bytes, end_);
    if (lo >= hi) return;
    if (valid) {
      std::memcpy(destination_ + lo, source_ + s + row.source + column.source + (lo - at),
                  static_cast<size_t>(hi - lo));
    } else {
      std::memset(destination_ + lo, 0, static_cast<size_t>(hi - lo));
    }
  }

  StateKey key_now(bool hole) const {
    StateKey key;
    key.add(hole);
    key.add(count_of_last(tiling_.rows, row_block_));
    key.add(count_of_last(tiling_.columns, column_block_));
    for (size_t v = 0; v < nest_.variables.size(); ++v) {
      const Variable& variable = nest_.variables[v];
      const int64_t reach = engine_.tile_reach_[v];
      for (int64_t bound : {variable.write_lo, variable.write_hi, variable.valid_lo, variable.valid_hi}) {
        key.add(std::clamp<int64_t>(bound - index_[v], 0, reach + 1));
      }
    }
    for (size_t l = 0; l < nest_.lookups.size(); ++l) {
      if (engine_.looks_up_in_tile_[l]) key.add(lookup_index_[l]);
    }
    return key;
  }

  const TileState& state_now(bool hole) {
    const StateKey key = key_now(hole);
    if (last_ != nullptr && last_->key == key) return *last_;
    for (const auto& state : engine_.states_) {
      if (state->key == key) return *(last_ = state.get());
    }
    for (const auto& state : kept_) {
      if (state->key == key) return *(last_ = state.get());
    }
    auto state = std::make_shared<TileState>();
    state->key = key;
    build(*state, hole);
    last_ = state.get();
    if (kept_.size() < kKeptStates) {
      kept_.push_back(std::move(state));
    } else {
      kept_[next_] = std::move(state);
      next_ = (next_ + 1) % kKeptStates;
    }
    return *last_;
  }

  void build(TileState& state, bool hole) {
    EdgeList rows = expand(tiling_.rows, count_of_last(tiling_.rows, row_block_), nest_.variables.size(),
                           nest_.lookups.size());
    EdgeList columns = expand(tiling_.columns, count_of_last(tiling_.columns, column_block_),
                              nest_.variables.size(), nest_.lookups.size());
    state.is_shared = shares_cut_guard();
    state.rows = filter(rows, tiling_.columns, hole, state.is_shared, true);
    state.columns = filter(columns, tiling_.rows, hole, state.is_shared, false);
    state.span = span_of(state);
    if (state.is_shared) {
      state.shared_rows = std::move(rows);
      state.shared_columns = std::move(columns);
      return;
    }
    std::stable_sort(state.rows.begin(), state.rows.end(),
                     [](const Entry& a, const Entry& b) { return a.destination < b.destination; });
    std::stable_sort(state.columns.begin(), state.columns.end(), [](const Entry& a, const Entry& b) {
      return std::pair(!a.has_source, a.source) < std::pair(!b.has_source, b.source);
    });
    add_panels(state);
  }

  int64_t span_of(const TileState& state) const {
    const auto last = [](const std::vector<Entry>& list) {
      int64_t most = 0;
      for (const Entry& entry : list) most = std::max(most, entry.destination);
      return most;
    };
    return last(state.rows) + last(state.columns) + tiling_.unit_bytes;
  }

  bool shares_cut_guard() const {
    for (size_t v = 0; v < nest_.variables.size(); ++v) {
      if (!engine_.is_shared_[v]) continue;
      const Variable& variable = nest_.variables[v];
      const int64_t reach = engine_.tile_reach_[v];
      for (int64_t bound : {variable.write_lo, variable.write_hi, variable.valid_lo, variable.valid_hi}) {
        const int64_t left = bound - index_[v];
        if (left > 0 && left <= reach) return true;
      }
    }
    return false;
  }

  // Entries that are written. Guards that the other list advances are the other list's.
  std::vector<Entry> filter(const EdgeList& list, const std::vector<TileLoop>& other, bool hole,
                            bool is_shared, bool are_rows) {
    std::vector<Entry> kept;
    for (size_t i = 0; i < list.entries.size(); ++i) {
      bool written = true;
      bool valid = !hole;
      for (size_t v = 0; v < nest_.variables.size() && !is_shared; ++v) {
        if (touches(other, v) && !(engine_.is_shared_[v])) continue;
        const int64_t index = index_[v] + list.guard[v][i];
        const Variable& variable = nest_.variables[v];
        written = written && index >= variable.write_lo && index < variable.write_hi;
        valid = valid && index >= variable.valid_lo && index < variable.valid_hi;
      }
      Entry entry = list.entries[i];
      if (are_rows && valid && written) {
        for (size_t l = 0; l < nest_.lookups.size() && valid && written; ++l) {
          if (!engine_.looks_up_in_tile_[l]) continue;
          const int64_t offset = nest_.lookups[l].at(lookup_index_[l] + list.looked_up[l][i]);
          if (offset == kHole) {
            valid = false;
          } else if (offset == kSkip) {
            written = false;
          } else {
            entry.source += offset * engine_.element_bytes_;
          }
        }
      }
      entry.has_source = valid;
      if (written || is_shared) kept.push_back(entry);
    }
    return kept;
  }

  // Entries [first, last) follow each other on their own side.
  struct Run {
    size_t first;
    size_t last;
  };

  std::vector<Run> runs_of(const std::vector<Entry>& list, int64_t Entry::*own, int64_t step,
                           bool with_holes) const {
    std::vector<Run> runs;
    for (size_t i = 0; i < list.size(); ++i) {
      const bool goes_on = i > 0 && list[i].*own == list[i - 1].*own + step &&
                           (with_holes || list[i].has_source == list[i - 1].has_source);
      if (goes_on) {
        runs.back().last = i + 1;
      } else {
        runs.push_back({i, i + 1});
      }
    }
    return runs;
  }

  // With the units in gaps between columns, where these are short.
  std::vector<Entry> with_gaps(const std::vector<Entry>& columns) const {
    if (!tiling_.has_column_gaps) return columns;
    std::vector<Entry> all;
    for (const Entry& column : columns) {
      if (!all.empty() && column.has_source && all.back().has_source) {
        const int64_t end = all.back().source + tiling_.unit_bytes;
        for (int64_t at = end; at < column.source && column.source - end <= kMaxGapBytes;
             at += tiling_.unit_bytes) {
          all.push_back({at, kDropped, true});
        }
      }
      all.push_back(column);
    }
    return all;
  }

  void add_panels(TileState& state) const {
    state.panel_columns = with_gaps(state.columns);
    const std::vector<Run> rows = runs_of(state.rows, &Entry::destination, tiling_.unit_bytes, true);
    const std::vector<Run> columns = runs_of(state.panel_columns, &Entry::source, tiling_.column_step, false);
    for (const Run& column : columns) {
      for (const Run& row : rows) {
        if (state.panel_columns[column.first].has_source) {
          add_panel(state, row, column);
        } else {
          for (size_t c = column.first; c < column.last; ++c) {
            add_zeros(state, state.panel_columns[c].destination + state.rows[row.first].destination,
                      static_cast<int64_t>(row.last - row.first) * tiling_.unit_bytes);
          }
        }
      }
    }
  }

  // The distance of all neighbours, if it is the same.
  static bool is_even(const std::vector<Entry>& list, size_t first, size_t last, int64_t Entry::*other,
                      int64_t& stride) {
    stride = last - first > 1 ? list[first + 1].*other - list[first].*other : 0;
    for (size_t i = first + 1; i < last; ++i) {
      if (list[i].*other - list[i - 1].*other != stride) return false;
    }
    return true;
  }

  void add_panel(TileState& state, const Run& row, const Run& column) const {
    const auto& rows = state.rows;
    size_t valid_last = row.last;
    while (valid_last > row.first && !rows[valid_last - 1].has_source) --valid_last;
    size_t valid_first = row.first;
    while (valid_first < valid_last && !rows[valid_first].has_source) ++valid_first;
    const size_t zeros_before = valid_last == row.first ? row.last - row.first : valid_first - row.first;
    if (zeros_before > 0) {
      add_zero_columns(state, column, rows[row.first].destination,
                       static_cast<int64_t>(zeros_before) * tiling_.unit_bytes);
    }
    if (valid_first < valid_last)
      add_whole_panel(state, {valid_first, valid_last}, row.last - valid_last, column);
  }

  static void add_zero_columns(TileState& state, const Run& column, int64_t row, int64_t bytes) {
    for (size_t c = column.first; c < column.last; ++c) {
      const int64_t destination = state.panel_columns[c].destination;
      if (destination != kDropped) add_zeros(state, destination + row, bytes);
    }
  }

  static void add_zeros(TileState& state, int64_t destination, int64_t bytes) {
    if (!state.zeros.empty() && state.zeros.back().destination + state.zeros.back().bytes == destination) {
      state.zeros.back().bytes += bytes;
    } else {
      state.zeros.push_back({destination, bytes});
    }
  }

  struct SourceRun {
    int64_t source;
    int64_t destination;
    int64_t bytes;
  };

  // Runs of rows that the source keeps together, of a tile of one column.
  void add_runs(TileState& state, const Run& row, size_t zero_rows, size_t column) const {
    const auto& rows = state.rows;
    const int64_t unit = tiling_.unit_bytes;
    std::vector<SourceRun> runs;
    for (size_t r = row.first; r < row.last; ++r) {
      const int64_t destination = rows[r].destination + state.panel_columns[column].destination;
      if (!rows[r].has_source) {
        add_zeros(state, destination, unit);
      } else if (!runs.empty() && rows[r].source == runs.back().source + runs.back().bytes &&
                 destination == runs.back().destination + runs.back().bytes) {
        runs.back().bytes += unit;
      } else {
        runs.push_back({rows[r].source, destination, unit});
      }
    }
    for (size_t first = 0; first < runs.size();) {
      // Runs of one size and distance, and a shorter one behind them.
      size_t last = first + 1;
      const int64_t bytes = runs[first].bytes;
      const int64_t stride = last < runs.size() ? runs[last].source - runs[first].source : 0;
      const auto goes_on = [&](size_t i) {
        return i < runs.size() && runs[i].source == runs[i - 1].source + stride &&
               runs[i].destination == runs[i - 1].destination + bytes;
      };
      while (goes_on(last) && runs[last].bytes == bytes) ++last;
      StatePanel panel{};
      panel.source = runs[first].source + state.panel_columns[column].source;
      panel.destination = runs[first].destination;
      panel.shape = {bytes, bytes, static_cast<int64_t>(last - first), 1, true, true, 0, 0, stride, 0};
      if (goes_on(last) && runs[last].bytes < bytes) panel.rest_bytes = runs[last++].bytes;
      if (last == runs.size() && last == 1) panel.zero_bytes = static_cast<int64_t>(zero_rows) * unit;
      const Leaf leaf = leaf_of_runs();
      panel.run = leaf.run;
      panel.name = leaf.name;
      state.panels.push_back(panel);
      first = last;
    }
    if (zero_rows > 0 && runs.size() > 1) {
      add_zeros(state, rows[row.last - 1].destination + unit + state.panel_columns[column].destination,
                static_cast<int64_t>(zero_rows) * unit);
    }
  }

  void add_whole_panel(TileState& state, const Run& row, size_t zero_rows, const Run& column) const {
    const auto& rows = state.rows;
    const auto& columns = state.panel_columns;
    const bool is_run =
        row.last - row.first > 1 && rows[row.first + 1].source == rows[row.first].source + tiling_.unit_bytes;
    if (column.last - column.first == 1 && (is_run || tiling_.has_guarded_run)) {
      add_runs(state, row, zero_rows, column.first);
      return;
    }
    StatePanel panel{};
    panel.source = rows[row.first].source + columns[column.first].source;
    panel.destination = rows[row.first].destination + columns[column.first].destination;
    panel.shape.unit_bytes = tiling_.unit_bytes;
    panel.shape.column_step = tiling_.column_step;
    panel.shape.rows = static_cast<int64_t>(row.last - row.first + zero_rows);
    panel.zero_rows = static_cast<int64_t>(zero_rows);
    panel.shape.columns = static_cast<int64_t>(column.last - column.first);
    panel.shape.has_even_rows = is_even(rows, row.first, row.last, &Entry::source, panel.shape.row_stride);
    for (size_t c = column.first; c < column.last; ++c)
      panel.shape.dropped += columns[c].destination == kDropped;
    panel.shape.has_even_columns =
        panel.shape.dropped == 0 &&
        is_even(columns, column.first, column.last, &Entry::destination, panel.shape.column_stride);
    panel.row_list = state.row_lists.size();
    panel.column_list = state.column_lists.size();
    for (size_t r = row.first; r < row.last; ++r) {
      state.row_lists.push_back(rows[r].has_source ? rows[r].source - rows[row.first].source : kNoSource);
      panel.shape.holes += !rows[r].has_source;
    }
    if (panel.shape.holes > 0) panel.shape.has_even_rows = false;
    panel.shape.holes += static_cast<int64_t>(zero_rows);
    for (size_t r = 0; r < zero_rows; ++r) state.row_lists.push_back(kNoSource);
    for (size_t c = column.first; c < column.last; ++c) {
      const bool is_dropped = columns[c].destination == kDropped;
      state.column_lists.push_back(is_dropped ? kDropped
                                              : columns[c].destination - columns[column.first].destination);
    }
    const Leaf leaf = leaf_for(panel.shape);
    panel.run = leaf.run;
    panel.name = leaf.name;
    state.panels.push_back(panel);
  }

  const Engine& engine_;
  const LoopNest& nest_;
  const Tiling& tiling_;
  const uint8_t* source_;
  uint8_t* destination_;
  int64_t begin_;
  int64_t end_;
  Stores stores_;
  int64_t index_[kMaxPlannedAxes];
  int64_t lookup_index_[kMaxPlannedAxes];
  std::vector<std::shared_ptr<const TileState>> kept_;
  const TileState* last_ = nullptr;
  int foreseen_ = 0;
  size_t next_ = 0;
  int64_t row_block_ = 0;
  int64_t column_block_ = 0;
};

Engine::Engine(const LoopNest& nest, int64_t element_bytes, int64_t destination_bytes)
    : nest_(nest),
      element_bytes_(element_bytes),
      destination_bytes_(destination_bytes),
      tiling_(tile_of(nest, element_bytes)) {
  tile_reach_.assign(nest.variables.size(), 0);
  is_shared_.assign(nest.variables.size(), false);
  looks_up_in_tile_.assign(nest.lookups.size(), false);
  for (const auto* list : {&tiling_.rows, &tiling_.columns}) {
    for (const TileLoop& loop : *list) {
      if (loop.variable != kNone) tile_reach_[loop.variable] += (loop.count - 1) * loop.weight;
      if (loop.lookup != kNone) looks_up_in_tile_[loop.lookup] = true;
    }
  }
  for (size_t v = 0; v < nest.variables.size(); ++v) {
    is_shared_[v] = touches(tiling_.rows, v) && touches(tiling_.columns, v);
  }
  facts_.resize(tiling_.outer.size());
  std::vector<int64_t> below = tile_reach_;
  std::vector<bool> has_lookup = looks_up_in_tile_;
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
  states_ = EngineRun(*this, nullptr, nullptr, 0, destination_bytes, Stores::kCached).foresee();
}

void Engine::run(const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end,
                 Stores stores) const {
  EngineRun(*this, source, destination, begin, end, stores).run();
}

std::string Engine::first_leaf() const {
  return EngineRun(*this, nullptr, nullptr, 0, 0, Stores::kCached).first_leaf();
}

}  // namespace tilework
