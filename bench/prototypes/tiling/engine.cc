#include "engine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "io/checked_math.h"

namespace tilework {

namespace {

// States that a run keeps: of 30,000 nests that were looked at, none has more than 16.
constexpr size_t kKeptStates = 16;

void expand(const std::vector<TileLoop>& loops, int64_t last_count, std::vector<std::array<int64_t, 2>>& to,
            std::vector<std::vector<int64_t>>& weights, std::vector<std::vector<int64_t>>& lookup_index,
            size_t variables, size_t lookups) {
  to.assign(1, {0, 0});
  weights.assign(variables, std::vector<int64_t>(1, 0));
  lookup_index.assign(lookups, std::vector<int64_t>(1, 0));
  for (size_t level = 0; level < loops.size(); ++level) {
    const TileLoop& loop = loops[level];
    const int64_t count = level + 1 == loops.size() ? last_count : loop.count;
    const size_t inner = to.size();
    for (int64_t i = 1; i < count; ++i) {
      for (size_t k = 0; k < inner; ++k) {
        to.push_back({to[k][0] + i * loop.source_stride, to[k][1] + i * loop.destination_stride});
        for (size_t l = 0; l < lookups; ++l) {
          const bool own = static_cast<int>(l) == loop.lookup;
          lookup_index[l].push_back(lookup_index[l][k] + (own ? i * loop.lookup_stride : 0));
        }
        for (size_t v = 0; v < variables; ++v) {
          const bool own = static_cast<int>(v) == loop.variable;
          weights[v].push_back(weights[v][k] + (own ? i * loop.weight : 0));
        }
      }
    }
    if (count == 0) {
      to.clear();
      for (auto& w : weights) w.clear();
      for (auto& index : lookup_index) index.clear();
      return;
    }
  }
}

// Blocks of `block` entries whose offsets on one side step by `unit`.
void find_blocks(EdgeList& list, const std::vector<int64_t>& contiguous, const std::vector<int64_t>& other,
                 int64_t unit, int64_t block) {
  list.blocks.clear();
  list.single.clear();
  list.stride = list.count > 1 ? other[1] - other[0] : 1;
  for (int64_t i = 1; i < list.count; ++i) {
    if (other[i] - other[i - 1] != list.stride) list.stride = 0;
  }
  list.is_dense = list.holes == 0 && list.count >= block &&
                  contiguous[list.count - 1] - contiguous[0] == (list.count - 1) * unit;
  for (int64_t first = 0; first < list.count;) {
    int64_t last = first + 1;
    while (last < list.count && list.valid[last] == list.valid[first] &&
           contiguous[last] == contiguous[last - 1] + unit) {
      ++last;
    }
    const int64_t length = last - first;
    if (length < block || list.valid[first] == 0) {
      for (int64_t i = first; i < last; ++i) list.single.push_back(static_cast<int32_t>(i));
    } else {
      for (int64_t i = first; i < last; i += block) {
        list.blocks.push_back(static_cast<int32_t>(std::min(i, last - block)));
      }
    }
    first = last;
  }
}

}  // namespace

class EngineRun {
 public:
  EngineRun(const Engine& engine, const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end)
      : engine_(engine), nest_(engine.nest_), tiling_(engine.tiling_), source_(source),
        destination_(destination - begin), begin_(begin), end_(end) {
    variables_.assign(nest_.variables.size(), 0);
    lookups_.assign(nest_.lookups.size(), 0);
  }

  void run() {
    const int64_t e = engine_.element_bytes_;
    walk(0, nest_.source_base * e, nest_.destination_base * e, nest_.all_zero);
  }

 private:
  void walk(size_t level, int64_t s, int64_t d, bool hole) {
    if (level == tiling_.outer.size()) {
      run_tile(s, d, hole);
      return;
    }
    const Tiling::Outer& outer = tiling_.outer[level];
    const TileLoop& loop = outer.loop;
    const auto [full_from, full_to] =
        level + 1 == tiling_.outer.size() && !hole ? full_iterations(outer, d) : std::pair<int64_t, int64_t>{0, 0};
    for (int64_t i = 0; i < loop.count;) {
      const int64_t di = d + i * loop.destination_stride;
      const bool is_strip = i == full_from && full_from < full_to;
      const int64_t step = is_strip ? full_to - full_from : 1;
      if (di >= end_) break;
      if (di + (step - 1) * loop.destination_stride + outer.span > begin_) {
        if (loop.variable != kNone) variables_[loop.variable] += i * loop.weight;
        if (loop.lookup != kNone) lookups_[loop.lookup] += i * loop.lookup_stride;
        using BlockOf = Tiling::Outer::BlockOf;
        if (outer.block_of == BlockOf::kRows) row_block_ = i;
        if (outer.block_of == BlockOf::kColumns) column_block_ = i;
        if (is_strip) {
          run_strip(s + i * loop.source_stride, di, step, loop);
        } else {
          walk(level + 1, s + i * loop.source_stride, di, hole);
        }
        if (loop.variable != kNone) variables_[loop.variable] -= i * loop.weight;
        if (loop.lookup != kNone) lookups_[loop.lookup] -= i * loop.lookup_stride;
      }
      i += step;
    }
  }

  // Iterations [from, to) of the innermost outer loop whose tiles lie inside of the range and share one state.
  std::pair<int64_t, int64_t> full_iterations(const Tiling::Outer& outer, int64_t d) {
    const TileLoop& loop = outer.loop;
    if (loop.lookup != kNone || shares()) return {0, 0};
    int64_t from = 0;
    int64_t to = loop.count;
    if (outer.block_of != Tiling::Outer::BlockOf::kNone) {
      const TileLoop& block =
          outer.block_of == Tiling::Outer::BlockOf::kRows ? tiling_.rows.back() : tiling_.columns.back();
      to = block.whole_count / block.count;
    }
    if (loop.variable != kNone) {
      if (reach_.empty()) note_reach();
      const Variable& variable = nest_.variables[loop.variable];
      const int64_t base = variables_[loop.variable];
      const int64_t lo = std::max(variable.write_lo, variable.valid_lo);
      const int64_t hi = std::min(variable.write_hi, variable.valid_hi) - reach_[loop.variable];
      from = std::max(from, ceil_div(lo - base, loop.weight));
      to = std::min(to, ceil_div(hi - base, loop.weight));
    }
    const int64_t stride = loop.destination_stride;
    if (d < begin_) from = std::max(from, ceil_div(begin_ - d, stride));
    if (d + (to - 1) * stride + outer.span > end_) to = std::min(to, floor_div(end_ - outer.span - d, stride) + 1);
    return {from, std::max(from, to)};
  }

  void run_strip(int64_t s, int64_t d, int64_t repeat, const TileLoop& loop) {
    const TileState* state = state_now(false);
    if (state == nullptr) return;
    engine_.leaf_->run({source_ + s, destination_ + d, *state, tiling_.unit_bytes, repeat, loop.source_stride,
                        loop.destination_stride});
  }

  static int64_t count_of_last(const std::vector<TileLoop>& loops, int64_t block) {
    if (loops.empty()) return 1;
    const TileLoop& last = loops.back();
    if (last.whole_count == 0) return last.count;
    return std::min(last.count, last.whole_count - block * last.count);
  }

  void run_tile(int64_t s, int64_t d, bool hole) {
    // Guards whose loops all lie outside of the tile.
    const TileState* state = state_now(hole);
    if (state == nullptr) return;
    const bool whole = d >= begin_ && d + tile_span_ <= end_;
    if (!whole || hole || shares()) {
      run_slowly(*state, s, d, hole);
      return;
    }
    engine_.leaf_->run({source_ + s, destination_ + d, *state, tiling_.unit_bytes, 1, 0, 0});
  }

  bool shares() const { return engine_.shares_guard_; }

  // Element by element, with every check.
  void run_slowly(const TileState& state, int64_t s, int64_t d, bool hole) {
    const int64_t unit = tiling_.unit_bytes;
    for (int64_t c = 0; c < state.columns.count; ++c) {
      for (int64_t r = 0; r < state.rows.count; ++r) {
        const int64_t at = d + state.columns.destination[c] + state.rows.destination[r];
        const int64_t lo = std::max(at, begin_);
        const int64_t hi = std::min(at + unit, end_);
        if (lo >= hi) continue;
        bool valid = !hole && state.rows.valid[r] && state.columns.valid[c];
        if (shares()) {
          bool written = true;
          for (size_t v = 0; v < variables_.size(); ++v) {
            const int64_t index = variables_[v] + state.row_weights[v][r] + state.column_weights[v][c];
            const Variable& variable = nest_.variables[v];
            written = written && index >= variable.write_lo && index < variable.write_hi;
            valid = valid && index >= variable.valid_lo && index < variable.valid_hi;
          }
          if (!written) continue;
        }
        uint8_t* to = destination_ + lo;
        if (!valid) {
          std::memset(to, 0, static_cast<size_t>(hi - lo));
        } else {
          const uint8_t* from = source_ + s + state.rows.source[r] + state.columns.source[c] + (lo - at);
          std::memcpy(to, from, static_cast<size_t>(hi - lo));
        }
      }
    }
  }

  // The key of a state: what the guards leave of the tile, and where its lookups and blocks stand.
  void make_key(std::vector<int64_t>& key, bool hole) const {
    key.clear();
    key.push_back(hole);
    key.push_back(count_of_last(tiling_.rows, row_block_));
    key.push_back(count_of_last(tiling_.columns, column_block_));
    for (size_t v = 0; v < variables_.size(); ++v) {
      const Variable& variable = nest_.variables[v];
      const int64_t reach = reach_[v];
      for (int64_t bound : {variable.write_lo, variable.write_hi, variable.valid_lo, variable.valid_hi}) {
        key.push_back(std::clamp<int64_t>(bound - variables_[v], 0, reach + 1));
      }
    }
    for (int64_t index : lookups_) key.push_back(index);
  }

  const TileState* state_now(bool hole) {
    if (reach_.empty() && !variables_.empty()) note_reach();
    make_key(key_, hole);
    for (Kept& kept : kept_) {
      if (kept.key == key_) return kept.is_empty ? nullptr : use(kept);
    }
    if (kept_.size() < kKeptStates) kept_.emplace_back();
    Kept& kept = kept_[next_ % kKeptStates];
    next_ = (next_ + 1) % kKeptStates;
    kept.key = key_;
    build(kept.state, kept.is_empty);
    return kept.is_empty ? nullptr : use(kept);
  }

  struct Kept {
    std::vector<int64_t> key;
    TileState state;
    bool is_empty = false;
    int64_t span = 0;
  };

  const TileState* use(const Kept& kept) {
    tile_span_ = kept.state.rows.count == 0 ? 0 : span_of(kept.state);
    return &kept.state;
  }

  int64_t span_of(const TileState& state) const {
    const auto most = [](const EdgeList& list) {
      return *std::max_element(list.destination.begin(), list.destination.end());
    };
    return most(state.rows) + most(state.columns) + tiling_.unit_bytes;
  }

  void note_reach() {
    reach_.assign(variables_.size(), 0);
    for (const auto* list : {&tiling_.rows, &tiling_.columns}) {
      for (const TileLoop& loop : *list) {
        if (loop.variable != kNone) reach_[loop.variable] += (loop.count - 1) * loop.weight;
      }
    }
  }

  void build(TileState& state, bool& is_empty) {
    is_empty = false;
    std::vector<std::array<int64_t, 2>> rows;
    std::vector<std::array<int64_t, 2>> columns;
    std::vector<std::vector<int64_t>> row_lookup;
    std::vector<std::vector<int64_t>> column_lookup;
    expand(tiling_.rows, count_of_last(tiling_.rows, row_block_), rows, state.row_weights, row_lookup,
           variables_.size(), lookups_.size());
    expand(tiling_.columns, count_of_last(tiling_.columns, column_block_), columns, state.column_weights,
           column_lookup, variables_.size(), lookups_.size());
    filter(tiling_.rows, tiling_.columns, rows, state.row_weights, row_lookup, state.rows);
    filter(tiling_.columns, tiling_.rows, columns, state.column_weights, column_lookup, state.columns);
    if (state.rows.count == 0 || state.columns.count == 0) {
      is_empty = true;
      return;
    }
    const Leaf& leaf = *engine_.leaf_;
    find_blocks(state.rows, state.rows.destination, state.rows.source, tiling_.unit_bytes, leaf.block_rows);
    find_blocks(state.columns, state.columns.source, state.columns.destination, tiling_.unit_bytes, leaf.block_columns);
  }

  static bool touches(const std::vector<TileLoop>& loops, size_t variable) {
    return std::any_of(loops.begin(), loops.end(), [variable](const TileLoop& loop) {
      return loop.variable == static_cast<int>(variable);
    });
  }

  void filter(const std::vector<TileLoop>& loops, const std::vector<TileLoop>& other, const std::vector<std::array<int64_t, 2>>& entries,
              const std::vector<std::vector<int64_t>>& weights, const std::vector<std::vector<int64_t>>& lookup_index,
              EdgeList& list) {
    list = {};
    for (size_t i = 0; i < entries.size(); ++i) {
      bool written = true;
      bool valid = true;
      if (!shares()) {
        for (size_t v = 0; v < variables_.size(); ++v) {
          // Guards of the other list are its own; guards of neither are the rows'.
          if (touches(other, v)) continue;
          const int64_t index = variables_[v] + weights[v][i];
          const Variable& variable = nest_.variables[v];
          written = written && index >= variable.write_lo && index < variable.write_hi;
          valid = valid && index >= variable.valid_lo && index < variable.valid_hi;
        }
      }
      int64_t looked_up = 0;
      if (&loops == &tiling_.rows && valid && written) {
        for (size_t l = 0; l < lookups_.size(); ++l) {
          const int64_t answer = nest_.lookups[l].at(lookups_[l] + lookup_index[l][i]);
          if (answer == kHole) {
            valid = false;
          } else if (answer == kSkip) {
            written = false;
          } else {
            looked_up += answer * engine_.element_bytes_;
          }
        }
      }
      if (!written) continue;
      list.source.push_back(entries[i][0] + looked_up);
      list.destination.push_back(entries[i][1]);
      list.valid.push_back(valid);
      list.holes += !valid;
      ++list.count;
    }
  }

  const Engine& engine_;
  const LoopNest& nest_;
  const Tiling& tiling_;
  const uint8_t* source_;
  uint8_t* destination_;
  int64_t begin_;
  int64_t end_;
  std::vector<int64_t> variables_;
  std::vector<int64_t> lookups_;
  std::vector<int64_t> reach_;
  std::vector<int64_t> key_;
  std::vector<Kept> kept_ = [] {
    std::vector<Kept> kept;
    kept.reserve(kKeptStates);
    return kept;
  }();
  size_t next_ = 0;
  int64_t row_block_ = 0;
  int64_t column_block_ = 0;
  int64_t tile_span_ = 0;
};

Engine::Engine(const LoopNest& nest, int64_t element_bytes)
    : nest_(nest), element_bytes_(element_bytes), tiling_(tile_of(nest, element_bytes)), leaf_(&leaf_for(tiling_)) {
  for (const TileLoop& row : tiling_.rows) {
    for (const TileLoop& column : tiling_.columns) {
      shares_guard_ = shares_guard_ || (row.variable != kNone && row.variable == column.variable);
    }
  }
}

void Engine::run(const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end) const {
  EngineRun(*this, source, destination, begin, end).run();
}

}  // namespace tilework
