// Tiles whose elements change their type in the registers that transpose them. panel_conversion.cc uses them
// where a panel has even rows and columns and both are at least a register block long; other panels pass
// through its buffer.
#pragma once

#include "dtype/dtypes.h"
#include "reorder/plan/panel.h"

namespace tilework {

// Panels whose offsets count bytes: those of the source in `column_step` and in the distances of rows, those
// of the destination in the others. An element with all bits zero keeps them.
struct CastLeaf {
  // Whether a panel is at least a block, and no other way is faster.
  bool (*fits)(const Panel&) = nullptr;
  // Moves and casts all steps of a panel that fits.
  void (*run)(const Panel&) = nullptr;
};

// Null pointers where the types have no such leaf. The options of the cast make no difference to those that
// have.
CastLeaf cast_leaf(Dtype from, Dtype to);

// Of AVX2; for CPUs that have it.
CastLeaf cast_leaf_avx2(Dtype from, Dtype to);
// Of AVX-512 with VL and DQ, for some types also BF16; null where the CPU lacks that, or AVX2 is as fast.
CastLeaf cast_leaf_avx512(Dtype from, Dtype to);

}  // namespace tilework
