#include "reorder/reorder_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/checked_math.h"
#include "reorder/fused_cast.h"
#include "reorder/source_ranges.h"

namespace tilework {
namespace {

int64_t resident_bytes(const std::vector<ByteRange>& ranges) {
  int64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += SparseBuffer::resident_bytes(range.begin, range.size());
  return bytes;
}

// A kernel adds an element's offset to the address of the storage. Only a part of it is here, so this address
// may lie outside of any memory; it is never read itself.
const uint8_t* storage_address(const uint8_t* part, int64_t offset) {
  return reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(part) - static_cast<uintptr_t>(offset));
}

// A range of the destination, in memory.
struct Part {
  const ReorderPlan& plan;
  const FileSource& source;
  uint8_t* destination;
  int64_t begin;
  int64_t end;
};

void run_in_window(const Part& part, ByteRange hull, FileScratch& scratch) {
  uint8_t* window = scratch.window(hull.size());
  part.source.file.read_at(window, part.source.offset + hull.begin, hull.size());
  part.plan.run(storage_address(window, hull.begin), part.destination, part.begin, part.end);
}

void run_in_sparse(const Part& part, const std::vector<ByteRange>& ranges, FileScratch& scratch) {
  SparseBuffer& sparse = scratch.sparse(part.plan.source_bytes());
  // Also after an error: the buffer serves the next tile.
  struct Clear {
    SparseBuffer& buffer;
    ~Clear() { buffer.clear(); }
  } clear{sparse};
  for (const ByteRange& range : ranges) {
    part.source.file.read_at(sparse.fill(range.begin, range.size()), part.source.offset + range.begin,
                             range.size());
  }
  part.plan.run(sparse.data(), part.destination, part.begin, part.end);
}

void run_part(const Part& part, int64_t most_bytes, FileScratch& scratch) {
  const std::vector<ByteRange> ranges = source_ranges(part.plan, part.begin, part.end);
  if (ranges.empty()) return part.plan.run(nullptr, part.destination, part.begin, part.end);
  const ByteRange hull{ranges.front().begin, ranges.back().end};
  const int64_t resident = resident_bytes(ranges);
  if (hull.size() <= most_bytes && hull.size() <= kMaxGapShare * resident) {
    return run_in_window(part, hull, scratch);
  }
  const int64_t unit = part.plan.range_quantum();
  const int64_t half = (part.end - part.begin) / unit / 2 * unit;
  if (resident <= most_bytes || half == 0) return run_in_sparse(part, ranges, scratch);
  const int64_t middle = part.begin + half;
  run_part({part.plan, part.source, part.destination, part.begin, middle}, most_bytes, scratch);
  run_part({part.plan, part.source, part.destination + half, middle, part.end}, most_bytes, scratch);
}

// Elements as bytes; only a run that ends with the storage ends with half a byte.
int64_t bytes_of(int64_t elements, int bits) { return ceil_div(elements * bits, 8); }

// Reads the runs of a tile into its window, and gives the address of the packed source.
const uint8_t* read_runs(const PackedTile& tile, const ReorderPlan& plan, const FileSource& source,
                         FileScratch& scratch) {
  if (!tile.source) return nullptr;
  const int bits = plan.element_bits();
  uint8_t* window = scratch.window(bytes_of(tile.source->size(), bits));
  tile.source->each([&](int64_t element, int64_t packed) {
    const int64_t from = std::max<int64_t>(element, 0);
    const int64_t to = std::min(element + tile.source->length, plan.source_elements());
    if (from >= to) return;
    const int64_t begin = from * bits / 8;
    source.file.read_at(window + (packed + from - element) * bits / 8, source.offset + begin,
                        bytes_of(to, bits) - begin);
  });
  return window;
}

// Boxes of a plan that casts, at the width of the source; none where a run of them might begin inside a byte
// of the destination, or where holes have to be looked for.
std::optional<BoxTiles> boxes_of_moves(const FusedCast& cast, int64_t begin, int64_t end, TileLimits limits) {
  const int64_t from = info_of(cast.cast().from()).bits;
  const int64_t to = info_of(cast.cast().to()).bits;
  const bool may_cut_bytes = to < 8 && to < from;
  if (may_cut_bytes || cast.must_find_holes() || cast.moves().copy_offset()) return std::nullopt;
  // What is cast must not take more room than a tile either.
  if (to > from) limits.destination = std::max<int64_t>(limits.destination / to * from, 1);
  return BoxTiles::cut(cast.moves(), cast.moved_bytes(begin), cast.moved_bytes(end), limits);
}

// A buffer of at least this size. A larger one takes the place of the one before, of which nothing is kept.
SparseBuffer& at_least(std::unique_ptr<SparseBuffer>& buffer, int64_t size) {
  if (buffer == nullptr || buffer->size() < size) {
    buffer.reset();
    buffer = std::make_unique<SparseBuffer>(size);
  }
  return *buffer;
}

uint8_t* memory_of(std::unique_ptr<SparseBuffer>& buffer, int64_t size) {
  return at_least(buffer, size).fill(0, size);
}

}  // namespace

uint8_t* FileScratch::tile(int64_t size) { return memory_of(tile_, size); }

uint8_t* FileScratch::moved(int64_t size) { return memory_of(moved_, size); }

uint8_t* FileScratch::window(int64_t size) { return memory_of(window_, size); }

SparseBuffer& FileScratch::sparse(int64_t size) {
  SparseBuffer& sparse = at_least(sparse_, size);
  // A tile needs one of the two, and a thread has memory for one.
  if (window_ != nullptr) window_->clear();
  return sparse;
}

std::shared_ptr<FileScratchPool> FileScratchPool::share() {
  static auto* mutex = new std::mutex;
  static auto* shared = new std::weak_ptr<FileScratchPool>;
  const std::lock_guard lock(*mutex);
  std::shared_ptr<FileScratchPool> pool = shared->lock();
  if (pool == nullptr) *shared = pool = std::make_shared<FileScratchPool>();
  return pool;
}

std::unique_ptr<FileScratch> FileScratchPool::take() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<FileScratch>();
  std::unique_ptr<FileScratch> scratch = std::move(idle_.back());
  idle_.pop_back();
  return scratch;
}

void FileScratchPool::give_back(std::unique_ptr<FileScratch> scratch) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    idle_.push_back(std::move(scratch));
  } catch (const std::bad_alloc&) {
    // Without memory for the list the scratch is freed.
  }
}

FileReorder::FileReorder(std::shared_ptr<const ReorderPlan> plan, int64_t begin, int64_t end,
                         TileLimits limits)
    : plan_(std::move(plan)), begin_(begin), end_(end), limits_(limits), bits_(plan_->element_bits()) {
  if (const FusedCast* cast = plan_->cast()) {
    boxes_ = boxes_of_moves(*cast, begin, end, limits);
    bits_ = info_of(cast->cast().to()).bits;
  } else if (!plan_->copy_offset()) {
    boxes_ = BoxTiles::cut(*plan_, begin, end, limits);
  }
}

int64_t FileReorder::tiles() const {
  return boxes_ ? boxes_->count() : ceil_div(end_ - begin_, limits_.destination);
}

void FileReorder::run_tile(int64_t tile, const FileSource& source, uint8_t* destination,
                           FileScratch& scratch) const {
  if (boxes_) {
    run_box(tile, source, scratch, [&](const uint8_t* bytes, int64_t size, int64_t at) {
      std::memcpy(destination + (at - begin_), bytes, static_cast<size_t>(size));
    });
  } else {
    const auto [begin, end] = range_of(tile);
    run_range(source, destination + (begin - begin_), begin, end, scratch);
  }
}

void FileReorder::run_tile(int64_t tile, const FileSource& source, OutputFile& output, int64_t position,
                           FileScratch& scratch) const {
  if (boxes_) {
    run_box(tile, source, scratch, [&](const uint8_t* bytes, int64_t size, int64_t at) {
      output.write(bytes, size, position + (at - begin_));
    });
  } else {
    const auto [begin, end] = range_of(tile);
    uint8_t* bytes = scratch.tile(end - begin);
    run_range(source, bytes, begin, end, scratch);
    output.write(bytes, end - begin, position + (begin - begin_));
  }
}

template <class Write>
void FileReorder::run_box(int64_t tile, const FileSource& source, FileScratch& scratch, Write write) const {
  const PackedTile packed = boxes_->at(tile);
  const FusedCast* cast = plan_->cast();
  const uint8_t* from = read_runs(packed, cast == nullptr ? *plan_ : cast->moves(), source, scratch);
  const uint8_t* to = packed_destination(packed, from, scratch);
  const int64_t run_bytes = bytes_of(packed.destination.length, bits_);
  packed.destination.each(
      [&](int64_t element, int64_t at) { write(to + at * bits_ / 8, run_bytes, element * bits_ / 8); });
}

const uint8_t* FileReorder::packed_destination(const PackedTile& packed, const uint8_t* source,
                                               FileScratch& scratch) const {
  const int64_t size = packed.plan.destination_bytes();
  if (plan_->cast() == nullptr) {
    uint8_t* tile = scratch.tile(size);
    packed.plan.run(source, tile, 0, size);
    return tile;
  }
  uint8_t* moved = scratch.moved(size);
  packed.plan.run(source, moved, 0, size);
  const int64_t elements = packed.plan.destination_elements();
  uint8_t* tile = scratch.tile(bytes_of(elements, bits_));
  const CastChain& cast = plan_->cast()->cast();
  if (!cast.depends_on_position()) {
    cast.run(moved, tile, 0, elements);
    return tile;
  }
  const Runs& runs = packed.destination;
  runs.each([&](int64_t element, int64_t at) {
    cast.run(moved + packed_bytes(cast.from(), at), tile + packed_bytes(cast.to(), at), element, runs.length);
  });
  return tile;
}

std::pair<int64_t, int64_t> FileReorder::range_of(int64_t tile) const {
  const int64_t begin = begin_ + tile * limits_.destination;
  return {begin, std::min(begin + limits_.destination, end_)};
}

void FileReorder::run_range(const FileSource& source, uint8_t* destination, int64_t begin, int64_t end,
                            FileScratch& scratch) const {
  if (const auto copy_offset = plan_->copy_offset()) {
    source.file.read_at(destination, source.offset + *copy_offset + begin, end - begin);
  } else {
    run_part({*plan_, source, destination, begin, end}, limits_.source, scratch);
  }
}

}  // namespace tilework
