#include "reorder/box_tiles.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>

#include "cpu/cache.h"
#include "io/checked_math.h"
#include "layout/loop_nest.h"
#include "reorder/source_ranges.h"

namespace tilework {
namespace {

// A range of the destination is a few boxes; more only where many axes have tails at once.
constexpr size_t kMaxRegions = 256;

// The loops of a nest, nearest steps in the source first, and nearest in the destination first.
struct LoopOrders {
  explicit LoopOrders(const LoopNest& nest)
      : by_source(nest.nodes.size()), by_destination(nest.nodes.size()) {
    std::iota(by_source.begin(), by_source.end(), size_t{0});
    by_destination = by_source;
    std::stable_sort(by_source.begin(), by_source.end(), [&nest](size_t a, size_t b) {
      return std::abs(nest.nodes[a].source_stride) < std::abs(nest.nodes[b].source_stride);
    });
    std::stable_sort(by_destination.begin(), by_destination.end(), [&nest](size_t a, size_t b) {
      return nest.nodes[a].destination_stride < nest.nodes[b].destination_stride;
    });
  }

  std::vector<size_t> by_source;
  std::vector<size_t> by_destination;
};

// A kernel goes through many runs at the same time. Were they a power of two apart, their elements would meet
// in the same few sets of the cache and push each other out; an odd number of cache lines spreads them over
// all sets. Short runs stay dense, as lines would be mostly padding; from here on it is an eighth at most.
constexpr int64_t kMinSpacedLines = 16;

int64_t spacing_of(int64_t length, int element_bits) {
  const int64_t line = kLineBytes * 8 / element_bits;
  if (length < kMinSpacedLines * line) return length;
  return (ceil_div(length, line) | 1) * line;
}

int64_t gap_of(int element_bits) { return kMergeGapBytes * 8 / element_bits; }

// ---- How large a tile is along each loop

class BlockChoice {
 public:
  BlockChoice(const LoopNest& nest, const Box& box, int element_bits, TileLimits limits)
      : nest_(nest),
        box_(box),
        element_bits_(element_bits),
        orders_(nest),
        most_written_(limits.destination * 8 / element_bits),
        most_read_(limits.source * 8 / element_bits),
        slack_(element_bits == 4 ? 2 : 0),
        call_(gap_of(element_bits)),
        // Only whole bytes are written.
        even_(element_bits == 4 ? orders_.by_destination.front() : nest.nodes.size()) {}

  // Grows the loop that makes an element cheapest, until the buffers are full.
  std::vector<int64_t> choose() {
    for (size_t i = 0; i < box_.size(); ++i)
      blocks_.push_back(std::min<int64_t>(box_[i].count(), i == even_ ? 2 : 1));
    double cost = cost_of(blocks_);
    for (;;) {
      std::vector<int64_t> best;
      for (size_t i = 0; i < box_.size(); ++i) {
        std::vector<int64_t> larger = blocks_;
        larger[i] = grown(i);
        if (larger[i] == blocks_[i]) continue;
        const double larger_cost = cost_of(larger);
        if (larger_cost > cost) continue;
        cost = larger_cost;
        best = std::move(larger);
      }
      if (best.empty()) return blocks_;
      blocks_ = std::move(best);
    }
  }

 private:
  int64_t elements(const std::vector<int64_t>& blocks) const {
    return std::accumulate(blocks.begin(), blocks.end(), int64_t{1}, std::multiplies<>());
  }

  // Twice as many passes, or as many as there are or fit.
  int64_t grown(size_t i) const {
    const int64_t fitting = most_written_ / (elements(blocks_) / blocks_[i]);
    const int64_t wanted =
        std::min({2 * blocks_[i], box_[i].count(), i == even_ ? fitting / 2 * 2 : fitting});
    return std::max(wanted, blocks_[i]);
  }

  // Elements' worth of time for each element; infinite where the source does not fit.
  double cost_of(const std::vector<int64_t>& blocks) const {
    int64_t reads = 1;
    int64_t run = 1;
    for (size_t i : orders_.by_source) {
      const int64_t stride = std::abs(nest_.nodes[i].source_stride);
      if (blocks[i] == 1 || stride == 0) continue;
      if (stride - run <= call_) {
        run += (blocks[i] - 1) * stride;
      } else {
        reads *= blocks[i];
      }
    }
    int64_t writes = 1;
    int64_t written = 1;
    for (size_t i : orders_.by_destination) {
      int64_t& factor = nest_.nodes[i].destination_stride == written ? written : writes;
      factor *= blocks[i];
    }
    if (spacing_of(run + slack_, element_bits_) > most_read_ / reads)
      return std::numeric_limits<double>::infinity();
    const auto total = static_cast<double>(elements(blocks));
    const auto calls = static_cast<double>(reads + writes) * static_cast<double>(call_);
    return (calls + static_cast<double>(reads * run) + total) / total;
  }

  const LoopNest& nest_;
  const Box& box_;
  int element_bits_;
  LoopOrders orders_;
  int64_t most_written_;
  int64_t most_read_;
  // Runs of 4-bit elements begin and end with whole bytes.
  int64_t slack_;
  // What a call costs, in elements that could be copied meanwhile.
  int64_t call_;
  size_t even_;
  std::vector<int64_t> blocks_;
};

// ---- Packing

// Runs of one side, while loops are added from the nearest steps on.
class RunBuilder {
 public:
  // Gaps up to `gap` elements stay inside a run. `lead` elements stand before the first one.
  RunBuilder(int element_bits, int64_t gap, int64_t lead)
      : bits_(element_bits), gap_(gap), packed_(lead + 1) {}

  // The stride that a loop has in the buffer: its own inside a run, else that of whole runs.
  int64_t add(int64_t passes, int64_t stride) {
    if (passes == 1) return 0;
    if (runs_.length == 0 && stride - packed_ <= gap_) {
      packed_ += (passes - 1) * stride;
      return stride;
    }
    if (runs_.length == 0) {
      close();
      packed_ = runs_.spacing = spacing_of(runs_.length, bits_);
    }
    const int64_t step = packed_;
    packed_ *= passes;
    runs_.repeats.emplace_back(passes, stride);
    return step;
  }

  Runs take(int64_t first) {
    if (runs_.length == 0) close();
    runs_.first = first;
    std::reverse(runs_.repeats.begin(), runs_.repeats.end());
    return std::move(runs_);
  }

 private:
  void close() {
    // Half bytes come in pairs from a file.
    runs_.length = runs_.spacing = gap_ > 0 && bits_ == 4 ? ceil_div(packed_, 2) * 2 : packed_;
  }

  int bits_;
  int64_t gap_;
  // Elements in the buffer.
  int64_t packed_;
  Runs runs_;
};

// The passes of a box among which all elements with a source are; nothing where there are only holes.
std::optional<Box> sourced(const LoopNest& nest, const Box& box) {
  Box hull = box;
  for (size_t i = 0; i < nest.variables.size(); ++i) {
    const Passes valid{nest.variables[i].valid_lo, nest.variables[i].valid_hi};
    const std::vector<Box> parts = parts_within(nest, box, static_cast<int>(i), valid);
    if (parts.empty()) return std::nullopt;
    for (size_t k = 0; k < box.size(); ++k) {
      if (nest.nodes[k].variable != static_cast<int>(i)) continue;
      hull[k] = parts.front()[k];
      for (const Box& part : parts) {
        hull[k] = {std::min(hull[k].begin, part[k].begin), std::max(hull[k].end, part[k].end)};
      }
    }
  }
  return hull;
}

// Strides and base of the nest as they are in the buffer of the source.
Runs pack_source(const LoopNest& nest, const Box& box, const Box& hull, int element_bits, LoopNest& packed) {
  int64_t first = nest.source_base;
  for (size_t i = 0; i < box.size(); ++i) {
    const int64_t stride = nest.nodes[i].source_stride;
    first += stride * (stride < 0 ? hull[i].end - 1 : hull[i].begin);
  }
  // A run begins with the byte of its first element.
  const int64_t in_a_byte = element_bits == 4 ? 2 : 1;
  const int64_t lead = first % in_a_byte;
  RunBuilder builder(element_bits, gap_of(element_bits), lead);
  packed.source_base = lead;
  for (size_t i : LoopOrders(nest).by_source) {
    const int64_t stride = nest.nodes[i].source_stride;
    if (stride == 0) continue;
    const int64_t step = builder.add(hull[i].count(), std::abs(stride));
    packed.nodes[i].source_stride = stride < 0 ? -step : step;
    packed.source_base += step * (stride < 0 ? hull[i].end - 1 - box[i].begin : box[i].begin - hull[i].begin);
  }
  return builder.take(first - lead);
}

Runs pack_destination(const LoopNest& nest, const Box& box, int element_bits, LoopNest& packed) {
  RunBuilder builder(element_bits, 0, 0);
  int64_t first = nest.destination_base;
  for (size_t i : LoopOrders(nest).by_destination) {
    const int64_t stride = nest.nodes[i].destination_stride;
    first += stride * box[i].begin;
    packed.nodes[i].destination_stride = builder.add(box[i].count(), stride);
  }
  packed.destination_base = 0;
  return builder.take(first);
}

// Half a byte cannot be read or written alone: all steps but the nearest are whole bytes.
bool has_whole_bytes(const LoopNest& nest) {
  if (nest.destination_base % 2 != 0) return false;
  const size_t nearest = LoopOrders(nest).by_destination.front();
  for (size_t i = 0; i < nest.nodes.size(); ++i) {
    const Node& node = nest.nodes[i];
    if (std::abs(node.source_stride) != 1 && node.source_stride % 2 != 0) return false;
    if (i != nearest && node.destination_stride % 2 != 0) return false;
  }
  const bool is_even = nest.nodes[nearest].count % 2 == 0 || nest.nodes.size() == 1;
  return nest.nodes[nearest].destination_stride == 1 && is_even;
}

}  // namespace

int64_t Runs::size() const {
  int64_t size = repeats.empty() ? length : spacing;
  for (const auto& [count, stride] : repeats) size *= count;
  return size;
}

std::optional<BoxTiles> BoxTiles::cut(const ReorderPlan& plan, int64_t begin, int64_t end,
                                      TileLimits limits) {
  if (plan.nests().size() != 1 || begin >= end) return std::nullopt;
  const LoopNest& nest = plan.nests().front();
  if (nest.all_zero || !nest.lookups.empty()) return std::nullopt;
  const int bits = plan.element_bits();
  if (bits == 4 && !has_whole_bytes(nest)) return std::nullopt;
  const int64_t last = std::min(end * 8 / bits, plan.destination_elements());
  const auto boxes = boxes_of(nest, begin * 8 / bits, last, kMaxRegions);
  if (!boxes) return std::nullopt;
  BoxTiles tiles(plan);
  for (const Box& box : *boxes) {
    Region region{box, BlockChoice(nest, box, bits, limits).choose(), tiles.count_};
    int64_t count = 1;
    for (size_t i = 0; i < box.size(); ++i) count *= ceil_div(box[i].count(), region.blocks[i]);
    tiles.count_ += count;
    tiles.regions_.push_back(std::move(region));
  }
  return tiles;
}

Box BoxTiles::box_of(int64_t tile) const {
  const auto after =
      std::upper_bound(regions_.begin(), regions_.end(), tile,
                       [](int64_t at, const Region& region) { return at < region.first_tile; });
  const Region& region = *std::prev(after);
  int64_t rest = tile - region.first_tile;
  Box box = region.box;
  for (size_t i = box.size(); i-- > 0;) {
    const int64_t block = region.blocks[i];
    const int64_t blocks = ceil_div(box[i].count(), block);
    const int64_t from = box[i].begin + rest % blocks * block;
    box[i] = {from, std::min(from + block, box[i].end)};
    rest /= blocks;
  }
  return box;
}

PackedTile BoxTiles::at(int64_t tile) const {
  const Box box = box_of(tile);
  const LoopNest& nest = plan_->nests().front();
  LoopNest packed = nest;
  std::optional<Runs> source;
  if (const auto hull = sourced(nest, box))
    source = pack_source(nest, box, *hull, plan_->element_bits(), packed);
  Runs destination = pack_destination(nest, box, plan_->element_bits(), packed);
  count_passes_of(box, packed);
  packed.all_zero = !source;
  finish_nest(packed);
  return {ReorderPlan(plan_->element_bits(), {std::move(packed)}, source ? source->size() : 0,
                      destination.size()),
          std::move(source), std::move(destination)};
}

}  // namespace tilework
