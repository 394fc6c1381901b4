// Generates the OpenCL C text of a plan's kernel from the same loop nests as the CPU's.
//
// A work-item computes one word of the destination. From its slot it derives the iteration of every loop,
// since each destination stride divides the remainder of the one before. From these follows the source
// offset, or that the slot is a hole, which is zero. So any range of the destination can be computed alone,
// and every bit is written once.
//
// A small plan is a table of numbers, interpreted by one kernel for all plans that is built once per element
// width. A large plan gets its own kernel with all numbers as literals: divisions become cheap, small
// elements are packed into 32-bit words, and a transpose goes through local memory in tiles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "opencl/device_moves.h"

namespace tilework::cl {

enum class KernelForm {
  // Loops in a table.
  kTable,
  // Loops as literals; one word per work-item.
  kWords,
  // Tiles through local memory.
  kTiles,
};

struct KernelText {
  KernelForm form = KernelForm::kTable;
  // Name of what the innermost loops do, for explanations and measurements.
  const char* shape = "gather";
  std::string source;
  // Content of the buffer that the kernel reads beside the source: element conversions, loops, or lookup
  // tables.
  std::vector<int64_t> table;
  // Destination elements per work-item (kTable, kWords).
  int64_t elements_per_word = 1;
  // Bytes of a word.
  int64_t word_bytes = 1;
  // kTiles: each group of kTileGroup work-items computes a tile; groups_per_iteration of them make one
  // iteration of the outermost loop. Iteration i writes at most iteration_span slots from destination_base +
  // i * iteration_stride on.
  int64_t groups_per_iteration = 0;
  int64_t iterations = 0;
  int64_t iteration_stride = 1;
  int64_t iteration_span = 0;
  int64_t destination_base = 0;
};

inline constexpr int64_t kTileGroup = 128;
// Largest local memory of a tile.
inline constexpr int64_t kTileBytes = 16 << 10;

// Errors: ERR_UNSUPPORTED (see cast_numbers), ERR_LIMIT for too many table entries.
KernelText kernel_text(const DeviceMoves& moves, KernelForm form);

// The best form for a large plan.
KernelForm form_of(const DeviceMoves& moves);

inline constexpr const char* kKernelName = "reorder";

}  // namespace tilework::cl
