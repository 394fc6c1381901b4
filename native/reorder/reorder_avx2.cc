// The kernels of AVX2. This file is compiled for it, so it must not be entered on another processor, and must
// not define anything that others might link to: all of it but the kernels is internal.
#include "reorder/leaf/machine.h"

namespace tilework {
namespace {

// Streaming stores are not ordered with those that tell others that the work is done.
void end_streaming(const ReorderArguments& arguments) {
  if (arguments.stores == Stores::kStreaming) _mm_sfence();
}

}  // namespace

const Leaves& leaves_avx2() { return kLeaves; }

void reorder_tiles_avx2(const ReorderArguments& a) {
  run_programs(a, kLeaves);
  end_streaming(a);
}

void copy_avx2(const ReorderArguments& a) {
  copy_range(a);
  end_streaming(a);
}

}  // namespace tilework
