// The tiling of every nest, against the loops that it was made of: the same iterations, each once.
#include "reorder/plan/tiling.h"

#include <algorithm>
#include <array>

#include "description_input.h"
#include "error.h"
#include "io/checked_math.h"
#include "reorder_case.h"

namespace tilework::fuzz {
namespace {

// Longer nests are tiled, but not compared.
constexpr int64_t kMostIterations = 512;

// Where an iteration is: source and destination bytes, and the index of each guard and lookup.
constexpr size_t kMostIndices = kMaxPlannedAxes;
struct Place {
  int64_t source = 0;
  int64_t destination = 0;
  std::array<int64_t, kMostIndices> variables{};
  std::array<int64_t, kMostIndices> lookups{};

  auto operator<=>(const Place&) const = default;

  void add(const TileLoop& loop, int64_t i) {
    source += i * loop.source_stride;
    destination += i * loop.destination_stride;
    if (loop.variable != kNone) variables.at(static_cast<size_t>(loop.variable)) += i * loop.weight;
    if (loop.lookup != kNone) lookups.at(static_cast<size_t>(loop.lookup)) += i * loop.lookup_stride;
  }
};

using Places = std::vector<Place>;

void repeat(Places& places, const TileLoop& loop) {
  Places all;
  for (const Place& place : places) {
    for (int64_t i = 0; i < loop.count; ++i) {
      all.push_back(place);
      all.back().add(loop, i);
    }
  }
  places = std::move(all);
}

Places places_of(const LoopNest& nest, int64_t element_bytes) {
  Places places(1);
  for (const Node& node : nest.nodes) {
    repeat(places, {node.count, node.source_stride * element_bytes, node.destination_stride * element_bytes,
                    node.variable, node.weight, node.lookup, node.lookup_stride, 0});
  }
  return places;
}

using BlockOf = Tiling::Outer::BlockOf;

// An iteration of the tile, with how far it is in the loops that continue outside.
struct TilePlace {
  Place place;
  int64_t row_block = 0;
  int64_t column_block = 0;
};

Places places_of(const Tiling& tiling, int64_t element_bytes) {
  std::vector<TilePlace> places(1);
  const auto grow = [&](const TileLoop& loop, int64_t steps, int64_t TilePlace::*block) {
    std::vector<TilePlace> all;
    for (const TilePlace& place : places) {
      for (int64_t i = 0; i < loop.count; ++i) {
        all.push_back(place);
        all.back().place.add(loop, i);
        if (block != nullptr) all.back().*block += i * steps;
      }
    }
    places = std::move(all);
  };
  grow({.count = tiling.unit_bytes / element_bytes,
        .source_stride = element_bytes,
        .destination_stride = element_bytes},
       0, nullptr);
  const auto grow_list = [&](const std::vector<TileLoop>& list, int64_t TilePlace::*block) {
    for (const TileLoop& loop : list) grow(loop, 1, loop.whole_count != 0 ? block : nullptr);
  };
  grow_list(tiling.rows, &TilePlace::row_block);
  grow_list(tiling.columns, &TilePlace::column_block);
  const auto whole_of = [](const std::vector<TileLoop>& list) -> const TileLoop* {
    return !list.empty() && list.back().whole_count != 0 ? &list.back() : nullptr;
  };
  const TileLoop* const rows = whole_of(tiling.rows);
  const TileLoop* const columns = whole_of(tiling.columns);
  for (const Tiling::Outer& outer : tiling.outer) {
    const TileLoop* const inner = outer.block_of == BlockOf::kRows      ? rows
                                  : outer.block_of == BlockOf::kColumns ? columns
                                                                        : nullptr;
    require(outer.block_of == BlockOf::kNone || inner != nullptr, "a block continues no loop");
    const bool is_row = outer.block_of == BlockOf::kRows;
    if (inner == nullptr)
      grow(outer.loop, 0, nullptr);
    else
      grow(outer.loop, outer.loop.destination_stride / inner->destination_stride,
           is_row ? &TilePlace::row_block : &TilePlace::column_block);
  }
  Places kept;
  for (const TilePlace& each : places) {
    if (rows != nullptr && each.row_block >= rows->whole_count) continue;
    if (columns != nullptr && each.column_block >= columns->whole_count) continue;
    kept.push_back(each.place);
  }
  return kept;
}

void check(const LoopNest& nest, int64_t element_bytes, FuzzInput& input) {
  const int64_t row_bytes = int64_t{1} << (4 + input.below(6));
  const int64_t column_bytes = int64_t{1} << (4 + input.below(6));
  const Tiling tiling = tiling_of(nest, element_bytes, row_bytes, column_bytes);
  require(tiling.unit_bytes % element_bytes == 0, "a unit cuts an element");
  require(reach_of(tiling) >= tiling.unit_bytes, "a tile reaches less than its unit");
  for (const TileLoop& row : tiling.rows) {
    for (const TileLoop& column : tiling.columns)
      require(row.variable == kNone || row.variable != column.variable, "rows and columns share a guard");
  }
  std::vector<int64_t> counts;
  for (const Node& node : nest.nodes) counts.push_back(node.count);
  if (elements_of(counts, kMostIterations) < 0) return;
  Places expected = places_of(nest, element_bytes);
  Places found = places_of(tiling, element_bytes);
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  if (found != expected) finding("the tile has other iterations than the nest:\n" + describe(tiling));
}

void run(FuzzInput& input) {
  ReorderDescription description = wide_description(input);
  damage(description, input);
  const int64_t element_bytes = int64_t{1} << input.below(5);
  std::vector<LoopNest> nests;
  try {
    const BoundSlice slice = bind_slice(description.shape, description.slice);
    const BoundSide from = bind_side(test::source_shape(description), description.from, "from");
    const BoundSide to = bind_side(description.shape, description.to, "to");
    // As ReorderPlan does.
    for (const BoundSide* side : {&from, &to}) {
      if (side->elements > kMaxSafeInteger / element_bytes) return;
    }
    nests = join(description.shape, from, to, slice);
  } catch (const Error&) {
    return;
  }
  for (const LoopNest& nest : nests) check(nest, element_bytes, input);
}

}  // namespace
}  // namespace tilework::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tilework::fuzz::FuzzInput input(data, size);
  tilework::fuzz::run(input);
  return 0;
}
