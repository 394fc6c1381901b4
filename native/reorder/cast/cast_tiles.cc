#include "reorder/cast/cast_tiles.h"

#include "cpu/features.h"
#include "cpu/isa.h"

namespace tilework {

CastLeaf cast_leaf(Dtype from, Dtype to) {
#if defined(__x86_64__)
  static const bool has_avx512 = can_run(Isa::kAvx512) && cpu_has("avx512vl") && cpu_has("avx512dq");
  if (has_avx512) {
    const CastLeaf leaf = cast_leaf_avx512(from, to);
    if (leaf.run != nullptr) return leaf;
  }
  if (can_run(Isa::kAvx2)) return cast_leaf_avx2(from, to);
#else
  static_cast<void>(from);
  static_cast<void>(to);
#endif
  return {};
}

}  // namespace tilework
