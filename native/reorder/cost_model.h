// What the engine decides by numbers: every threshold of tiles, conversions, threads, files and stores, with
// its unit and its reason. Sizes of registers and of buffers inside a leaf stay with the leaf.
// docs/performance.md says on which machines they were measured.
#pragma once

#include <cstdint>
#include <string>

#include "cpu/cache.h"
#include "memory/streaming_copy.h"

namespace tilework {

struct Tiling;

// ---- Tiles: which loops, and how much of them (tiling.cc)

// Bytes that rows, and columns, of a tile should reach: a cache line.
inline constexpr int64_t kTileEdgeBytes = kLineBytes;
// The first loop of a list stays whole up to this many bytes, or units: cutting it would only add states.
inline constexpr int64_t kMaxEdgeBytes = 256;
inline constexpr int64_t kMaxEdgeUnits = 16;
// The same for a loop behind others in its list, whose blocks cannot be joined again, and for the whole tile:
// source and destination of a tile stay in the L1 cache.
inline constexpr int64_t kMaxListedBytes = 1024;
inline constexpr int64_t kMaxTileBytes = 16 << 10;
// A unit from this size on is copied by itself; of smaller ones, at least so many make a row or a column, so
// that a leaf chooses in which order lines are used up.
inline constexpr int64_t kCopiedUnitBytes = 1024;
inline constexpr int64_t kFewestUnits = 4;
// A list that reaches so many contiguous bytes fills the narrowest register.
inline constexpr int64_t kRegisterBytes = 16;
// Rows end with a block that overlaps the one before. Where less of their registers is of use, rows of one
// loop take the next one too: 49 units of 2 bytes, blocks of weights to oiyx, were 1.26 to 1.46 times as
// fast.
inline constexpr int64_t kBlockRowBytes = 32;
inline constexpr int64_t kLeastRowPercent = 90;
// Columns with gaps: a loop with a longer step in the source reads a line for each unit anyway, and one of
// fewer iterations fills no vector.
inline constexpr int64_t kMaxSparseStep = 32;
inline constexpr int64_t kFewestSparseColumns = 8;
// Bytes between two units that are read with them and dropped: a register.
inline constexpr int64_t kMaxGapBytes = 16;
// Outer loops: steps beyond a page are all far, and the destination is written in pieces of this size before
// a loop with shorter steps in the source is preferred.
inline constexpr int64_t kFarStepBytes = 4096;
inline constexpr int64_t kLongPieceBytes = 256;
// A call of a cast has a cost: the edge of a tile on the side that is cast.
inline constexpr int64_t kCastEdgeBytes = 4 * kTileEdgeBytes;

// Instructions per byte that move a tile in the register blocks that fit it best.
double instructions_per_byte(const Tiling& tiling);

// ---- Conversions: how much passes through the buffer at a time (panel_conversion.cc)

// Half of the smallest L1 cache, 32 KiB.
inline constexpr int64_t kPanelBufferBytes = 16 << 10;
// Bytes that one call of a cast costs: longer units need no buffer.
inline constexpr int64_t kLongUnitBytes = 512;
// Bytes of a row, or a column, that are cast by one call, where there are as many.
inline constexpr int64_t kCastCallBytes = 256;
// Shorter rows, or columns, that follow each other without gaps are cast together.
inline constexpr int64_t kMostDenseBytes = 512;

// ---- Threads (parts.cc)

// Bytes of source and destination from which on a second thread gains more than it costs.
inline constexpr int64_t kThreadedBytes = int64_t{256} << 10;
// Bytes of a part's destination: against the least, to start a part costs next to nothing; the most takes a
// millisecond, after which a run can be stopped.
inline constexpr int64_t kLeastPartBytes = int64_t{64} << 10;
inline constexpr int64_t kMostPartBytes = int64_t{4} << 20;
// Parts for each thread, so that one that is held up does not hold up the rest; fewer where parts would have
// less than 1 MiB, as a run is over before that gains anything: four took up to 1.4 times as long.
inline constexpr int64_t kPartsPerThread = 4;
inline constexpr int64_t kLeastOfSeveralBytes = int64_t{1} << 20;

// ---- Files (reorder_file.cc, file_tiles.cc, source_ranges.cc)

// What a tile has in memory: 2 MiB a thread together. The larger the tile, the longer the runs that it reads
// and writes and the fewer the system calls; from about half a MiB on little is gained, and a thread's share
// of the second-level cache is not larger. The source has more room, as it comes with gaps and whole pages.
inline constexpr int64_t kFileTileBytes = int64_t{768} << 10;
inline constexpr int64_t kFileSourceBytes = int64_t{1152} << 10;
// A system call costs about as much as copying 4 KiB, and memory comes in pages of that size: to leave out a
// smaller gap would save nothing.
inline constexpr int64_t kMergeGapBytes = 4096;
// A gap is read through as long as the window is filled by a single call with at least a quarter of use: that
// costs less than the page faults of a sparse buffer.
inline constexpr int64_t kMaxGapShare = 4;

// ---- Stores

// The memory of this machine as the choice of stores sees it.
struct MemoryFacts {
  // Of the largest cache that one core reaches, as the system reports it.
  int64_t last_level_bytes;
  // Measured once, when first asked: streaming stores are so slow here that they never pay. It happens where
  // they are emulated.
  bool (*is_streaming_slow)();
};

const MemoryFacts& memory_facts();

// Virtual machines report caches of a whole host, up to 480 MiB, of which one core has little: no copy that
// was measured was faster with plain stores from 64 MiB of source and destination on, and of 49 MiB, where
// copies are equal, reorders took up to twice as long with them.
inline constexpr int64_t kMostCacheBytes = int64_t{64} << 20;

// Bytes of source and destination from which on a whole run streams, on so many threads. Others use a part of
// the cache: from half of it on a thread's plain stores are no faster, even for a copy. The buffers in which
// streamed lines wait are few, and hardware threads share them: there plain stores are faster up to three
// quarters.
int64_t streaming_bytes(const MemoryFacts& facts, size_t threads);

// For a caller that writes a whole destination from memory to memory.
Stores choose_stores(int64_t bytes, size_t threads, const MemoryFacts& facts = memory_facts());
// The numbers by which that was chosen, for explain().
std::string stores_reason(int64_t bytes, size_t threads, const MemoryFacts& facts = memory_facts());

}  // namespace tilework
