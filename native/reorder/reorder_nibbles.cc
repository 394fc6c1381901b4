#include <cstring>
#include <optional>

#include "reorder/kernels.h"
#include "reorder/nibbles.h"

namespace tilework {
namespace {

// Whole boxes of rectangles write each byte at once.
bool adds_halves(const ReorderArguments& a) {
  const std::optional<int64_t> bytes = a.plan.bytes_of_whole_boxes();
  return !bytes || a.begin % *bytes != 0 || a.end % *bytes != 0;
}

void move_nibbles(const ReorderArguments& a, TransposeNibbles transpose_nibbles) {
  if (adds_halves(a)) std::memset(a.destination, 0, static_cast<size_t>(a.end - a.begin));
  const ReorderPlan& plan = a.plan;
  const int64_t begin = a.begin * 2;
  const int64_t end = std::min(a.end * 2, plan.destination_elements());
  for (size_t i = 0; i < plan.nests().size(); ++i) {
    const LoopNest& nest = plan.nests()[i];
    if (nest.all_zero) continue;
    if (has_long_runs(nest)) {
      NestWalk<NibbleRuns>(nest, a.source, a.destination, begin, end).run();
      continue;
    }
    NibbleMover mover(a, i, transpose_nibbles, begin, end);
    BoxWalk<NibbleMover>(nest, *plan.box(i), {}, begin, end, mover).run();
  }
}

}  // namespace

void reorder_x4_boxes(const ReorderArguments& a) { move_nibbles(a, transpose_listed_x4); }
#if defined(__x86_64__)
void reorder_x4_boxes__avx2(const ReorderArguments& a) { move_nibbles(a, transpose_listed_x4__avx2); }
#endif

}  // namespace tilework
