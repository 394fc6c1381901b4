#include "reorder/run/file_tiles.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "cpu/cache.h"
#include "io/checked_math.h"
#include "policy/thresholds.h"

namespace tilework {
namespace {

// The loops of a nest, shortest steps first.
std::vector<size_t> by_stride(const LoopNest& nest, int64_t Node::*stride) {
  std::vector<size_t> order(nest.nodes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::abs(nest.nodes[a].*stride) < std::abs(nest.nodes[b].*stride);
  });
  return order;
}

// A kernel goes through many runs at the same time. Were they a power of two apart, their elements would meet
// in the same few sets of the cache and push each other out; an odd number of cache lines spreads them over
// all sets. Short runs stay dense, as lines would be mostly padding; from here on it is an eighth at most.

int64_t spacing_of(int64_t length, int element_bits) {
  const int64_t line = kLineBytes * 8 / element_bits;
  if (length < kFewestSpacedLines.times(line)) return length;
  return (ceil_div(length, line) | 1) * line;
}

int64_t gap_of(int element_bits) { return kMergeGapBytes.value * 8 / element_bits; }

// ---- How large a tile is along each loop

class BlockChoice {
 public:
  BlockChoice(const LoopNest& nest, std::vector<int64_t> counts, int element_bits, TileLimits limits)
      : nest_(nest),
        counts_(std::move(counts)),
        element_bits_(element_bits),
        by_source_(by_stride(nest, &Node::source_stride)),
        by_destination_(by_stride(nest, &Node::destination_stride)),
        most_written_(limits.destination * 8 / element_bits),
        most_read_(limits.source * 8 / element_bits),
        lead_(element_bits == 4 ? 1 : 0),
        call_(gap_of(element_bits)),
        // Only whole bytes are written.
        even_(element_bits == 4 ? by_destination_.front() : nest.nodes.size()) {}

  // Grows the loop that makes an element cheapest, until the buffers are full.
  std::vector<int64_t> choose() {
    for (size_t i = 0; i < counts_.size(); ++i)
      blocks_.push_back(std::min<int64_t>(counts_[i], i == even_ ? 2 : 1));
    double cost = cost_of(blocks_);
    for (;;) {
      std::vector<int64_t> best;
      for (size_t i = 0; i < counts_.size(); ++i) {
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

  // Twice as many iterations, or as many as there are or fit.
  int64_t grown(size_t i) const {
    const int64_t fitting = most_written_ / (elements(blocks_) / blocks_[i]);
    const int64_t wanted = std::min({2 * blocks_[i], counts_[i], i == even_ ? fitting / 2 * 2 : fitting});
    return std::max(wanted, blocks_[i]);
  }

  // Elements' worth of time for each element; infinite where the source does not fit.
  double cost_of(const std::vector<int64_t>& blocks) const {
    int64_t reads = 1;
    int64_t run = lead_ + 1;
    for (size_t i : by_source_) {
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
    for (size_t i : by_destination_) {
      int64_t& factor = nest_.nodes[i].destination_stride == written ? written : writes;
      factor *= blocks[i];
    }
    if (spacing_of(run + lead_, element_bits_) > most_read_ / reads)
      return std::numeric_limits<double>::infinity();
    const auto total = static_cast<double>(elements(blocks));
    const auto calls = static_cast<double>(reads + writes) * static_cast<double>(call_);
    return (calls + static_cast<double>(reads * run) + total) / total;
  }

  const LoopNest& nest_;
  std::vector<int64_t> counts_;
  int element_bits_;
  std::vector<size_t> by_source_;
  std::vector<size_t> by_destination_;
  int64_t most_written_;
  int64_t most_read_;
  // Runs of 4-bit elements begin and end with whole bytes.
  int64_t lead_;
  // What a call costs, in elements that could be copied meanwhile.
  int64_t call_;
  size_t even_;
  std::vector<int64_t> blocks_;
};

// ---- Packing

// Runs of one side. `strides` become those of the buffer: within a run a loop keeps its own, else it has that
// of whole runs. Gaps up to `gap` elements stay inside a run, and `lead` elements stand before the first one.
Runs runs_of(const std::vector<size_t>& order, const std::vector<int64_t>& blocks,
             std::vector<int64_t>& strides, int element_bits, int64_t gap, int64_t lead) {
  Runs runs;
  int64_t packed = lead + 1;
  const auto close = [&] {
    // Half bytes come in pairs from a file.
    runs.length = runs.spacing = element_bits == 4 ? ceil_div(packed, 2) * 2 : packed;
  };
  for (size_t i : order) {
    const int64_t stride = std::abs(strides[i]);
    if (stride == 0 || blocks[i] == 1) continue;
    if (runs.length == 0 && stride - packed <= gap) {
      packed += (blocks[i] - 1) * stride;
      continue;
    }
    if (runs.length == 0) {
      close();
      packed = runs.spacing = spacing_of(runs.length, element_bits);
    }
    runs.repeats.push_back({blocks[i], stride});
    strides[i] = strides[i] < 0 ? -packed : packed;
    packed *= blocks[i];
  }
  if (runs.length == 0) close();
  std::reverse(runs.repeats.begin(), runs.repeats.end());
  return runs;
}

// Half a byte cannot be read or written alone: all steps but the nearest are whole bytes.
bool has_whole_bytes(const LoopNest& nest) {
  if (nest.destination_base % 2 != 0) return false;
  const size_t nearest = by_stride(nest, &Node::destination_stride).front();
  for (size_t i = 0; i < nest.nodes.size(); ++i) {
    const Node& node = nest.nodes[i];
    if (std::abs(node.source_stride) != 1 && node.source_stride % 2 != 0) return false;
    if (i != nearest && node.destination_stride % 2 != 0) return false;
  }
  return nest.nodes[nearest].destination_stride == 1 && nest.nodes[nearest].count % 2 == 0;
}

// Calls body(storage element, buffer element) for each run, in the order of the buffer.
template <class Body>
void each_run(const Runs& runs, size_t at, int64_t element, int64_t& packed, Body& body) {
  if (at == runs.repeats.size()) {
    body(element, packed);
    packed += runs.spacing;
    return;
  }
  for (int64_t i = 0; i < runs.repeats[at].count; ++i) {
    each_run(runs, at + 1, element + i * runs.repeats[at].step, packed, body);
  }
}

}  // namespace

int64_t Runs::size() const {
  int64_t size = repeats.empty() ? length : spacing;
  for (const Repeat& repeat : repeats) size *= repeat.count;
  return size;
}

std::optional<FileTiles> FileTiles::cut(std::shared_ptr<const TileProgram> program, int64_t begin,
                                        int64_t end, TileLimits limits) {
  const LoopNest& nest = program->nest();
  const int bits = program->element_bits();
  if (nest.all_zero || !nest.lookups.empty() || begin >= end) return std::nullopt;
  if (bits == 4 && !has_whole_bytes(nest)) return std::nullopt;
  FileTiles tiles(std::move(program));
  tiles.cut_loops(begin * 8 / bits, end * 8 / bits);
  std::vector<int64_t> counts;
  for (const Iterations& loop : tiles.loops_) counts.push_back(loop.count());
  tiles.blocks_ = BlockChoice(nest, std::move(counts), bits, limits).choose();
  tiles.pack();
  if (tiles.source_bytes() > limits.source) return std::nullopt;
  return tiles;
}

// The outermost loops are cut to the iterations that reach into the range, as long as it is a single one.
void FileTiles::cut_loops(int64_t begin, int64_t end) {
  const LoopNest& nest = program_->nest();
  for (const Node& node : nest.nodes) loops_.push_back({0, node.count});
  int64_t d = nest.destination_base;
  for (size_t i = 0; i < loops_.size(); ++i) {
    const Node& node = nest.nodes[i];
    Iterations& loop = loops_[i];
    loop.begin = std::max(loop.begin, floor_div(begin - d - node.span, node.destination_stride) + 1);
    loop.end = std::min(loop.end, ceil_div(end - d, node.destination_stride));
    if (loop.count() != 1) return;
    d += loop.begin * node.destination_stride;
  }
}

void FileTiles::pack() {
  const LoopNest& nest = program_->nest();
  const int bits = program_->element_bits();
  for (const Node& node : nest.nodes) {
    source_strides_.push_back(node.source_stride);
    destination_strides_.push_back(node.destination_stride);
  }
  source_ = runs_of(by_stride(nest, &Node::source_stride), blocks_, source_strides_, bits, gap_of(bits),
                    bits == 4 ? 1 : 0);
  destination_ =
      runs_of(by_stride(nest, &Node::destination_stride), blocks_, destination_strides_, bits, 0, 0);
  first_ = at(0);
}

int64_t FileTiles::count() const {
  int64_t count = 1;
  for (size_t i = 0; i < loops_.size(); ++i) count *= ceil_div(loops_[i].count(), blocks_[i]);
  return count;
}

FileTiles::Tile FileTiles::at(int64_t tile) const {
  const LoopNest& nest = program_->nest();
  std::vector<Iterations> block = loops_;
  Tile found;
  found.source = nest.source_base;
  found.destination = nest.destination_base;
  bool is_whole = true;
  for (size_t i = block.size(); i-- > 0;) {
    const int64_t blocks = ceil_div(loops_[i].count(), blocks_[i]);
    const int64_t begin = loops_[i].begin + tile % blocks * blocks_[i];
    block[i] = {begin, std::min(begin + blocks_[i], loops_[i].end)};
    tile /= blocks;
    const Node& node = nest.nodes[i];
    // The first run is the one of least source elements: where steps are negative, of the last iteration.
    found.source += node.source_stride * (node.source_stride < 0 ? begin + blocks_[i] - 1 : begin);
    found.destination += node.destination_stride * begin;
    if (node.variable != kNone) found.position.index[node.variable] += begin * node.weight;
    is_whole = is_whole && block[i].count() == blocks_[i];
  }
  found.lead = program_->element_bits() == 4 ? found.source & 1 : 0;
  found.source -= found.lead;
  const bool has_program = is_whole && first_.program != nullptr && found.lead == first_.lead;
  found.program = has_program ? first_.program : program_of(block, found.lead);
  find_pieces(found);
  return found;
}

std::shared_ptr<const TileProgram> FileTiles::program_of(const std::vector<Iterations>& block,
                                                         int64_t lead) const {
  LoopNest nest = program_->nest();
  nest.source_base = lead;
  nest.destination_base = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    Node& node = nest.nodes[i];
    node.count = block[i].count();
    node.source_stride = source_strides_[i];
    node.destination_stride = destination_strides_[i];
    if (node.source_stride < 0) nest.source_base -= node.source_stride * (blocks_[i] - 1);
  }
  // Tiles begin at a position, which has what these would add.
  std::erase_if(nest.nodes, [](const Node& node) { return node.count == 1; });
  if (nest.nodes.empty()) {
    nest.nodes.emplace_back();
    nest.nodes.back().source_stride = nest.nodes.back().destination_stride = 1;
  }
  return std::make_shared<const TileProgram>(nest, program_->element_bits(), destination_bytes(),
                                             program_->leaves());
}

void FileTiles::find_pieces(Tile& tile) const {
  std::vector<ByteRange> read{{0, source_bytes()}};
  std::vector<ByteRange> written{{0, destination_bytes()}};
  if (!fills_runs(tile)) {
    const int64_t per_byte = tile.program->offsets_per_byte();
    RangeSet reads(kMergeGapBytes.value * per_byte);
    RangeSet writes(0);
    tile.program->note(0, destination_bytes(), tile.position, {&reads, &writes});
    read = whole_bytes(reads.take(), per_byte);
    written = whole_bytes(writes.take(), per_byte);
  }
  tile.read = pieces(source_, tile.source, read);
  tile.written = pieces(destination_, tile.destination, written);
}

// Whether a tile has whole blocks, and no guard leaves out some of it.
bool FileTiles::fills_runs(const Tile& tile) const {
  const std::vector<Node>& loops = program_->nest().nodes;
  const bool is_whole = tile.program == first_.program || first_.program == nullptr;
  return is_whole &&
         std::all_of(loops.begin(), loops.end(), [](const Node& loop) { return loop.variable == kNone; });
}

// The parts of runs that were touched: ranges of the buffer, ascending.
std::vector<PackedPiece> FileTiles::pieces(const Runs& runs, int64_t first,
                                           const std::vector<ByteRange>& touched) const {
  std::vector<PackedPiece> pieces;
  const int bits = program_->element_bits();
  size_t at = 0;
  const auto add_run = [&](int64_t element, int64_t packed) {
    const ByteRange run{packed * bits / 8, bytes_of(packed + runs.length)};
    const int64_t to_storage = element * bits / 8 - run.begin;
    while (at < touched.size() && touched[at].end <= run.begin) ++at;
    for (size_t i = at; i < touched.size() && touched[i].begin < run.end; ++i) {
      const int64_t begin = std::max(touched[i].begin, run.begin);
      pieces.push_back({begin + to_storage, begin, std::min(touched[i].end, run.end) - begin});
    }
  };
  int64_t packed = 0;
  each_run(runs, 0, first, packed, add_run);
  return pieces;
}

// Only a run that ends with the storage ends with half a byte.
int64_t FileTiles::bytes_of(int64_t elements) const {
  return ceil_div(elements * program_->element_bits(), 8);
}

}  // namespace tilework
