#include "reorder/cast_tiles.h"

#include "cpu/isa.h"

namespace tilework {

CastLeaf cast_leaf(Dtype from, Dtype to) {
#if defined(__x86_64__)
  if (can_run(Isa::kAvx2)) return cast_leaf__avx2(from, to);
#else
  static_cast<void>(from);
  static_cast<void>(to);
#endif
  return nullptr;
}

}  // namespace tilework
