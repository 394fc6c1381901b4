// Runs a plan on a source that stays in its file: tile by tile of the destination, of which each reads by
// descriptor what it is made of. A thread needs two small buffers for it, however large the tensor is, and a
// file that is truncated meanwhile is an error, where a map would be a signal.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "io/input_file.h"
#include "io/output_file.h"
#include "memory/sparse_buffer.h"
#include "policy/thresholds.h"
#include "reorder/plan/plan.h"
#include "reorder/run/file_tiles.h"

namespace tilework {

inline constexpr TileLimits kFileTileLimits{kFileTileBytes.value, kFileSourceBytes.value};

// Buffers of one thread. They get memory on first use.
class FileScratch {
 public:
  // Memory for a tile of the destination.
  uint8_t* tile(int64_t size);
  // Memory for a tile of the destination before it is cast.
  uint8_t* moved(int64_t size);
  // Memory for the source of a tile, packed or one range.
  uint8_t* window(int64_t size);
  // A place for each byte of a source of this size.
  SparseBuffer& sparse(int64_t size);

 private:
  std::unique_ptr<SparseBuffer> tile_;
  std::unique_ptr<SparseBuffer> moved_;
  std::unique_ptr<SparseBuffer> window_;
  std::unique_ptr<SparseBuffer> sparse_;
};

// Scratch buffers that the jobs of a process share. A tile borrows one, so there are never more than threads
// that run tiles, however many jobs there are; they are freed with the last job.
class FileScratchPool {
 public:
  class Lease {
   public:
    explicit Lease(FileScratchPool& pool) : pool_(pool), scratch_(pool.take()) {}
    ~Lease() { pool_.give_back(std::move(scratch_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    FileScratch& operator*() const { return *scratch_; }

   private:
    FileScratchPool& pool_;
    std::unique_ptr<FileScratch> scratch_;
  };

  // The pool of the process, made with its first user.
  static std::shared_ptr<FileScratchPool> share();

 private:
  std::unique_ptr<FileScratch> take();
  void give_back(std::unique_ptr<FileScratch> scratch) noexcept;

  std::mutex mutex_;
  std::vector<std::unique_ptr<FileScratch>> idle_;
};

// The storage of a plan's source, from `offset` of a file on.
struct FileSource {
  const InputFile& file;
  int64_t offset;
};

// Destination bytes [begin, end) of a plan, cut into tiles, which any threads may run in any order.
class FileReorder {
 public:
  // `plan.check_range` holds.
  FileReorder(std::shared_ptr<const ReorderPlan> plan, int64_t begin, int64_t end,
              TileLimits limits = kFileTileLimits);

  int64_t tiles() const;
  // Whether tiles are blocks of the loops, packed.
  bool is_packed() const { return tiles_.has_value(); }
  // Writes a tile to its place in `destination`, where byte `begin` stands first. Errors: those of
  // InputFile::read_at, ERR_LIMIT.
  void run_tile(int64_t tile, const FileSource& source, uint8_t* destination, FileScratch& scratch) const;
  // Writes a tile to a file, where byte `begin` stands at `position`. Errors: also those of
  // OutputFile::write.
  void run_tile(int64_t tile, const FileSource& source, OutputFile& output, int64_t position,
                FileScratch& scratch) const;

 private:
  // Calls write(bytes, size, destination byte) for each piece of a tile that lies in the range.
  template <class Write>
  void run_packed(int64_t tile, const FileSource& source, FileScratch& scratch, Write write) const;
  void read_tile(const FileTiles::Tile& tile, const FileSource& source, uint8_t* window) const;
  // The tile as a range of the destination.
  std::pair<int64_t, int64_t> range_of(int64_t tile) const;
  void run_range(const FileSource& source, uint8_t* destination, int64_t begin, int64_t end,
                 FileScratch& scratch) const;

  std::shared_ptr<const ReorderPlan> plan_;
  int64_t begin_;
  int64_t end_;
  TileLimits limits_;
  // Absent where tiles are ranges: for copies, for what is no larger than a tile and not scattered over the
  // source, and for plans that blocks of loops cannot cut.
  std::optional<FileTiles> tiles_;
};

}  // namespace tilework
