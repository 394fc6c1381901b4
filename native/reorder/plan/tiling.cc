#include "reorder/plan/tiling.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "cpu/cache.h"
#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "policy/tile_costs.h"

namespace tilework {
namespace {

enum class Owner : uint8_t { kNobody, kUnit, kRows, kColumns };

struct Loop {
  TileLoop loop;
  Owner owner = Owner::kNobody;
};

class Tiler {
 public:
  Tiler(const LoopNest& nest, int64_t element_bytes, int64_t row_bytes, int64_t column_bytes,
        bool columns_first)
      : variables_(nest.variables),
        lookups_(nest.lookups),
        row_bytes_(row_bytes),
        column_bytes_(column_bytes),
        columns_first_(columns_first) {
    tiling_.unit_bytes = element_bytes;
    for (const Node& node : nest.nodes) {
      loops_.push_back(
          {{node.count, node.source_stride * element_bytes, node.destination_stride * element_bytes,
            node.variable, node.weight, node.lookup, node.lookup_stride, 0}});
    }
  }

  Tiling run() {
    take_unit();
    tiling_.column_step = tiling_.unit_bytes;
    row_bytes_ = at_least(row_bytes_, kFewestUnits.times(tiling_.unit_bytes));
    column_bytes_ = at_least(column_bytes_, kFewestUnits.times(tiling_.unit_bytes));
    if (tiling_.unit_bytes < kCopiedUnitBytes) grow_lists();
    add_outer_loops();
    return std::move(tiling_);
  }

 private:
  // The next loop of a chain that has `bytes` so far: contiguous behind them on one side.
  template <class Stride>
  Loop* loop_at(int64_t bytes, Stride stride) {
    for (Loop& each : loops_) {
      if (std::abs(each.loop.*stride) == bytes && each.loop.count > 1) return &each;
    }
    return nullptr;
  }

  // Both chains begin with the same loops: what these move together is one unit.
  void take_unit() {
    for (;;) {
      const int64_t bytes = tiling_.unit_bytes;
      Loop* loop = loop_at(bytes, &TileLoop::destination_stride);
      if (loop == nullptr || loop->owner != Owner::kNobody || loop->loop.source_stride != bytes ||
          loop->loop.variable != kNone || loop->loop.lookup != kNone) {
        return;
      }
      loop->owner = Owner::kUnit;
      tiling_.unit_bytes *= loop->loop.count;
    }
  }

  struct Chain {
    std::vector<TileLoop>& list;
    int64_t TileLoop::*stride;
    Owner owner;
    int64_t wanted;
    int64_t& direct;
    // Contiguous bytes of the chain, loops of the other list included.
    int64_t reach;
    // Bytes of the list alone.
    int64_t bytes;
    bool ended = false;
  };

  // A loop that is contiguous on both sides, but not all of it has a source, or is written.
  Loop* guarded_run(int64_t unit) {
    Loop* loop = loop_at(unit, &TileLoop::destination_stride);
    const bool is_run = loop != nullptr && loop->owner == Owner::kNobody &&
                        loop->loop.source_stride == unit && loop->loop.lookup == kNone;
    return is_run ? loop : nullptr;
  }

  // The loop that continues short columns behind a gap of a few units, which are read and dropped.
  Loop* columns_after_gap(const Chain& columns) {
    if (columns.direct >= kRegisterBytes || tiling_.column_step != tiling_.unit_bytes) return nullptr;
    for (Loop& each : loops_) {
      const int64_t gap = each.loop.source_stride - columns.reach;
      if (each.owner == Owner::kNobody && each.loop.lookup == kNone && gap > 0 && gap <= kMaxGapBytes &&
          gap % tiling_.unit_bytes == 0) {
        tiling_.has_column_gaps = true;
        return &each;
      }
    }
    return nullptr;
  }

  // The loop with the shortest step in the source, if no loop is contiguous there.
  Loop* sparse_columns() {
    Loop* best = nullptr;
    for (Loop& each : loops_) {
      const int64_t step = each.loop.source_stride;
      const bool fits = each.owner == Owner::kNobody && each.loop.lookup == kNone &&
                        step > tiling_.unit_bytes && step <= kMaxSparseStep &&
                        step % tiling_.unit_bytes == 0 && each.loop.count >= kFewestSparseColumns;
      if (fits && (best == nullptr || step < best->loop.source_stride)) best = &each;
    }
    if (best != nullptr) tiling_.column_step = best->loop.source_stride;
    return best;
  }

  void grow_lists() {
    const int64_t unit = tiling_.unit_bytes;
    Chain rows{tiling_.rows, &TileLoop::destination_stride, Owner::kRows,
               row_bytes_,   tiling_.direct_row_bytes,      unit,
               unit};
    Chain columns{tiling_.columns,
                  &TileLoop::source_stride,
                  Owner::kColumns,
                  column_bytes_,
                  tiling_.direct_column_bytes,
                  unit,
                  unit};
    rows.direct = columns.direct = unit;
    if (Loop* run = guarded_run(unit)) {
      tiling_.has_guarded_run = true;
      take(rows, *run);
      for (Loop* next = run; rows.bytes < kMaxListedBytes;) {
        next = loop_at(rows.reach, &TileLoop::destination_stride);
        if (next == nullptr || next->owner != Owner::kNobody || next->loop.variable != run->loop.variable ||
            next->loop.lookup != kNone) {
          break;
        }
        take(rows, *next);
      }
      rows.ended = columns.ended = true;
    }
    while (!rows.ended || !columns.ended) {
      if (!is_first(columns, rows)) grow(rows);
      grow(columns);
    }
  }

  // Whether `columns` take the next loop before `rows`: as long as they alone are shorter than a register.
  bool is_first(const Chain& columns, const Chain& rows) const {
    if (columns.ended || rows.ended) return rows.ended;
    return columns_first_ && columns.direct % kRegisterBytes.value != 0;
  }

  void grow(Chain& chain) {
    // A list is made once and ends with a block that is not full: the longer it is, the less both cost.
    const int64_t wanted =
        chain.list.size() > 1 ? at_least(chain.wanted, kMaxListedBytes.over(2)) : chain.wanted;
    if (chain.bytes >= wanted && !is_uneven(chain)) chain.ended = true;
    if (chain.ended) return;
    Loop* next = next_loop(chain);
    if (next == nullptr || next->owner != Owner::kNobody || !can_take(chain, next->loop)) {
      chain.ended = true;
    } else {
      take(chain, *next);
    }
  }

  Loop* next_loop(const Chain& chain) {
    Loop* next = loop_at(chain.reach, chain.stride);
    if (next != nullptr || chain.owner != Owner::kColumns) return next;
    return chain.list.empty() ? sparse_columns() : columns_after_gap(chain);
  }

  bool can_take(const Chain& chain, const TileLoop& loop) const {
    if (!can_look_up(chain, loop)) return false;
    if (loop.variable == kNone) return true;
    // A guard that rows and columns share would cut the tile unit by unit.
    const bool are_columns = chain.owner == Owner::kColumns;
    if (has_variable(are_columns ? tiling_.rows : tiling_.columns, loop.variable)) return false;
    // Columns without a source become zeros one by one.
    return !are_columns || chain.direct < kRegisterBytes;
  }

  // Only the state of a tile looks up, for its rows. Computed offsets do not repeat: each tile would have
  // another state, which takes longer to make than to move the tile unit by unit.
  bool can_look_up(const Chain& chain, const TileLoop& loop) const {
    return loop.lookup == kNone || (chain.owner == Owner::kRows && !lookups_[loop.lookup].table.empty());
  }

  // Of the next loop of a chain, all of which may stay in the tile.
  int64_t most_iterations(const Chain& chain) const {
    if (chain.list.empty()) {
      const int64_t edge = at_least(kMaxEdgeUnits.value * tiling_.unit_bytes, kMaxEdgeBytes);
      return edge / chain.bytes;
    }
    const int64_t other = chain.owner == Owner::kColumns ? bytes_of(tiling_.rows) : row_bytes_;
    const int64_t most = at_most(kMaxTileBytes.value * tiling_.unit_bytes / other, kMaxListedBytes);
    return most / chain.bytes;
  }

  // Rows of one loop that leave too much of their last register empty.
  static bool is_uneven(const Chain& chain) {
    const int64_t moved = ceil_div(chain.bytes, kBlockRowBytes.value) * kBlockRowBytes.value;
    return chain.owner == Owner::kRows && chain.list.size() == 1 && chain.bytes < kMaxEdgeBytes &&
           100 * chain.bytes < kLeastRowPercent.times(moved);
  }

  // `count`, rounded down so that each block of the chain is a whole number of cache lines, if one fits.
  static int64_t whole_lines(const Chain& chain, int64_t count) {
    const int64_t line = kLineBytes / std::gcd(chain.bytes, kLineBytes);
    return count < line ? count : count / line * line;
  }

  int64_t bytes_of(const std::vector<TileLoop>& list) const {
    int64_t bytes = tiling_.unit_bytes;
    for (const TileLoop& loop : list) bytes *= loop.count;
    return bytes;
  }

  bool has_variable(const std::vector<TileLoop>& list, int variable) const {
    return std::any_of(list.begin(), list.end(),
                       [=](const TileLoop& loop) { return loop.variable == variable; });
  }

  void take(Chain& chain, Loop& next) {
    next.owner = chain.owner;
    TileLoop loop = next.loop;
    const int64_t block = ceil_div(chain.wanted, chain.bytes);
    const int64_t most = most_iterations(chain);
    if (loop.count > std::max(block, most)) {
      loop.whole_count = next.loop.whole_count = loop.count;
      loop.count = chain.list.empty() ? block : whole_lines(chain, std::max(block, most));
      chain.ended = true;
    }
    chain.list.push_back(loop);
    if (chain.owner == Owner::kColumns && tiling_.column_step > tiling_.unit_bytes) chain.ended = true;
    chain.reach = reach_of(chain, loop);
    chain.bytes *= loop.count;
    chain.direct = chain.bytes;
  }

  // Loops with shorter steps in the source go inside, so that what shares lines and pages is moved together.
  // The destination is still written in long pieces: that many blocks of rows stay innermost.
  void put_in_source_order() {
    // A tile that is one run takes its speed from long strips of one state.
    if (tiling_.outer.empty() || tiling_.has_guarded_run) return;
    const bool looks_up = std::any_of(tiling_.outer.begin(), tiling_.outer.end(),
                                      [](const Tiling::Outer& outer) { return outer.loop.lookup != kNone; });
    if (looks_up) return;
    const auto distance = [=](const Tiling::Outer& outer) {
      return at_most(std::abs(outer.loop.source_stride), kFarStepBytes);
    };
    const auto is_farther = [&](const Tiling::Outer& a, const Tiling::Outer& b) {
      return distance(a) > distance(b);
    };
    if (std::is_sorted(tiling_.outer.begin(), tiling_.outer.end(), is_farther)) return;
    std::vector<Tiling::Outer> kept;
    Tiling::Outer& last = tiling_.outer.back();
    const int64_t piece = tiling_.direct_row_bytes;
    const bool moves_inside =
        std::any_of(tiling_.outer.begin(), tiling_.outer.end(),
                    [&](const Tiling::Outer& outer) { return is_farther(last, outer); });
    if (moves_inside && last.loop.destination_stride == piece && piece < kLongPieceBytes) {
      const int64_t inner = at_most(last.loop.count, kLongPieceBytes.over(piece));
      Tiling::Outer block = last;
      block.loop.count = inner;
      if (last.loop.count % inner == 0 || last.block_of != Tiling::Outer::BlockOf::kNone) {
        kept.push_back(block);
        last.loop.count = ceil_div(last.loop.count, inner);
        last.loop.source_stride *= inner;
        last.loop.destination_stride *= inner;
        last.loop.weight *= inner;
        last.blocks *= inner;
        if (last.loop.count == 1) tiling_.outer.pop_back();
      }
    }
    std::stable_sort(tiling_.outer.begin(), tiling_.outer.end(), is_farther);
    tiling_.outer.insert(tiling_.outer.end(), kept.begin(), kept.end());
  }

  // Contiguous bytes of a chain that ends with this loop: of a guarded one, what its guard leaves.
  int64_t reach_of(const Chain& chain, const TileLoop& loop) const {
    const int64_t stride = std::abs(loop.*chain.stride);
    const int64_t whole = stride * loop.count;
    if (loop.variable == kNone || stride % loop.weight != 0) return whole;
    const Variable& variable = variables_[static_cast<size_t>(loop.variable)];
    const bool are_rows = chain.owner == Owner::kRows;
    const int64_t lo = are_rows ? variable.write_lo : variable.valid_lo;
    const int64_t hi = are_rows ? variable.write_hi : variable.valid_hi;
    return lo == 0 ? std::min(whole, hi * (stride / loop.weight)) : whole;
  }

  void add_outer_loops() {
    for (const Loop& each : loops_) {
      if (each.owner == Owner::kNobody) {
        tiling_.outer.push_back({each.loop});
      } else if (each.loop.whole_count != 0) {
        const bool is_row = each.owner == Owner::kRows;
        const TileLoop& block = is_row ? tiling_.rows.back() : tiling_.columns.back();
        TileLoop rest = each.loop;
        rest.count = ceil_div(each.loop.whole_count, block.count);
        rest.source_stride *= block.count;
        rest.destination_stride *= block.count;
        rest.weight *= block.count;
        rest.lookup_stride *= block.count;
        using BlockOf = Tiling::Outer::BlockOf;
        tiling_.outer.push_back({rest, is_row ? BlockOf::kRows : BlockOf::kColumns});
      }
    }
    put_in_source_order();
    int64_t span = tiling_.unit_bytes;
    for (const auto* list : {&tiling_.rows, &tiling_.columns}) {
      for (const TileLoop& loop : *list) span += (loop.count - 1) * loop.destination_stride;
    }
    for (size_t i = tiling_.outer.size(); i-- > 0;) {
      Tiling::Outer& outer = tiling_.outer[i];
      outer.span = span;
      span += (outer.loop.count - 1) * outer.loop.destination_stride;
    }
  }

  const std::vector<Variable>& variables_;
  const std::vector<Lookup>& lookups_;
  Tiling tiling_;
  std::vector<Loop> loops_;
  int64_t row_bytes_;
  int64_t column_bytes_;
  // Who takes a loop that both could.
  bool columns_first_;
};

std::string describe(const TileLoop& loop) {
  std::string text = std::to_string(loop.count);
  if (loop.whole_count != 0) text += "/" + std::to_string(loop.whole_count);
  text += " s" + (loop.lookup != kNone ? std::string("?") : std::to_string(loop.source_stride));
  text += " d" + std::to_string(loop.destination_stride);
  if (loop.variable != kNone)
    text += " v" + std::to_string(loop.variable) + "*" + std::to_string(loop.weight);
  return text;
}

}  // namespace

Tiling tiling_of(const LoopNest& nest, int64_t element_bytes, int64_t row_bytes, int64_t column_bytes) {
  Tiling rows_first = Tiler(nest, element_bytes, row_bytes, column_bytes, false).run();
  Tiling columns_first = Tiler(nest, element_bytes, row_bytes, column_bytes, true).run();
  return instructions_per_byte(columns_first) < instructions_per_byte(rows_first) ? columns_first
                                                                                  : rows_first;
}

int64_t reach_of(const Tiling& tiling) {
  int64_t reach = tiling.unit_bytes;
  for (const auto* list : {&tiling.rows, &tiling.columns}) {
    for (const TileLoop& loop : *list) reach = std::max(reach, loop.count * loop.destination_stride);
  }
  return reach;
}

std::string describe(const Tiling& tiling) {
  std::string text = "unit " + std::to_string(tiling.unit_bytes);
  text += "\nrows";
  for (const TileLoop& loop : tiling.rows) text += " [" + describe(loop) + "]";
  text += " direct " + std::to_string(tiling.direct_row_bytes) + "\ncolumns";
  for (const TileLoop& loop : tiling.columns) text += " [" + describe(loop) + "]";
  text += " direct " + std::to_string(tiling.direct_column_bytes) + "\nouter";
  for (const auto& outer : tiling.outer) text += " [" + describe(outer.loop) + "]";
  return text + "\n";
}

}  // namespace tilework
