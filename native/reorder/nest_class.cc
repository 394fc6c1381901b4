#include "reorder/nest_class.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "layout/loop_nest.h"
#include "reorder/cache_sets.h"

namespace tilework {
namespace {

// A loop of a rectangle has fixed strides, and its tail does not depend on deeper loops.
bool is_plain(const Node& node) { return node.lookup == kNone && node.below == 0; }

// Lookups between the two loops would have to be made for each rectangle; boxes have them in tables.
bool looks_up_from(const LoopNest& nest, size_t level) {
  return std::any_of(nest.nodes.begin() + static_cast<std::ptrdiff_t>(level), nest.nodes.end(),
                     [](const Node& node) { return node.lookup != kNone; });
}

// The innermost loop beside the last that steps so through the source.
std::optional<size_t> level_of_step(const LoopNest& nest, int64_t source_stride) {
  for (size_t i = nest.nodes.size() - 1; i-- > 0;) {
    if (nest.nodes[i].source_stride == source_stride && is_plain(nest.nodes[i])) return i;
  }
  return std::nullopt;
}

// The loop that makes a rectangle with runs: one of enough passes, and of these the one whose runs are
// nearest to each other in the source, as reads wait for memory and writes do not.
std::optional<size_t> level_beside_runs(const LoopNest& nest) {
  constexpr int64_t kManyPasses = 8;
  std::optional<size_t> best;
  const auto rank = [&nest](size_t level) {
    const Node& node = nest.nodes[level];
    const int64_t few = std::max<int64_t>(kManyPasses - node.count, 0);
    return std::pair(few, std::abs(node.source_stride));
  };
  for (size_t i = nest.nodes.size() - 1; i-- > 0;) {
    if (nest.nodes[i].lookup != kNone) break;
    if (is_plain(nest.nodes[i]) && (!best || rank(i) < rank(*best))) best = i;
  }
  return best;
}

// Whether blocks of registers hold so many rows or columns without a rest.
bool is_whole(int64_t count) { return count % 8 == 0; }

// Elements of a side from which on it is moved in one piece anyway, without the way through a buffer that a
// chain takes.
constexpr int64_t kLongSide = 64;

InnerLoops::Chain chain_of(const LoopNest& nest, size_t column_level) {
  using enum InnerLoops::Chain;
  if (column_level + 2 >= nest.nodes.size()) return kNone;
  const Node& column = nest.nodes[column_level];
  const Node& between = nest.nodes[nest.nodes.size() - 2];
  const Node& row = nest.nodes.back();
  const bool is_free =
      is_plain(between) && (between.variable == tilework::kNone || between.variable != row.variable);
  if (!is_free) return kNone;
  const bool columns = between.source_stride == column.count && column.count < kLongSide;
  const bool rows = between.destination_stride == row.count && row.count < kLongSide;
  // What is no multiple of a block's extent is best a part of the longer side.
  if (columns && rows && is_whole(row.count) != is_whole(column.count)) {
    return is_whole(row.count) ? kColumns : kRows;
  }
  // The other side is copied in runs, of as many elements as it has.
  if (columns && (!rows || 4 * row.count >= 3 * column.count)) return kColumns;
  if (rows && row.source_stride == column.count && column.count < kLongSide) return kInterleaved;
  return rows ? kRows : kNone;
}

// Where the innermost loop stands beside a short loop that is contiguous in the source, the loop outside of
// them, if any, that goes on where that one ends.
std::optional<size_t> level_across(const LoopNest& nest, size_t source_run) {
  const Node& between = nest.nodes[source_run];
  const Node& row = nest.nodes.back();
  const bool is_free = between.variable == tilework::kNone || between.variable != row.variable;
  if (source_run + 2 != nest.nodes.size() || !is_free || row.count >= kLongSide) return std::nullopt;
  for (size_t i = source_run; i-- > 0;) {
    const Node& node = nest.nodes[i];
    if (node.source_stride == between.count && is_plain(node) &&
        node.count * between.count <= row.source_stride)
      return i;
  }
  return std::nullopt;
}

// Rectangles of so few elements cost more to come to than boxes take by table, where there are many of them:
// a box is listed first.
bool is_small(const LoopNest& nest, size_t column_level) {
  constexpr int64_t kFewRows = 4;
  constexpr int64_t kFewColumns = 16;
  constexpr double kManyRectangles = 256;
  const int64_t rows = nest.nodes.back().count;
  const int64_t columns = nest.nodes[column_level].count;
  if (std::min(rows, columns) > kFewRows || std::max(rows, columns) > kFewColumns) return false;
  double rectangles = 1;
  for (const Node& node : nest.nodes) rectangles *= static_cast<double>(node.count);
  return rectangles >= kManyRectangles * static_cast<double>(rows * columns);
}

int64_t loops_of(const LoopNest& nest, int variable) {
  return std::count_if(nest.nodes.begin(), nest.nodes.end(),
                       [=](const Node& node) { return node.variable == variable; });
}

// Few columns around short rows, which the loops between go on with in the destination.
std::optional<size_t> pixel_level_of(const LoopNest& nest, size_t column_level) {
  constexpr int64_t kFewChannels = 4;
  constexpr int64_t kFewestPixels = 16;
  constexpr int64_t kShort = 1024;
  const Node& channel = nest.nodes[column_level];
  const Node& row = nest.nodes.back();
  const bool is_next = column_level + 2 == nest.nodes.size();
  if (!is_next || row.variable != kNone || row.count > kShort) return std::nullopt;
  // Of channels that several loops count some are missing almost everywhere.
  if (channel.variable != kNone && loops_of(nest, channel.variable) > 1) return std::nullopt;
  if (channel.destination_stride != row.count) return std::nullopt;
  for (size_t i = column_level; i-- > 0;) {
    const Node& pixel = nest.nodes[i];
    const bool is_pixel = pixel.source_stride >= channel.count && pixel.source_stride <= kFewChannels;
    if (is_plain(pixel) && is_pixel && pixel.count >= kFewestPixels && !looks_up_from(nest, i)) return i;
  }
  return std::nullopt;
}

// Runs beside which others stand in the destination, within the loop at `column_level`.
InnerLoops::Chain chain_of_runs(const LoopNest& nest, std::optional<size_t> column_level) {
  using enum InnerLoops::Chain;
  if (!column_level || *column_level + 2 >= nest.nodes.size()) return kNone;
  const Node& between = nest.nodes[nest.nodes.size() - 2];
  const Node& run = nest.nodes.back();
  const bool goes_on = between.destination_stride == run.count && run.count < kLongSide;
  return goes_on && is_plain(between) && run.variable == tilework::kNone ? kRuns : kNone;
}

// Whether there are a few such runs, and behind them one that is not complete, of which columns side by side
// are made: blocks of 16 channels, say, to pixels of 19.
bool are_runs_with_rest(const LoopNest& nest, size_t column_level) {
  constexpr int64_t kFewRuns = 8;
  if (column_level + 3 != nest.nodes.size()) return false;
  const Node& column = nest.nodes[column_level];
  const Node& between = nest.nodes[column_level + 1];
  const Node& run = nest.nodes.back();
  return between.variable != tilework::kNone && between.variable == run.variable &&
         between.lookup == tilework::kNone && between.destination_stride == run.count &&
         between.count <= kFewRuns && column.destination_stride < between.count * run.count &&
         column.destination_stride > run.count;
}

// The loop in which runs follow each other in the source: it uses up the lines that they share.
std::optional<size_t> level_of_next_run(const LoopNest& nest) {
  for (size_t i = nest.nodes.size() - 1; i-- > 0;) {
    if (nest.nodes[i].lookup != kNone) break;
    if (is_plain(nest.nodes[i]) && nest.nodes[i].source_stride == nest.nodes.back().count) return i;
  }
  return std::nullopt;
}

// Elements of the destination that a rectangle writes in one piece.
int64_t piece_of(const LoopNest& nest, size_t column_level) {
  int64_t piece = nest.nodes.back().count;
  for (size_t i = nest.nodes.size() - 1; i-- > column_level && nest.nodes[i].destination_stride == piece;) {
    piece *= nest.nodes[i].count;
  }
  return piece;
}

// Loops inside of the column's that step farther through the source than one around it, where the others
// inside write pieces that are long enough without them.
size_t loops_to_hoist(const LoopNest& nest, const InnerLoops& inner, int64_t element_bytes) {
  constexpr int64_t kLongPieceBytes = 256;
  const std::vector<Node>& nodes = nest.nodes;
  const auto column = nodes.begin() + static_cast<std::ptrdiff_t>(*inner.column_level);
  auto kept = nodes.end() - 1;
  int64_t piece = kept->count;
  while (kept - 1 > column && piece * element_bytes < kLongPieceBytes &&
         (kept - 1)->destination_stride == piece) {
    piece *= (--kept)->count;
  }
  if (piece * element_bytes < kLongPieceBytes) return 0;
  const auto first_kept = std::find_if(column + 1, kept, [&](const Node& between) {
    return std::none_of(nodes.begin(), column, [&](const Node& outer) {
      return std::abs(outer.source_stride) < std::abs(between.source_stride);
    });
  });
  return static_cast<size_t>(first_kept - column - 1);
}

bool is_multiple(int64_t value, int64_t of) { return value % of == 0; }

bool crowds_set(int64_t stride, int64_t element_bytes) {
  return is_multiple(stride * element_bytes, kSetBytes);
}

// Bytes of a line for which it does not pay to come back: pieces of fewer, `stride` bytes apart, read or
// write lines again and again. Some steps meet in one set of a first-level cache, or in more pages than a
// processor knows the places of; others fill a few sets, from where lines only go as far as the second level.
int64_t least_piece(int64_t stride, int64_t count, Stores stores) {
  constexpr int64_t kPageBytes = 4096;
  constexpr int64_t kPages = 64;
  stride = std::abs(stride);
  if (stride < kLineBytes) return 0;
  if (is_multiple(stride, kSetBytes)) return kLineBytes;
  if (stores == Stores::kStreaming) return 0;
  if (stride > kPageBytes && count > kPages) return kLineBytes;
  return crowds_sets(stride, count) ? kLineBytes / 2 : 0;
}

// Columns that lie backwards in the source: pixels whose channels are reversed. Of these there are no chains.
InnerLoops reversed_tiles(const LoopNest& nest) {
  const std::optional<size_t> level = level_of_step(nest, -1);
  if (!level || looks_up_from(nest, *level) || is_small(nest, *level)) return {};
  return {NestClass::kTiles, level};
}

}  // namespace

InnerLoops inner_loops(const LoopNest& nest) {
  const Node& inner = nest.nodes.back();
  if (nest.all_zero || inner.destination_stride != 1 || !is_plain(inner)) return {};
  if (inner.source_stride == 1) {
    const std::optional<size_t> next = level_of_next_run(nest);
    if (chain_of_runs(nest, next) != InnerLoops::Chain::kNone) {
      return {NestClass::kRuns, next, InnerLoops::Chain::kRuns};
    }
    const std::optional<size_t> beside = level_beside_runs(nest);
    if (beside && beside == next && are_runs_with_rest(nest, *beside)) {
      return {NestClass::kRuns, beside, InnerLoops::Chain::kRuns};
    }
    return {NestClass::kRuns, beside, chain_of_runs(nest, beside)};
  }
  const std::optional<size_t> level = level_of_step(nest, 1);
  if (!level) return reversed_tiles(nest);
  if (looks_up_from(nest, *level)) return {};
  InnerLoops tiles{NestClass::kTiles, level, chain_of(nest, *level)};
  if (tiles.chain == InnerLoops::Chain::kNone) tiles.pixel_level = pixel_level_of(nest, *level);
  if (tiles.pixel_level) return tiles;
  if (const std::optional<size_t> across = level_across(nest, *level);
      across && !looks_up_from(nest, *across))
    return {NestClass::kTiles, across, InnerLoops::Chain::kColumns};
  if (tiles.chain == InnerLoops::Chain::kNone && is_small(nest, *level)) return {};
  return tiles;
}

bool wastes_lines(const LoopNest& nest, const InnerLoops& inner, int64_t element_bytes, Stores stores) {
  // The least that blocks in registers have of either side.
  constexpr int64_t kFewElements = 4;
  constexpr int64_t kSmallTile = 64;
  if (inner.nest_class != NestClass::kTiles || inner.pixel_level) return false;
  using enum InnerLoops::Chain;
  const Node& row = nest.nodes.back();
  const Node& column = nest.nodes[*inner.column_level];
  const bool is_narrow = std::min(row.count, column.count) < kFewElements;
  const int64_t least_read = least_piece(row.source_stride * element_bytes, row.count, stores);
  const int64_t least_written = least_piece(column.destination_stride * element_bytes, column.count, stores);
  if (inner.chain == kInterleaved) return is_narrow && least_written == kLineBytes;
  if (inner.chain != kNone && column.source_stride != 1) return least_read == kLineBytes;
  const int64_t between = inner.chain == kNone ? 1 : nest.nodes[nest.nodes.size() - 2].count;
  const int64_t read = column.count * (inner.chain == kColumns ? between : 1);
  const int64_t written = row.count * (inner.chain == kRows ? between : 1);
  const bool is_small = inner.chain == kNone && (is_narrow || row.count * column.count < kSmallTile);
  return is_small || read * element_bytes < least_read || written * element_bytes < least_written;
}

bool fits_lists(const LoopNest& nest, const InnerLoops& inner, int64_t element_bytes) {
  constexpr int64_t kSmallElement = 2;
  const bool is_listed =
      inner.chain == InnerLoops::Chain::kColumns || inner.chain == InnerLoops::Chain::kRows;
  if (inner.nest_class != NestClass::kTiles || !is_listed || element_bytes > kSmallElement) return false;
  return std::none_of(nest.nodes.begin() + static_cast<std::ptrdiff_t>(*inner.column_level), nest.nodes.end(),
                      [=](const Node& node) {
                        return crowds_set(node.source_stride, element_bytes) ||
                               crowds_set(node.destination_stride, element_bytes);
                      });
}

std::optional<OrderedLoops> in_source_order(const LoopNest& nest, const InnerLoops& inner,
                                            int64_t element_bytes) {
  constexpr int64_t kLongPiece = 64;
  constexpr int64_t kNear = 2048;
  if (!inner.column_level || inner.pixel_level || !nest.lookups.empty()) return std::nullopt;
  if (piece_of(nest, *inner.column_level) < kLongPiece) return std::nullopt;
  const size_t hoisted = loops_to_hoist(nest, inner, element_bytes);
  OrderedLoops ordered{nest, inner, hoisted > 0};
  const auto column = ordered.nest.nodes.begin() + static_cast<std::ptrdiff_t>(*inner.column_level);
  const auto distance = [](const Node& node) {
    const int64_t stride = std::abs(node.source_stride);
    return stride < kNear ? stride : kNear;
  };
  const auto first = ordered.nest.nodes.begin();
  const auto last = std::rotate(column, column + 1, column + 1 + static_cast<std::ptrdiff_t>(hoisted));
  const auto is_farther = [&](const Node& a, const Node& b) { return distance(a) > distance(b); };
  if (std::is_sorted(first, last, is_farther)) return std::nullopt;
  std::stable_sort(first, last, is_farther);
  *ordered.inner.column_level += hoisted;
  if (*ordered.inner.column_level + 2 >= nest.nodes.size()) ordered.inner.chain = InnerLoops::Chain::kNone;
  note_facts(ordered.nest);
  return ordered;
}

int64_t unit_elements(const LoopNest& nest, int64_t most) {
  const Node& inner = nest.nodes.back();
  const int64_t unit = inner.count;
  const bool is_unit = inner.source_stride == 1 && inner.destination_stride == 1 && is_plain(inner) &&
                       inner.variable == kNone && unit > 1 && unit <= most && (unit & (unit - 1)) == 0;
  if (!is_unit || !nest.lookups.empty() || nest.nodes.size() < 2) return 1;
  bool fits = is_multiple(nest.source_base, unit) && is_multiple(nest.destination_base, unit);
  for (size_t i = 0; i + 1 < nest.nodes.size(); ++i) {
    const Node& node = nest.nodes[i];
    fits = fits && is_multiple(node.source_stride, unit) && is_multiple(node.destination_stride, unit);
  }
  return fits ? unit : 1;
}

LoopNest over_units(const LoopNest& nest, int64_t elements) {
  LoopNest units = nest;
  units.source_base /= elements;
  units.destination_base /= elements;
  units.nodes.back().count = 1;
  for (Node& node : units.nodes) {
    node.source_stride /= elements;
    node.destination_stride /= elements;
  }
  finish_nest(units);
  return units;
}

}  // namespace tilework
