#include "opencl/tile_text.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "opencl/kernel_text.h"

namespace tilework::cl {
namespace {

// Shorter loops leave most of a tile empty; words are made one by one then.
constexpr int64_t kLeastPasses = 8;

// The loop that is contiguous in the source; absent where that is also the innermost one.
std::optional<size_t> column_level(const LoopNest& nest) {
  for (size_t i = nest.nodes.size() - 1; i-- > 0;) {
    if (nest.nodes[i].source_stride == 1) return i;
  }
  return std::nullopt;
}

struct TileShape {
  int64_t rows;
  int64_t columns;
};

// Squares of 128 bytes each way where both loops are long; where one is short, the other takes its room.
TileShape tile_shape(const DeviceMoves& moves, int64_t rows, int64_t columns) {
  const int64_t bytes = std::max(moves.source_bits, moves.destination_bits) / 8;
  const int64_t side = bytes <= 2 ? 64 : bytes <= 4 ? 32 : 16;
  const auto ceiled = [](int64_t count) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(count, 1 << 20))));
  };
  const int64_t height = std::min(ceiled(rows), std::max(side, side * side / ceiled(columns)));
  return {height, std::min(ceiled(columns), side * side / height)};
}

std::string number(int64_t value) { return std::to_string(value); }

std::string constant(const char* name, int64_t value) {
  return std::string("#define ") + name + " " + number(value) + "\n";
}

// "((v0) >= 0 && (v0) < 19 && ...)" with the sums of each variable.
std::string inside(const std::vector<std::string>& sums, const LoopNest& nest, bool is_valid) {
  std::string text = "(1";
  for (size_t i = 0; i < nest.variables.size(); ++i) {
    const Variable& variable = nest.variables[i];
    const int64_t lo = is_valid ? variable.valid_lo : variable.write_lo;
    const int64_t hi = is_valid ? variable.valid_hi : variable.write_hi;
    text += " && (" + sums[i] + ") >= " + number(lo) + " && (" + sums[i] + ") < " + number(hi);
  }
  return text + ")";
}

struct TileLoops {
  const LoopNest& nest;
  size_t column;
  TileShape shape;
  size_t row() const { return nest.nodes.size() - 1; }
};

// Slots from the first to the last of one pass of a loop.
int64_t span_of(const LoopNest& nest, size_t level) {
  int64_t span = 1;
  for (size_t i = level + 1; i < nest.nodes.size(); ++i) {
    span += (nest.nodes[i].count - 1) * nest.nodes[i].destination_stride;
  }
  return span;
}

// Declares p0, p1, ... : the pass of every loop with which the group's tile begins.
std::string passes_text(const TileLoops& loops, KernelText& result) {
  std::string text = "  INDEX group = (INDEX)get_group_id(0);\n";
  int64_t groups = 1;
  const auto add = [&](size_t level, int64_t step, bool is_last) {
    const int64_t count = (loops.nest.nodes[level].count + step - 1) / step;
    const std::string pass = is_last ? "(group + (INDEX)first_pass)" : "group % " + number(count);
    text +=
        "  const INDEX p" + number(static_cast<int64_t>(level)) + " = " + pass + " * " + number(step) + ";\n";
    if (is_last) {
      result.passes = count;
      result.pass_stride = loops.nest.nodes[level].destination_stride * step;
      result.pass_span = span_of(loops.nest, level) + result.pass_stride;
      return;
    }
    text += "  group /= " + number(count) + ";\n";
    groups *= count;
  };
  add(loops.row(), loops.shape.rows, false);
  // Tiles that go on in the source come one after the other.
  if (loops.column != 0) add(loops.column, loops.shape.columns, false);
  for (size_t level = loops.row(); level-- > 1;) {
    if (level != loops.column) add(level, 1, false);
  }
  add(0, loops.column == 0 ? loops.shape.columns : 1, true);
  result.groups_per_pass = groups;
  return text;
}

// base + p0 * stride + ..., for one of a loop's factors.
template <class Factor>
std::string sum_text(const LoopNest& nest, int64_t base, Factor factor) {
  std::string text = number(base);
  for (size_t i = 0; i < nest.nodes.size(); ++i) {
    const int64_t by = factor(nest.nodes[i]);
    if (by != 0) text += " + (OFFSET)p" + number(static_cast<int64_t>(i)) + " * " + number(by);
  }
  return text;
}

// Declares v0, v1, ..., and gives "v0 + row * 4 + column * 1", ...
std::vector<std::string> variables_text(const TileLoops& loops, std::string& text) {
  std::vector<std::string> sums;
  for (size_t i = 0; i < loops.nest.variables.size(); ++i) {
    const int of = static_cast<int>(i);
    const auto weight = [of](const Node& node) { return node.variable == of ? node.weight : 0; };
    const std::string name = "v" + number(of);
    text += "  const OFFSET " + name + " = " + sum_text(loops.nest, 0, weight) + ";\n";
    sums.push_back(name + " + (OFFSET)row * " + number(weight(loops.nest.nodes[loops.row()])) +
                   " + (OFFSET)column * " + number(weight(loops.nest.nodes[loops.column])));
  }
  return sums;
}

constexpr const char* kTileHead = R"cl(
#define PITCH (COLUMNS + 1)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void reorder(__global const SOURCE* restrict source, __global ELEMENT* restrict destination,
             __global const long* restrict table, const ulong first, const ulong last,
             const long window_first, const long window_last, const uint adds, const ulong first_pass) {
  __local ELEMENT tile[ROWS * PITCH];
)cl";

constexpr const char* kTileBody = R"cl(
  const INDEX rows = min((INDEX)ROWS, ROW_COUNT - ROW_PASS);
  const INDEX columns = min((INDEX)COLUMNS, COLUMN_COUNT - COLUMN_PASS);
  for (uint i = get_local_id(0); i < ROWS * COLUMNS; i += GROUP) {
    const uint row = i / COLUMNS;
    const uint column = i % COLUMNS;
    ELEMENT element = 0;
    if (row < rows && column < columns && IS_VALID) {
      const long from = from_tile + (OFFSET)row * SOURCE_ROW + column;
      if (from >= window_first && from < window_last) {
        const INDEX slot = (INDEX)(to_tile + row + (OFFSET)column * DESTINATION_COLUMN);
        element = (ELEMENT)CONVERT(LOAD(source, from - window_first), slot);
      }
    }
    tile[row * PITCH + column] = element;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint i = get_local_id(0); i < ROWS * COLUMNS; i += GROUP) {
    const uint row = i % ROWS;
    const uint column = i / ROWS;
    if (row >= rows || column >= columns || !IS_WRITTEN) continue;
    const ulong to = (ulong)(to_tile + row + (OFFSET)column * DESTINATION_COLUMN);
    if (to < first || to >= last) continue;
    const ELEMENT element = tile[row * PITCH + column];
    destination[to - first] = adds ? destination[to - first] | element : element;
  }
}
)cl";

}  // namespace

bool can_tile(const DeviceMoves& moves) {
  if (moves.nests.size() != 1 || moves.source_bits < 8 || moves.destination_bits < 8) return false;
  const LoopNest& nest = moves.nests.front();
  const Node& row = nest.nodes.back();
  if (nest.all_zero || !nest.lookups.empty() || row.destination_stride != 1 || row.source_stride == 1)
    return false;
  const std::optional<size_t> column = column_level(nest);
  return column && row.count >= kLeastPasses && nest.nodes[*column].count >= kLeastPasses;
}

std::string tile_text(const DeviceMoves& moves, KernelText& result) {
  const LoopNest& nest = moves.nests.front();
  const size_t column = *column_level(nest);
  const Node& row_loop = nest.nodes.back();
  const Node& column_loop = nest.nodes[column];
  const TileLoops loops{nest, column, tile_shape(moves, row_loop.count, column_loop.count)};
  result.destination_base = nest.destination_base;
  std::string text = constant("ROWS", loops.shape.rows) + constant("COLUMNS", loops.shape.columns) +
                     constant("GROUP", kTileGroup) + constant("ROW_COUNT", row_loop.count) +
                     constant("COLUMN_COUNT", column_loop.count) +
                     constant("SOURCE_ROW", row_loop.source_stride) +
                     constant("DESTINATION_COLUMN", column_loop.destination_stride);
  text += "#define ROW_PASS p" + number(static_cast<int64_t>(loops.row())) + "\n#define COLUMN_PASS p" +
          number(static_cast<int64_t>(column)) + "\n" + kTileHead + passes_text(loops, result);
  const auto source = [](const Node& node) { return node.source_stride; };
  const auto destination = [](const Node& node) { return node.destination_stride; };
  text += "  const long from_tile = " + sum_text(nest, nest.source_base, source) + ";\n";
  text += "  const long to_tile = " + sum_text(nest, nest.destination_base, destination) + ";\n";
  const std::vector<std::string> sums = variables_text(loops, text);
  text +=
      "#define IS_VALID " + inside(sums, nest, true) + "\n#define IS_WRITTEN " + inside(sums, nest, false);
  return text + kTileBody;
}

}  // namespace tilework::cl
