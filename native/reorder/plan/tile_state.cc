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

  TileState build(bool hole) {
    rows_ = filter(expand(tiling_.rows, position_.row_block), tiling_.columns, hole, true);
    columns_ = filter(expand(tiling_.columns, position_.column_block), tiling_.rows, hole, false);
    state_.units = static_cast<int64_t>(rows_.size() * columns_.size());
    state_.span = span();
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const Entry& a, const Entry& b) { return a.destination < b.destination; });
    std::stable_sort(columns_.begin(), columns_.end(), [](const Entry& a, const Entry& b) {
      return std::pair(!a.has_source, a.source) < std::pair(!b.has_source, b.source);
    });
    columns_ = with_gaps(columns_);
    add_panels();
    state_.scatters_columns = scatters_columns();
    return std::move(state_);
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

  int64_t span() const {
    const auto last = [](const std::vector<Entry>& list) {
      int64_t most = 0;
      for (const Entry& entry : list) most = std::max(most, entry.destination);
      return most;
    };
    return last(rows_) + last(columns_) + tiling_.unit_bytes;
  }

  bool scatters_columns() const {
    return state_.units * tiling_.unit_bytes == state_.span &&
           std::none_of(state_.panels.begin(), state_.panels.end(),
                        [](const PanelMove& move) { return move.panel.column_at == nullptr; });
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
      if (are_rows && valid && written) look_up(list, i, entry, valid, written);
      entry.has_source = valid;
      if (written) kept.push_back(entry);
    }
    return kept;
  }

  // Adds the offsets of the lookups that rows advance.
  void look_up(const EdgeList& rows, size_t i, Entry& entry, bool& valid, bool& written) const {
    for (size_t l = 0; l < nest_.lookups.size() && valid && written; ++l) {
      if (!context_.looks_up[l]) continue;
      const int64_t offset = nest_.lookups[l].at(position_.lookup_index[l] + rows.looked_up[l][i]);
      valid = offset != kHole;
      written = offset != kSkip;
      if (valid && written) entry.source += offset * context_.element_bytes;
    }
  }

  // Entries [first, last) follow each other on their own side.
  struct Run {
    size_t first;
    size_t last;
    int64_t size() const { return static_cast<int64_t>(last - first); }
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

  void add_panels() {
    const std::vector<Run> rows = runs_of(rows_, &Entry::destination, tiling_.unit_bytes, true);
    const std::vector<Run> columns = runs_of(columns_, &Entry::source, tiling_.column_step, false);
    for (const Run& column : columns) {
      for (const Run& row : rows) {
        if (columns_[column.first].has_source) {
          add_rows_with_zeros(row, column);
        } else {
          add_zero_columns(column, rows_[row.first].destination, row.size());
        }
      }
    }
  }

  // The distance of all neighbours, if it is the same.
  static bool is_even(const std::vector<Entry>& list, const Run& run, int64_t Entry::*other,
                      int64_t& stride) {
    stride = run.last - run.first > 1 ? list[run.first + 1].*other - list[run.first].*other : 0;
    for (size_t i = run.first + 1; i < run.last; ++i) {
      if (list[i].*other - list[i - 1].*other != stride) return false;
    }
    return true;
  }

  // Rows without a source before the first one with a source become zeros; those behind the last one belong
  // to the panel.
  void add_rows_with_zeros(const Run& row, const Run& column) {
    Run valid = row;
    while (valid.last > row.first && !rows_[valid.last - 1].has_source) --valid.last;
    while (valid.first < valid.last && !rows_[valid.first].has_source) ++valid.first;
    if (valid.size() == 0) valid.first = row.last;
    add_zero_columns(column, rows_[row.first].destination, static_cast<int64_t>(valid.first - row.first));
    if (valid.first >= valid.last) return;
    const auto zero_rows = static_cast<int64_t>(row.last - valid.last);
    const bool is_run =
        valid.size() > 1 && rows_[valid.first + 1].source == rows_[valid.first].source + tiling_.unit_bytes;
    if (column.size() == 1 && (is_run || tiling_.has_guarded_run)) {
      add_runs(valid, zero_rows, columns_[column.first]);
    } else {
      add_panel(valid, zero_rows, column);
    }
  }

  void add_zero_columns(const Run& column, int64_t row, int64_t units) {
    if (units == 0) return;
    for (size_t c = column.first; c < column.last; ++c) {
      if (columns_[c].destination != kDropped)
        add_zeros(columns_[c].destination + row, units * tiling_.unit_bytes);
    }
  }

  void add_zeros(int64_t destination, int64_t bytes) {
    auto& zeros = state_.zeros;
    if (!zeros.empty() && zeros.back().destination + zeros.back().bytes == destination) {
      zeros.back().bytes += bytes;
    } else {
      zeros.push_back({destination, bytes});
    }
  }

  struct SourceRun {
    int64_t source;
    int64_t destination;
    int64_t bytes;
  };

  // Runs that the source keeps together. Rows without a source become zeros.
  std::vector<SourceRun> source_runs(const Run& row, const Entry& column) {
    const int64_t unit = tiling_.unit_bytes;
    std::vector<SourceRun> runs;
    for (size_t r = row.first; r < row.last; ++r) {
      const int64_t destination = rows_[r].destination + column.destination;
      if (!rows_[r].has_source) {
        add_zeros(destination, unit);
      } else if (!runs.empty() && rows_[r].source == runs.back().source + runs.back().bytes &&
                 destination == runs.back().destination + runs.back().bytes) {
        runs.back().bytes += unit;
      } else {
        runs.push_back({rows_[r].source, destination, unit});
      }
    }
    return runs;
  }

  // The rows of a tile of one column.
  void add_runs(const Run& row, int64_t zero_rows, const Entry& column) {
    const std::vector<SourceRun> runs = source_runs(row, column);
    const int64_t zero_bytes = zero_rows * tiling_.unit_bytes;
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
      Panel panel{.unit_bytes = bytes,
                  .column_step = bytes,
                  .rows = static_cast<int64_t>(last - first),
                  .columns = 1,
                  .row_stride = stride,
                  .source_offset = runs[first].source + column.source,
                  .destination_offset = runs[first].destination};
      if (goes_on(last) && runs[last].bytes < bytes) panel.rest_bytes = runs[last++].bytes;
      if (runs.size() == 1) panel.zero_bytes = zero_bytes;
      const Leaves& leaves = context_.leaves;
      state_.panels.push_back({panel, leaves.of_runs(context_.has_nibbles)});
      first = last;
    }
    if (zero_rows > 0 && runs.size() > 1)
      add_zeros(rows_[row.last - 1].destination + tiling_.unit_bytes + column.destination, zero_bytes);
  }

  void add_panel(const Run& row, int64_t zero_rows, const Run& column) {
    const Entry& first_row = rows_[row.first];
    const Entry& first_column = columns_[column.first];
    Panel panel{.unit_bytes = tiling_.unit_bytes,
                .column_step = tiling_.column_step,
                .rows = row.size() + zero_rows,
                .zero_rows = zero_rows,
                .holes = zero_rows,
                .columns = column.size(),
                .source_offset = first_row.source + first_column.source,
                .destination_offset = first_row.destination + first_column.destination};
    for (size_t r = row.first; r < row.last; ++r) panel.holes += !rows_[r].has_source;
    for (size_t c = column.first; c < column.last; ++c) panel.dropped += columns_[c].destination == kDropped;
    const bool has_even_rows = is_even(rows_, row, &Entry::source, panel.row_stride);
    if (!has_even_rows || panel.holes > zero_rows) panel.row_at = list_rows(row, zero_rows);
    const bool has_even_columns =
        panel.dropped == 0 && is_even(columns_, column, &Entry::destination, panel.column_stride);
    if (!has_even_columns) panel.column_at = list_columns(column);
    const Leaves& leaves = context_.leaves;
    state_.panels.push_back({panel, leaves.of(panel, context_.has_nibbles)});
  }

  const int64_t* list_rows(const Run& row, int64_t zero_rows) {
    std::vector<int64_t> list;
    for (size_t r = row.first; r < row.last; ++r)
      list.push_back(rows_[r].has_source ? rows_[r].source - rows_[row.first].source : kNoSource);
    list.insert(list.end(), static_cast<size_t>(zero_rows), kNoSource);
    return state_.lists.emplace_back(std::move(list)).data();
  }

  const int64_t* list_columns(const Run& column) {
    std::vector<int64_t> list;
    const int64_t first = columns_[column.first].destination;
    for (size_t c = column.first; c < column.last; ++c) {
      const int64_t at = columns_[c].destination;
      list.push_back(at == kDropped ? kDropped : at - first);
    }
    return state_.lists.emplace_back(std::move(list)).data();
  }

  const TileContext& context_;
  const LoopNest& nest_;
  const Tiling& tiling_;
  const TilePosition& position_;
  TileState state_;
  std::vector<Entry> rows_;
  // With those that lie in gaps of the source.
  std::vector<Entry> columns_;
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
  TileState state = StateBuilder(context, position).build(in_hole);
  state.key = key_of(context, position, in_hole);
  return state;
}

}  // namespace tilework
