#include "reorder/plan/tile_state.h"

#include <algorithm>
#include <utility>

#include "policy/thresholds.h"

namespace tilework {
namespace {

bool touches(const std::vector<TileLoop>& loops, size_t variable) {
  return std::any_of(loops.begin(), loops.end(), [variable](const TileLoop& loop) {
    return loop.variable == static_cast<int>(variable);
  });
}

class StateBuilder {
 public:
  StateBuilder(const TileContext& context, const TilePosition& position)
      : context_(context), nest_(context.nest), tiling_(context.tiling), position_(position) {}

  void build(TileState& state, bool hole) {
    EdgeList rows = expand(tiling_.rows, position_.row_block);
    EdgeList columns = expand(tiling_.columns, position_.column_block);
    state.rows = filter(rows, tiling_.columns, hole, true);
    state.columns = filter(columns, tiling_.rows, hole, false);
    state.span = span_of(state);
    std::stable_sort(state.rows.begin(), state.rows.end(),
                     [](const Entry& a, const Entry& b) { return a.destination < b.destination; });
    std::stable_sort(state.columns.begin(), state.columns.end(), [](const Entry& a, const Entry& b) {
      return std::pair(!a.has_source, a.source) < std::pair(!b.has_source, b.source);
    });
    add_panels(state);
    state.scatters_columns = scatters_columns(state);
  }

 private:
  EdgeList expand(const std::vector<TileLoop>& loops, int64_t block) const {
    const size_t variables = nest_.variables.size();
    const size_t lookups = nest_.lookups.size();
    const int64_t last_count = count_of_last(loops, block);
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

  int64_t span_of(const TileState& state) const {
    const auto last = [](const std::vector<Entry>& list) {
      int64_t most = 0;
      for (const Entry& entry : list) most = std::max(most, entry.destination);
      return most;
    };
    return last(state.rows) + last(state.columns) + tiling_.unit_bytes;
  }

  bool scatters_columns(const TileState& state) const {
    const auto units = static_cast<int64_t>(state.rows.size() * state.columns.size());
    return units * tiling_.unit_bytes == state.span &&
           std::none_of(state.panels.begin(), state.panels.end(),
                        [](const StatePanel& panel) { return panel.shape.has_even_columns; });
  }

  // Entries that are written. Guards that the other list advances are the other list's.
  std::vector<Entry> filter(const EdgeList& list, const std::vector<TileLoop>& other, bool hole,
                            bool are_rows) {
    std::vector<Entry> kept;
    for (size_t i = 0; i < list.entries.size(); ++i) {
      bool written = true;
      bool valid = !hole;
      for (size_t v = 0; v < nest_.variables.size(); ++v) {
        if (touches(other, v)) continue;
        const int64_t index = position_.index[v] + list.guard[v][i];
        const Variable& variable = nest_.variables[v];
        written = written && index >= variable.write_lo && index < variable.write_hi;
        valid = valid && index >= variable.valid_lo && index < variable.valid_hi;
      }
      Entry entry = list.entries[i];
      if (are_rows && valid && written) {
        for (size_t l = 0; l < nest_.lookups.size() && valid && written; ++l) {
          if (!context_.looks_up[l]) continue;
          const int64_t offset = nest_.lookups[l].at(position_.lookup_index[l] + list.looked_up[l][i]);
          if (offset == kHole) {
            valid = false;
          } else if (offset == kSkip) {
            written = false;
          } else {
            entry.source += offset * context_.element_bytes;
          }
        }
      }
      entry.has_source = valid;
      if (written) kept.push_back(entry);
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
      panel.leaf = context_.has_nibbles ? context_.leaves.of_nibble_runs() : context_.leaves.of_runs();
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
    panel.leaf =
        context_.has_nibbles ? context_.leaves.of_nibbles(panel.shape) : context_.leaves.of(panel.shape);
    state.panels.push_back(panel);
  }

  const TileContext& context_;
  const LoopNest& nest_;
  const Tiling& tiling_;
  const TilePosition& position_;
};

}  // namespace

TileContext::TileContext(const LoopNest& nest_of, const Tiling& tiling_of, int element_bits,
                         const Leaves& table)
    : nest(nest_of),
      tiling(tiling_of),
      element_bytes(offsets_of_element(element_bits)),
      has_nibbles(element_bits < 8),
      leaves(table),
      reach(nest.variables.size(), 0),
      looks_up(nest.lookups.size(), false) {
  for (const auto* list : {&tiling.rows, &tiling.columns}) {
    for (const TileLoop& loop : *list) {
      if (loop.variable != kNone) reach[loop.variable] += (loop.count - 1) * loop.weight;
      if (loop.lookup != kNone) looks_up[loop.lookup] = true;
    }
  }
}

int64_t count_of_last(const std::vector<TileLoop>& loops, int64_t block) {
  if (loops.empty()) return 1;
  const TileLoop& last = loops.back();
  if (last.whole_count == 0) return last.count;
  return std::min(last.count, last.whole_count - block * last.count);
}

StateKey key_of(const TileContext& context, const TilePosition& position, bool in_hole) {
  StateKey key;
  key.add(in_hole);
  key.add(count_of_last(context.tiling.rows, position.row_block));
  key.add(count_of_last(context.tiling.columns, position.column_block));
  for (size_t v = 0; v < context.nest.variables.size(); ++v) {
    const Variable& variable = context.nest.variables[v];
    for (int64_t bound : {variable.write_lo, variable.write_hi, variable.valid_lo, variable.valid_hi}) {
      key.add(std::clamp<int64_t>(bound - position.index[v], 0, context.reach[v] + 1));
    }
  }
  for (size_t l = 0; l < context.nest.lookups.size(); ++l) {
    if (context.looks_up[l]) key.add(position.lookup_index[l]);
  }
  return key;
}

TileState build_state(const TileContext& context, const TilePosition& position, bool in_hole) {
  TileState state;
  state.key = key_of(context, position, in_hole);
  StateBuilder(context, position).build(state, in_hole);
  return state;
}

}  // namespace tilework
