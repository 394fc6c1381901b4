#include "opencl/tile_text.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "opencl/kernel_text.h"

namespace tilework::cl {
namespace {

// Target length of contiguous runs: the cache line of most devices. Tiles with runs below kMinRunBytes do
// not pay for the way through local memory.
constexpr int64_t kRunBytes = 128;
constexpr int64_t kMinRunBytes = 16;
// Runs of this length are read well without local memory.
constexpr int64_t kWholeRunBytes = 32;
// Smaller tiles leave most of a group idle.
constexpr int64_t kWantedTileBytes = 4 << 10;
constexpr int64_t kMinTileElements = 128;
constexpr int64_t kWordBytes = 4;

// A loop with `count` iterations per tile.
struct TileLoop {
  size_t level;
  int64_t count;
};

struct Tile {
  // Innermost first: loops that are contiguous in the source, and loops that are contiguous in the
  // destination.
  std::vector<TileLoop> along_source;
  std::vector<TileLoop> along_destination;
};

template <class Stride>
std::optional<size_t> loop_with(const LoopNest& nest, int64_t wanted, Stride stride) {
  for (size_t level = nest.nodes.size(); level-- > 0;) {
    if (stride(nest.nodes[level]) == wanted && nest.nodes[level].count > 1) return level;
  }
  return std::nullopt;
}

// Loops that step contiguously through memory, up to a run of `elements`. The last loop contributes a power
// of two of its iterations, or all.
template <class Stride>
std::vector<TileLoop> run_of(const LoopNest& nest, int64_t elements, Stride stride) {
  std::vector<TileLoop> loops;
  int64_t run = 1;
  while (run < elements) {
    const std::optional<size_t> level = loop_with(nest, run, stride);
    if (!level) break;
    const int64_t all = nest.nodes[*level].count;
    const auto needed = static_cast<uint64_t>((elements + run - 1) / run);
    const int64_t count = std::min(all, static_cast<int64_t>(std::bit_ceil(needed)));
    loops.push_back({*level, count});
    run *= count;
    if (count < all) break;
  }
  return loops;
}

int64_t elements_of(const std::vector<TileLoop>& loops) {
  int64_t elements = 1;
  for (const TileLoop& loop : loops) elements *= loop.count;
  return elements;
}

TileLoop* find_loop(std::vector<TileLoop>& loops, size_t level) {
  const auto at =
      std::find_if(loops.begin(), loops.end(), [=](const TileLoop& loop) { return loop.level == level; });
  return at == loops.end() ? nullptr : &*at;
}

// A loop in both lists gets the larger count in both.
void agree(Tile& tile) {
  for (TileLoop& loop : tile.along_source) {
    TileLoop* other = find_loop(tile.along_destination, loop.level);
    if (other != nullptr) loop.count = other->count = std::max(loop.count, other->count);
  }
}

int64_t tile_elements(const Tile& tile) {
  int64_t elements = elements_of(tile.along_source);
  std::vector<TileLoop> source = tile.along_source;
  for (const TileLoop& loop : tile.along_destination) {
    if (find_loop(source, loop.level) == nullptr) elements *= loop.count;
  }
  return elements;
}

Tile tile_of(const LoopNest& nest, int64_t source_elements, int64_t destination_elements) {
  const auto source = [](const Node& node) { return node.source_stride; };
  const auto destination = [](const Node& node) { return node.destination_stride; };
  Tile tile{run_of(nest, source_elements, source), run_of(nest, destination_elements, destination)};
  agree(tile);
  return tile;
}

// Tries the target run length, then halves of it until the tile fits; none if runs become too short or if
// nothing is transposed.
std::optional<Tile> best_tile(const DeviceMoves& moves) {
  if (moves.nests.size() != 1 || moves.source_bits < 8 || moves.destination_bits < 8) return std::nullopt;
  const LoopNest& nest = moves.nests.front();
  if (nest.all_zero || !nest.lookups.empty()) return std::nullopt;
  const int64_t from = moves.source_bits / 8;
  const int64_t to = moves.destination_bits / 8;
  const int64_t widest = std::max(from, to);
  const Node& inner = nest.nodes.back();
  if (inner.source_stride == 1 && inner.count * from >= kWholeRunBytes) return std::nullopt;
  std::optional<Tile> best;
  for (int64_t bytes = kRunBytes; bytes >= kMinRunBytes; bytes /= 2) {
    const Tile tile = tile_of(nest, std::max<int64_t>(bytes / from, 1), std::max<int64_t>(bytes / to, 1));
    const int64_t elements = tile_elements(tile);
    if ((elements + elements / 4) * widest > kTileBytes) continue;
    if (elements_of(tile.along_source) * from < kMinRunBytes) return std::nullopt;
    if (elements_of(tile.along_destination) * to < kMinRunBytes) return std::nullopt;
    best = tile;
    break;
  }
  // Lengthens runs while there is room, for short loops between long ones.
  for (int64_t bytes = 2 * kRunBytes; best && tile_elements(*best) * widest < kWantedTileBytes; bytes *= 2) {
    const Tile tile = tile_of(nest, bytes / from, bytes / to);
    if (tile_elements(tile) * widest > kWantedTileBytes || bytes > kWantedTileBytes) break;
    best = tile;
  }
  if (best && tile_elements(*best) < kMinTileElements) return std::nullopt;
  return best;
}

std::string name(const char* prefix, size_t level) {
  return prefix + std::to_string(static_cast<int64_t>(level));
}

std::string constant(const char* name, int64_t value) {
  return std::string("#define ") + name + " " + std::to_string(value) + "\n";
}

// The parts of a nest that the text depends on.
struct TileText {
  const LoopNest& nest;
  Tile tile;
  int64_t columns;
  int64_t pitch;

  // Iterations of a loop per tile; 1 for loops outside the tile.
  int64_t count(size_t level) const {
    for (const auto* loops : {&tile.along_source, &tile.along_destination}) {
      for (const TileLoop& loop : *loops) {
        if (loop.level == level) return loop.count;
      }
    }
    return 1;
  }
  bool is_in_tile(size_t level) const { return count(level) > 1; }
  bool is_along_source(size_t level) const {
    return std::any_of(tile.along_source.begin(), tile.along_source.end(),
                       [=](const TileLoop& loop) { return loop.level == level; });
  }
  // Levels of the tile in the order in which a group traverses it, fastest first.
  std::vector<size_t> order(bool by_source) const {
    std::vector<size_t> levels;
    const auto add = [&](size_t level) {
      if (is_in_tile(level) && std::find(levels.begin(), levels.end(), level) == levels.end())
        levels.push_back(level);
    };
    for (const TileLoop& loop : by_source ? tile.along_source : tile.along_destination) add(loop.level);
    for (size_t level = nest.nodes.size(); level-- > 0;) add(level);
    return levels;
  }
  // Offset of an element in local memory. Columns run along the source, and every row has an odd number of
  // words, so that neither order has bank conflicts.
  int64_t local_stride(size_t level) const {
    int64_t stride = 1;
    for (const TileLoop& loop : tile.along_source) {
      if (loop.level == level) return stride;
      stride *= loop.count;
    }
    stride = pitch;
    for (size_t at = nest.nodes.size(); at-- > 0;) {
      if (!is_in_tile(at) || is_along_source(at)) continue;
      if (at == level) return stride;
      stride *= count(at);
    }
    return 0;
  }
};

int64_t pitch_of(int64_t columns, int64_t element_bytes) {
  if (element_bytes >= kWordBytes) return columns | 1;
  const int64_t per_word = kWordBytes / element_bytes;
  return ((columns + per_word - 1) / per_word | 1) * per_word;
}

// Slots spanned by one iteration of a loop.
int64_t span_of(const LoopNest& nest, size_t level) {
  int64_t span = 1;
  for (size_t i = level + 1; i < nest.nodes.size(); ++i) {
    span += (nest.nodes[i].count - 1) * nest.nodes[i].destination_stride;
  }
  return span;
}

// Declares p0, p1, ...: the first iteration of every loop in the group's tile.
std::string iterations_text(const TileText& text_of, KernelText& result) {
  const std::vector<Node>& nodes = text_of.nest.nodes;
  std::string text = "  INDEX group = (INDEX)get_group_id(0);\n";
  int64_t groups = 1;
  const auto declare = [&](size_t level, const std::string& tile) {
    text += "  const INDEX " + name("p", level) + " = " + tile + " * " +
            std::to_string(text_of.count(level)) + ";\n";
  };
  const auto tiles = [&](size_t level) {
    return (nodes[level].count + text_of.count(level) - 1) / text_of.count(level);
  };
  const auto add = [&](size_t level) {
    const int64_t count = tiles(level);
    declare(level, "group % " + std::to_string(count));
    text += "  group /= " + std::to_string(count) + ";\n";
    groups *= count;
  };
  // Consecutive tiles continue in the destination first, then in the source.
  std::vector<size_t> levels;
  for (size_t level = nodes.size(); level-- > 1;) levels.push_back(level);
  std::stable_partition(levels.begin(), levels.end(),
                        [&](size_t level) { return text_of.is_in_tile(level); });
  for (const size_t level : levels) add(level);
  declare(0, "(group + (INDEX)first_iteration)");
  result.iterations = tiles(0);
  result.iteration_stride = nodes[0].destination_stride * text_of.count(0);
  result.iteration_span = span_of(text_of.nest, 0) + result.iteration_stride;
  result.groups_per_iteration = groups;
  return text;
}

// base + p0 * factor + ...
template <class Factor>
std::string sum_text(const LoopNest& nest, const char* prefix, const std::string& base, Factor factor) {
  std::string text = base;
  for (size_t i = 0; i < nest.nodes.size(); ++i) {
    const int64_t by = factor(i);
    if (by != 0) text += " + (OFFSET)" + name(prefix, i) + " * " + std::to_string(by);
  }
  return text;
}

// Declares d0, d1, ...: the iterations within the tile of an element, given by its number in an order.
std::string digits_text(const TileText& text_of, const std::vector<size_t>& order,
                        const std::string& element) {
  std::string text = "    uint remainder = " + element + ";\n";
  for (size_t k = 0; k < order.size(); ++k) {
    const std::string count = std::to_string(text_of.count(order[k]));
    const bool is_last = k + 1 == order.size();
    text += "    const uint " + name("d", order[k]) + " = remainder" + (is_last ? "" : " % " + count) + ";\n";
    if (!is_last) text += "    remainder /= " + count + ";\n";
  }
  return text;
}

// Whether element (d0, d1, ...) lies inside the loops and the bounds of all variables.
std::string inside_text(const TileText& text_of, bool is_valid) {
  const LoopNest& nest = text_of.nest;
  std::string text = "1";
  for (size_t level = 0; level < nest.nodes.size(); ++level) {
    const int64_t count = nest.nodes[level].count;
    if (!text_of.is_in_tile(level) || count % text_of.count(level) == 0) continue;
    text += " && " + name("p", level) + " + " + name("d", level) + " < " + std::to_string(count);
  }
  for (size_t i = 0; i < nest.variables.size(); ++i) {
    const Variable& variable = nest.variables[i];
    const int64_t lo = is_valid ? variable.valid_lo : variable.write_lo;
    const int64_t hi = is_valid ? variable.valid_hi : variable.write_hi;
    const std::string value = sum_text(nest, "d", name("v", i), [&](size_t level) {
      const Node& node = nest.nodes[level];
      return text_of.is_in_tile(level) && node.variable == static_cast<int>(i) ? node.weight : 0;
    });
    text += " && (" + value + ") >= " + std::to_string(lo) + " && (" + value + ") < " + std::to_string(hi);
  }
  return text;
}

std::string variables_text(const LoopNest& nest) {
  std::string text;
  for (size_t i = 0; i < nest.variables.size(); ++i) {
    text +=
        "  const OFFSET " + name("v", i) + " = " +
        sum_text(nest, "p", "0",
                 [&](size_t level) {
                   return nest.nodes[level].variable == static_cast<int>(i) ? nest.nodes[level].weight : 0;
                 }) +
        ";\n";
  }
  return text;
}

// Distance of an element from the first element of the tile.
std::string within_text(const TileText& text_of, bool by_source) {
  return sum_text(text_of.nest, "d", "0", [&](size_t level) {
    const Node& node = text_of.nest.nodes[level];
    if (!text_of.is_in_tile(level)) return int64_t{0};
    return by_source ? node.source_stride : node.destination_stride;
  });
}

std::string local_text(const TileText& text_of) {
  std::string text = "0";
  for (size_t level = 0; level < text_of.nest.nodes.size(); ++level) {
    if (text_of.is_in_tile(level))
      text += " + " + name("d", level) + " * " + std::to_string(text_of.local_stride(level));
  }
  return text;
}

constexpr const char* kTileHead = R"cl(
__kernel void reorder(__global const SOURCE* restrict source, __global ELEMENT* restrict destination,
             __global const long* restrict table, const ulong first, const ulong last,
             const long window_first, const long window_last, const uint adds, const ulong first_iteration) {
  __local ELEMENT tile[TILE_ROOM] __attribute__((aligned(16)));
)cl";

constexpr const char* kLoad = R"cl(
    ELEMENT element = 0;
    const long from = from_tile + (FROM_WITHIN);
    if ((IS_VALID) && from >= window_first && from < window_last) {
      const INDEX slot = (INDEX)(to_tile + (TO_WITHIN));
      element = (ELEMENT)CONVERT(LOAD(source, from - window_first), slot);
    }
    tile[LOCAL] = element;
)cl";

// Loads bytes as whole words: the columns of a tile are contiguous in the source and in local memory, `i` is
// the first of PER_READ of them, and the digits of each follow. On an H200 that was 1.0 to 1.6 times as fast;
// pairs of 16-bit elements took 1.0 to 1.2 times as long.
constexpr const char* kLoadWords = R"cl(
    const long from = from_tile + (FROM_WITHIN);
    const uint local_first = LOCAL;
    const int is_whole =
        from >= window_first && from + PER_READ <= window_last && (from - window_first) % PER_READ == 0;
    const uint word = is_whole ? *(__global const uint*)(source + (from - window_first)) : 0;
#if SOURCE_BITS == ELEMENT_BITS
    uint packed = 0;
#endif
    for (uint k = 0; k < PER_READ; ++k) {
)cl";

constexpr const char* kLoadOfWord = R"cl(
      ELEMENT element = 0;
      if ((IS_VALID) && (is_whole || (from + k >= window_first && from + k < window_last))) {
        const SOURCE code =
            is_whole ? (SOURCE)(word >> (k * SOURCE_BITS)) : LOAD(source, from + k - window_first);
        const INDEX slot = (INDEX)(to_tile + (TO_WITHIN));
        element = (ELEMENT)CONVERT(code, slot);
      }
#if SOURCE_BITS == ELEMENT_BITS
      packed |= (uint)element << (k * ELEMENT_BITS);
#else
      tile[local_first + k] = element;
#endif
    }
#if SOURCE_BITS == ELEMENT_BITS
    *(__local uint*)(tile + local_first) = packed;
#endif
)cl";

constexpr const char* kLoaded = R"cl(
  }
  barrier(CLK_LOCAL_MEM_FENCE);
)cl";

constexpr const char* kStore = R"cl(
    if (!(IS_WRITTEN)) continue;
    const ulong to = (ulong)(to_tile + (TO_WITHIN));
    if (to < first || to >= last) continue;
    const ELEMENT element = tile[LOCAL];
    destination[to - first] = adds ? destination[to - first] | element : element;
  }
}
)cl";

// Stores small elements as whole words where the tile contains the whole word: `i` is the first of PER_WORD
// elements that are contiguous along INNER, the loop with iteration DIGIT.
constexpr const char* kStoreWords = R"cl(
    uint word = 0;
    uint written = 0;
    const uint begin = DIGIT;
    for (uint k = 0; k < PER_WORD; ++k) {
      const uint DIGIT = begin + k;
      if (!(IS_WRITTEN)) continue;
      word |= (uint)tile[LOCAL] << (k * ELEMENT_BITS);
      written |= 1u << k;
    }
    const ulong to = (ulong)(to_tile + (TO_WITHIN));
    if (written == (1u << PER_WORD) - 1 && to >= first && to + PER_WORD <= last && (to - first) % PER_WORD == 0) {
      __global uint* whole = (__global uint*)(destination + (to - first));
      *whole = adds ? *whole | word : word;
      continue;
    }
    for (uint k = 0; k < PER_WORD; ++k) {
      if ((written & 1u << k) == 0 || to + k < first || to + k >= last) continue;
      const ELEMENT element = (ELEMENT)(word >> (k * ELEMENT_BITS));
      destination[to + k - first] = adds ? destination[to + k - first] | element : element;
    }
  }
}
)cl";

std::string loop_text(int64_t elements, int64_t step) {
  return "  for (uint i = get_local_id(0) * " + std::to_string(step) + "; i < " + std::to_string(elements) +
         "; i += GROUP * " + std::to_string(step) + ") {\n";
}

// The tile into local memory, `per_read` elements at a time.
std::string load_text(const TileText& text_of, int64_t elements, int64_t per_read) {
  const std::vector<size_t> order = text_of.order(true);
  const std::string first = loop_text(elements, per_read) + digits_text(text_of, order, "i");
  if (per_read == 1) return first + kLoad + kLoaded;
  return first + kLoadWords + digits_text(text_of, order, "i + k") + kLoadOfWord + kLoaded;
}

std::string macro(const char* name, const std::string& value) {
  return std::string("#define ") + name + " " + value + "\n";
}

}  // namespace

bool can_tile(const DeviceMoves& moves) { return best_tile(moves).has_value(); }

std::string tile_text(const DeviceMoves& moves, KernelText& result) {
  const LoopNest& nest = moves.nests.front();
  const Tile tile = *best_tile(moves);
  const int64_t bytes = moves.destination_bits / 8;
  const int64_t columns = elements_of(tile.along_source);
  const TileText text_of{nest, tile, columns, pitch_of(columns, bytes)};
  const int64_t elements = tile_elements(tile);
  result.destination_base = nest.destination_base;
  const std::vector<size_t> by_destination = text_of.order(false);
  const size_t inner = by_destination.front();
  const int64_t per_word = std::max<int64_t>(kWordBytes / bytes, 1);
  const int64_t per_read = moves.source_bits == 8 && columns % kWordBytes == 0 ? kWordBytes : 1;
  const bool has_words = per_word > 1 && text_of.count(inner) % per_word == 0;
  std::string text =
      constant("GROUP", kTileGroup) + constant("PER_WORD", per_word) + constant("PER_READ", per_read) +
      constant("TILE_ROOM", elements / columns * text_of.pitch) +
      macro("IS_VALID", inside_text(text_of, true)) + macro("IS_WRITTEN", inside_text(text_of, false)) +
      macro("FROM_WITHIN", within_text(text_of, true)) + macro("TO_WITHIN", within_text(text_of, false)) +
      macro("LOCAL", local_text(text_of)) + macro("DIGIT", name("d", inner));
  text += kTileHead + iterations_text(text_of, result);
  const auto stride = [&nest](auto side) {
    return [&nest, side](size_t level) { return nest.nodes[level].*side; };
  };
  text += "  const long from_tile = " +
          sum_text(nest, "p", std::to_string(nest.source_base), stride(&Node::source_stride)) + ";\n";
  text += "  const long to_tile = " +
          sum_text(nest, "p", std::to_string(nest.destination_base), stride(&Node::destination_stride)) +
          ";\n";
  text += variables_text(nest) + load_text(text_of, elements, per_read);
  text += loop_text(elements, has_words ? per_word : 1) + digits_text(text_of, by_destination, "i");
  return text + (has_words ? kStoreWords : kStore);
}

}  // namespace tilework::cl
