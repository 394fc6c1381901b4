// Runs a plan on a source that stays in its file: tile by tile of the destination, of which each reads by
// descriptor what it is made of. A thread needs two small buffers for it, however large the tensor is, and a
// file that is truncated meanwhile is an error, where a map would be a signal.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "io/input_file.h"
#include "io/output_file.h"
#include "reorder/plan.h"
#include "reorder/sparse_buffer.h"

namespace tilework {

// Destination bytes of a tile, and source bytes that it may have in memory: 2 MiB a thread together. The
// larger the tile, the longer the runs that it reads and the fewer the system calls; from about half a MiB on
// nothing is gained, and a thread's share of the second-level cache is not larger. The source has more room,
// as its ranges come with gaps and whole pages.
inline constexpr int64_t kFileTileBytes = int64_t{768} << 10;
inline constexpr int64_t kFileWindowBytes = int64_t{1280} << 10;

// Buffers of one thread. They get memory on first use.
class FileScratch {
 public:
  // kFileTileBytes for a part of the destination.
  uint8_t* tile();
  // kFileWindowBytes for bytes of the source that stand close together.
  uint8_t* window();
  // A place for each byte of a source of this size.
  SparseBuffer& sparse(int64_t size);

 private:
  std::unique_ptr<SparseBuffer> tile_;
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
  void give_back(std::unique_ptr<FileScratch> scratch);

  std::mutex mutex_;
  std::vector<std::unique_ptr<FileScratch>> idle_;
};

// The storage of a plan's source, from `offset` of a file on.
struct FileSource {
  const InputFile& file;
  int64_t offset;
};

// Writes destination bytes [begin, end) to `destination`; any size. Any thread, with a scratch of its own.
// Errors: those of InputFile::read_at, ERR_LIMIT.
void run_from_file(const ReorderPlan& plan, const FileSource& source, uint8_t* destination, int64_t begin,
                   int64_t end, FileScratch& scratch);

// Destination bytes [begin, end), at most kFileTileBytes, to `position` of a file. Errors: as run_from_file,
// and those of OutputFile::write.
void run_tile_to_file(const ReorderPlan& plan, const FileSource& source, OutputFile& output, int64_t begin,
                      int64_t end, int64_t position, FileScratch& scratch);

}  // namespace tilework
