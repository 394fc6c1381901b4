#include "reorder/plan/tile_program.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/plan/tile_walk.h"

namespace tilework {
namespace {

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
  states_ = TileWalk(*this, 0, destination_bytes, Stores::kCached, {}).foresee();
  panels_ = all_panels();
}

// None where they are many, or not all that a run does.
std::vector<PanelMove> TileProgram::all_panels() const {
  TileWalk walk(*this, 0, destination_bytes_, Stores::kCached, {});
  if (conversion_ != nullptr || !nest_.lookups.empty() || walk.iterations() > kKeptPanels) return {};
  KeepingSink sink;
  walk.run(sink);
  return walk.has_foreseen_states_only() ? sink.take() : std::vector<PanelMove>();
}

template <class Body>
void TileProgram::with_sink(const uint8_t* source, uint8_t* destination, int64_t begin, Body body) const {
  if (conversion_ != nullptr) {
    CastSink sink(*conversion_, context_.leaves, source, destination, begin * offsets_per_byte());
    body(sink);
  } else if (context_.has_nibbles) {
    NibbleSink sink(source, destination);
    body(sink);
  } else {
    ByteSink sink(source, destination);
    body(sink);
  }
}

void TileProgram::run(const uint8_t* source, uint8_t* destination, int64_t begin, int64_t end, Stores stores,
                      const OuterRange& range) const {
  const bool is_whole = begin == 0 && end == destination_bytes_ && range.levels == 0;
  with_sink(source, destination, begin, [&](auto& sink) {
    if (!is_whole || panels_.empty() || stores == Stores::kStreaming)
      return TileWalk(*this, begin, end, stores, range).run(sink);
    TILEWORK_WAY("program: kept panels");
    for (const PanelMove& kept : panels_) {
      Panel panel = kept.panel;
      sink.move(panel, kept.leaf);
    }
  });
}

void TileProgram::run_at(const TilePosition& position, const uint8_t* source, uint8_t* destination) const {
  TileWalk walk(*this, 0, destination_bytes_, Stores::kCached, {});
  walk.start_at(position);
  with_sink(source, destination, 0, [&](auto& sink) { walk.run(sink); });
}

void TileProgram::note(int64_t begin, int64_t end, const TilePosition& position,
                       const Footprint& footprint) const {
  TileWalk walk(*this, begin, end, Stores::kCached, {});
  walk.start_at(position);
  FootprintSink sink(footprint);
  walk.run(sink);
}

void TileProgram::add_ways(Stores stores, WayShares& shares) const {
  WaySink sink(conversion_, conversion_ == nullptr && !context_.has_nibbles, shares);
  TileWalk(*this, 0, destination_bytes_, stores, {}).run(sink);
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
  return units(tiling_.rows) + " x " + units(tiling_.columns) + " units of " +
         std::to_string(tiling_.unit_bytes) + (context_.has_nibbles ? " x 4 bits" : " bytes") + " at a time";
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
    for (const auto& list : state->lists) add(list);
  }
  return bytes;
}

}  // namespace tilework
