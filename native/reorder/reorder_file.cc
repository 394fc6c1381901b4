#include "reorder/reorder_file.h"

#include <algorithm>
#include <utility>

#include "reorder/source_ranges.h"

namespace tilework {
namespace {

// A gap is read through as long as the window is filled by a single call with at least a quarter of use: that
// costs less than the page faults of a sparse buffer.
constexpr int64_t kMaxGapShare = 4;

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

// One tile, or a part of one.
struct Part {
  const ReorderPlan& plan;
  const FileSource& source;
  uint8_t* destination;
  int64_t begin;
  int64_t end;
};

void run_in_window(const Part& part, ByteRange hull, FileScratch& scratch) {
  uint8_t* window = scratch.window();
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

void run_part(const Part& part, FileScratch& scratch) {
  const std::vector<ByteRange> ranges = source_ranges(part.plan, part.begin, part.end);
  if (ranges.empty()) return part.plan.run(nullptr, part.destination, part.begin, part.end);
  const ByteRange hull{ranges.front().begin, ranges.back().end};
  const int64_t resident = resident_bytes(ranges);
  if (hull.size() <= kFileWindowBytes && hull.size() <= kMaxGapShare * resident) {
    return run_in_window(part, hull, scratch);
  }
  if (resident <= kFileWindowBytes) return run_in_sparse(part, ranges, scratch);
  // Ends at the latest with one element, which is on one page or two.
  const int64_t unit = std::max(part.plan.element_bits() / 8, 1);
  const int64_t middle = part.begin + (part.end - part.begin) / unit / 2 * unit;
  run_part({part.plan, part.source, part.destination, part.begin, middle}, scratch);
  run_part({part.plan, part.source, part.destination + (middle - part.begin), middle, part.end}, scratch);
}

uint8_t* memory_of(std::unique_ptr<SparseBuffer>& buffer, int64_t size) {
  if (buffer == nullptr || buffer->size() < size) {
    buffer.reset();
    buffer = std::make_unique<SparseBuffer>(size);
  }
  return buffer->fill(0, size);
}

}  // namespace

uint8_t* FileScratch::tile() { return memory_of(tile_, kFileTileBytes); }

uint8_t* FileScratch::window() { return memory_of(window_, kFileWindowBytes); }

SparseBuffer& FileScratch::sparse(int64_t size) {
  if (sparse_ == nullptr || sparse_->size() < size) {
    sparse_.reset();
    sparse_ = std::make_unique<SparseBuffer>(size);
  }
  // A tile needs one of the two, and a thread has memory for one.
  if (window_ != nullptr) window_->clear();
  return *sparse_;
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

void FileScratchPool::give_back(std::unique_ptr<FileScratch> scratch) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(scratch));
}

void run_from_file(const ReorderPlan& plan, const FileSource& source, uint8_t* destination, int64_t begin,
                   int64_t end, FileScratch& scratch) {
  if (begin >= end) return;
  if (const auto copy_offset = plan.copy_offset()) {
    source.file.read_at(destination, source.offset + *copy_offset + begin, end - begin);
    return;
  }
  for (int64_t at = begin; at < end; at += kFileTileBytes) {
    run_part({plan, source, destination + (at - begin), at, std::min(at + kFileTileBytes, end)}, scratch);
  }
}

void run_tile_to_file(const ReorderPlan& plan, const FileSource& source, OutputFile& output, int64_t begin,
                      int64_t end, int64_t position, FileScratch& scratch) {
  uint8_t* tile = scratch.tile();
  run_from_file(plan, source, tile, begin, end, scratch);
  output.write(tile, end - begin, position);
}

}  // namespace tilework
