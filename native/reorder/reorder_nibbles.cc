#include <cstring>

#include "reorder/kernels.h"
#include "reorder/nibbles.h"

namespace tilework {
namespace {

void move_nibbles(const ReorderArguments& a, TransposeListed transpose_bytes) {
  std::memset(a.destination, 0, static_cast<size_t>(a.end - a.begin));
  const ReorderPlan& plan = a.plan;
  const int64_t begin = a.begin * 2;
  const int64_t end = std::min(a.end * 2, plan.destination_elements());
  for (size_t i = 0; i < plan.nests().size(); ++i) {
    const LoopNest& nest = plan.nests()[i];
    if (nest.all_zero) continue;
    const InnerLoops& inner = plan.inner_loops()[i];
    if (has_long_runs(nest, inner)) {
      NestWalk<NibbleRuns, NoRectangles>(nest, inner, a, begin, end).run();
      continue;
    }
    NibbleMover mover(a, plan.stage(i), plan.transpose(i), transpose_bytes, *plan.box(i), begin, end);
    BoxWalk<NibbleMover>(nest, *plan.box(i), {}, begin, end, mover).run();
  }
}

}  // namespace

void reorder_x4_boxes(const ReorderArguments& a) { move_nibbles(a, transpose_listed_x8); }
#if defined(__x86_64__)
void reorder_x4_boxes__avx2(const ReorderArguments& a) { move_nibbles(a, transpose_listed_x8__avx2); }
#endif

}  // namespace tilework
