#include "reorder/run/reorder_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/cast/fused_cast.h"
#include "reorder/run/source_ranges.h"

namespace tilework {
namespace {

int64_t resident_bytes(const std::vector<ByteRange>& ranges) {
  int64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += SparseBuffer::resident_bytes(range.begin, range.size());
  return bytes;
}

ByteRange hull_of(const std::vector<ByteRange>& ranges) { return {ranges.front().begin, ranges.back().end}; }

// Whether a window that is read by a single call has little else.
bool fills_window(const std::vector<ByteRange>& ranges, int64_t most_bytes) {
  const int64_t hull = hull_of(ranges).size();
  return hull <= most_bytes && hull <= kMaxGapShare.times(resident_bytes(ranges));
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
  TILEWORK_WAY("files: a window");
  uint8_t* window = scratch.window(hull.size());
  part.source.file.read_at(window, part.source.offset + hull.begin, hull.size());
  part.plan.run(storage_address(window, hull.begin), part.destination, part.begin, part.end);
}

void run_in_sparse(const Part& part, const std::vector<ByteRange>& ranges, FileScratch& scratch) {
  TILEWORK_WAY("files: a sparse buffer");
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

// What a part reads of the source.
struct Reads {
  std::vector<ByteRange> ranges;
  // Memory that it takes.
  int64_t bytes = 0;
  bool in_window = false;
};

Reads reads_of(const Part& part, int64_t most_bytes) {
  Reads reads{source_ranges(part.plan, part.begin, part.end)};
  if (reads.ranges.empty()) return reads;
  reads.in_window = fills_window(reads.ranges, most_bytes);
  reads.bytes = reads.in_window ? hull_of(reads.ranges).size() : resident_bytes(reads.ranges);
  return reads;
}

void run_part(const Part& part, const Reads& reads, FileScratch& scratch) {
  if (reads.ranges.empty()) return part.plan.run(nullptr, part.destination, part.begin, part.end);
  if (!reads.in_window) return run_in_sparse(part, reads.ranges, scratch);
  run_in_window(part, hull_of(reads.ranges), scratch);
}

// In parts that read at most so much: each begins with the size of the one before, as finding out what a part
// reads takes as long as moving it.
void run_parts(const Part& whole, int64_t most_bytes, FileScratch& scratch) {
  const int64_t unit = whole.plan.range_quantum();
  int64_t size = whole.end - whole.begin;
  for (int64_t at = whole.begin; at < whole.end;) {
    const Part part{whole.plan, whole.source, whole.destination + (at - whole.begin), at,
                    std::min(at + size, whole.end)};
    const Reads reads = reads_of(part, most_bytes);
    const int64_t half = (part.end - part.begin) / unit / 2 * unit;
    if (reads.bytes > most_bytes && half > 0) {
      TILEWORK_WAY("files: halves");
      size = half;
      continue;
    }
    run_part(part, reads, scratch);
    at = part.end;
    if (reads.bytes <= most_bytes / 2) size = std::min(2 * size, whole.end - whole.begin);
  }
}

// The plan that moves the elements of a plan, at the width of the source.
const ReorderPlan& moves_of(const ReorderPlan& plan) {
  return plan.cast() == nullptr ? plan : plan.cast()->moves();
}

int64_t moved_bytes(const ReorderPlan& plan, int64_t at) {
  return plan.cast() == nullptr ? at : plan.cast()->moved_bytes(at);
}

// Whether a range is made of pieces from all over the source: a sparse buffer would have a page for each.
bool is_scattered(const ReorderPlan& plan, int64_t begin, int64_t end, int64_t most_bytes) {
  if (plan.source_bytes() <= most_bytes || plan.copy_offset()) return false;
  const std::vector<ByteRange> ranges = source_ranges(plan, begin, end);
  return !ranges.empty() && !fills_window(ranges, most_bytes);
}

// Of a plan of one program. None where pieces of them might begin inside a byte of what they are cast to, or
// where holes have to be looked for; and of a range that is a single tile, which reads only what it needs, if
// that does not lie scattered, or is much less than whole iterations of the loops.
std::optional<FileTiles> tiles_of(const ReorderPlan& plan, int64_t begin, int64_t end, TileLimits limits) {
  const ReorderPlan& moves = moves_of(plan);
  if (moves.programs().size() != 1) return std::nullopt;
  const bool is_single = end - begin <= limits.destination;
  if (is_single && !is_scattered(plan, begin, end, limits.source)) return std::nullopt;
  const bool has_half_byte = moves.element_bits() == 4 && moves.destination_elements() % 2 != 0;
  if (has_half_byte) return std::nullopt;
  if (const FusedCast* cast = plan.cast()) {
    const int64_t from = info_of(cast->cast().from()).bits;
    const int64_t to = info_of(cast->cast().to()).bits;
    const bool may_cut_bytes = to < 8 && (to < from || 8 % to != 0);
    if (may_cut_bytes || cast->must_find_holes()) return std::nullopt;
    // What is cast must not take more room than a tile either.
    if (to > from) limits.destination = std::max<int64_t>(limits.destination / to * from, 1);
  }
  const ByteRange moved{moved_bytes(plan, begin), moved_bytes(plan, end)};
  auto tiles = FileTiles::cut(moves.programs().front(), moved.begin, moved.end, limits);
  if (is_single && tiles && tiles->cut_bytes() > kMaxGapShare.times(moved.size())) return std::nullopt;
  return tiles;
}

std::vector<PackedPiece> within(const ByteRange& storage, std::vector<PackedPiece> pieces) {
  for (PackedPiece& piece : pieces) {
    const int64_t begin = std::max(piece.storage, storage.begin);
    const int64_t end = std::min(piece.storage + piece.size, storage.end);
    piece = {begin, piece.packed + begin - piece.storage, end - begin};
  }
  std::erase_if(pieces, [](const PackedPiece& piece) { return piece.size <= 0; });
  return pieces;
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
    : plan_(std::move(plan)),
      begin_(begin),
      end_(end),
      limits_(limits),
      tiles_(tiles_of(*plan_, begin, end, limits)) {
  // Tiles without a cut begin at whole elements.
  limits_.destination = ceil_div(limits.destination, plan_->range_quantum()) * plan_->range_quantum();
}

int64_t FileReorder::tiles() const {
  return tiles_ ? tiles_->count() : ceil_div(end_ - begin_, limits_.destination);
}

void FileReorder::run_tile(int64_t tile, const FileSource& source, uint8_t* destination,
                           FileScratch& scratch) const {
  if (tiles_) {
    run_packed(tile, source, scratch, [&](const uint8_t* bytes, int64_t size, int64_t at) {
      std::memcpy(destination + (at - begin_), bytes, static_cast<size_t>(size));
    });
  } else {
    const auto [begin, end] = range_of(tile);
    run_range(source, destination + (begin - begin_), begin, end, scratch);
  }
}

void FileReorder::run_tile(int64_t tile, const FileSource& source, OutputFile& output, int64_t position,
                           FileScratch& scratch) const {
  if (tiles_) {
    run_packed(tile, source, scratch, [&](const uint8_t* bytes, int64_t size, int64_t at) {
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
void FileReorder::run_packed(int64_t number, const FileSource& source, FileScratch& scratch,
                             Write write) const {
  const FileTiles::Tile tile = tiles_->at(number);
  const ByteRange range{moved_bytes(*plan_, begin_), moved_bytes(*plan_, end_)};
  const std::vector<PackedPiece> pieces = within(range, tile.written);
  if (pieces.empty()) return;
  TILEWORK_WAY("files: packed tiles");
  uint8_t* window = scratch.window(tiles_->source_bytes());
  read_tile(tile, source, window);
  const FusedCast* cast = plan_->cast();
  const int64_t size = tiles_->destination_bytes();
  uint8_t* moved = cast == nullptr ? scratch.tile(size) : scratch.moved(size);
  tile.program->run_at(tile.position, window, moved);
  if (cast == nullptr) {
    for (const PackedPiece& piece : pieces) write(moved + piece.packed, piece.size, piece.storage);
    return;
  }
  const int64_t from = info_of(cast->cast().from()).bits;
  const Dtype to = cast->cast().to();
  uint8_t* changed = scratch.tile(packed_bytes(to, size * 8 / from));
  for (const PackedPiece& piece : pieces) {
    const int64_t first = piece.storage * 8 / from;
    const int64_t count = piece.size * 8 / from;
    uint8_t* at = changed + packed_bytes(to, piece.packed * 8 / from);
    cast->cast().run(moved + piece.packed, at, first, count);
    write(at, packed_bytes(to, count), packed_bytes(to, first));
  }
}

void FileReorder::read_tile(const FileTiles::Tile& tile, const FileSource& source, uint8_t* window) const {
  for (const PackedPiece& piece : within({0, plan_->source_bytes()}, tile.read)) {
    source.file.read_at(window + piece.packed, source.offset + piece.storage, piece.size);
  }
}

std::pair<int64_t, int64_t> FileReorder::range_of(int64_t tile) const {
  const int64_t begin = begin_ + tile * limits_.destination;
  return {begin, std::min(begin + limits_.destination, end_)};
}

void FileReorder::run_range(const FileSource& source, uint8_t* destination, int64_t begin, int64_t end,
                            FileScratch& scratch) const {
  if (const auto copy_offset = plan_->copy_offset()) {
    source.file.read_at(destination, source.offset + *copy_offset + begin, end - begin);
    plan_->clear_unused_bits(destination, begin, end);
  } else {
    run_parts({*plan_, source, destination, begin, end}, limits_.source, scratch);
  }
}

}  // namespace tilework
