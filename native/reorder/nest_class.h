// What the innermost loops of a nest do, which decides the kernel. Two loops are taken out of the nest: one
// that is contiguous in the destination, and one beside which it makes a rectangle. All other loops are
// walked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layout/join.h"
#include "memory/streaming_copy.h"

namespace tilework {

enum class NestClass {
  // Source and destination storage are equal byte for byte, and neither has holes.
  kIdentity,
  // The destination is one range of the source, byte for byte.
  kView,
  // The innermost loop is contiguous on both sides.
  kRuns,
  // One loop is contiguous in the source, forwards or backwards, another in the destination.
  kTiles,
  // Anything: moved box by box (nest_box.h).
  kLoopNest,
};

// The rectangle of a nest. The loop at `column_level` runs along its columns, the innermost loop along its
// rows; the loops between the two are walked for each rectangle. In tiles a source row is contiguous, and in
// the destination a column is.
struct InnerLoops {
  NestClass nest_class = NestClass::kLoopNest;
  // Meaningless where the class is kLoopNest; absent where a run has no loop beside it.
  std::optional<size_t> column_level;
  // Tiles whose columns, or whose rows, go on in the loop around the innermost one: of a kernel of 3 x 3
  // weights, the next kernel. Together they make longer pieces of memory. Interleaved tiles are short both
  // ways: 4 inputs of 16 outputs, say, whose rows go on in the destination in the loop over outputs, and
  // whose columns go on in the source with the next row. They take two transposes. Columns that go on may
  // also be crossed: then the loop at `column_level` is the one that goes on in the source, and the one
  // around the innermost is contiguous there. Runs go on in the destination.
  enum class Chain { kNone, kColumns, kRows, kInterleaved, kRuns } chain = Chain::kNone;
  // The way back of interleaved tiles: a loop further out that goes on where the columns end in the source,
  // so that its passes are pixels of as many channels as there are columns: 16 outputs of 4 inputs, say.
  std::optional<size_t> pixel_level = std::nullopt;
};

InnerLoops inner_loops(const LoopNest& nest);

// Whether tiles touch lines of memory in parts that have left the cache when the next part comes: they have
// few elements one way, or lie so that they push each other out. Boxes with more of the line may do better;
// as no box is streamed, beyond the caches only where each line would push the one before out.
bool wastes_lines(const LoopNest& nest, const InnerLoops& inner, int64_t element_bytes, Stores stores);

// Whether tiles of a chain are small elements of lines that stay in the cache: chains are moved by lists,
// more of them at a time than a box has room for.
bool fits_lists(const LoopNest& nest, const InnerLoops& inner, int64_t element_bytes);

struct OrderedLoops {
  LoopNest nest;
  InnerLoops inner;
  // Loops from between the two of the rectangle are around them now.
  bool is_hoisted = false;
};

// The nest with the loops around its rectangles in another order, in which what shares cache lines of the
// source is moved soon after each other; none where its own order is as good. Loops between the two of the
// rectangle go around others with shorter steps in the source, where what is left writes long pieces: else
// the source would be read a part of each page at a time, and as often as there are parts.
std::optional<OrderedLoops> in_source_order(const LoopNest& nest, const InnerLoops& inner,
                                            int64_t element_bytes);

// Elements of an innermost loop that both sides keep together, and that may be moved as one: a power of two,
// at most `most`. 1 where there are none.
int64_t unit_elements(const LoopNest& nest, int64_t most);

// The nest over units of `elements`, as unit_elements allows.
LoopNest over_units(const LoopNest& nest, int64_t elements);

}  // namespace tilework
