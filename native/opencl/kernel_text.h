// The OpenCL C text of a plan's kernel, made from the same loop nests as the CPU's.
//
// A work-item makes one word of the destination. From the place of an element there it finds the passes of
// all loops, as destination strides divide each other's remainders, from these the place in the source, or
// that there is none: a hole, which is zero. So any range of the destination can be made alone, and every bit
// of it is written once.
//
// A small plan is a table of numbers that one kernel for all of them walks through; it is built once for a
// width of elements. A large plan is worth a kernel of its own, in which all numbers are literals, which
// makes divisions cheap, small elements are gathered to words of 32 bits, and a transpose goes through local
// memory by tiles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "opencl/device_moves.h"

namespace tilework::cl {

enum class KernelForm {
  // Loops in a table.
  kTable,
  // Loops as literals; a word at a time.
  kWords,
  // Tiles through local memory.
  kTiles,
};

struct KernelText {
  KernelForm form = KernelForm::kTable;
  // What the innermost loops of the nest do, in a word or two, for explanations and measurements.
  const char* shape = "gather";
  std::string source;
  // Numbers for the buffer that the kernel reads beside the source: what becomes of elements, the loops, or
  // the lookup tables.
  std::vector<int64_t> table;
  // Destination elements that a work-item makes (kTable, kWords).
  int64_t elements_per_word = 1;
  // Bytes of a word.
  int64_t word_bytes = 1;
  // kTiles: groups of kTileGroup work-items make a tile each, so many for a pass of the outermost loop. Pass
  // i makes slots from destination_base + i * pass_stride on, up to pass_span of them.
  int64_t groups_per_pass = 0;
  int64_t passes = 0;
  int64_t pass_stride = 1;
  int64_t pass_span = 0;
  int64_t destination_base = 0;
};

inline constexpr int64_t kTileGroup = 256;
// Local memory that a tile takes at most.
inline constexpr int64_t kTileBytes = 16 << 10;

// Errors: ERR_UNSUPPORTED (see cast_numbers), ERR_LIMIT for tables that have too many entries.
KernelText kernel_text(const DeviceMoves& moves, KernelForm form);

// The best form for a large plan.
KernelForm form_of(const DeviceMoves& moves);

inline constexpr const char* kKernelName = "reorder";

}  // namespace tilework::cl
