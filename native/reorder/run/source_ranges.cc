#include "reorder/run/source_ranges.h"

#include "reorder/cast/fused_cast.h"

namespace tilework {

std::vector<ByteRange> source_ranges(const ReorderPlan& plan, int64_t begin, int64_t end, int64_t gap) {
  if (begin >= end) return {};
  if (const FusedCast* cast = plan.cast()) {
    return source_ranges(cast->moves(), cast->moved_bytes(begin), cast->moved_bytes(end), gap);
  }
  if (const auto offset = plan.copy_offset()) return {{*offset + begin, *offset + end}};
  RangeSet all(gap, kMaxSourceRanges);
  for (const auto& program : plan.programs()) {
    const int64_t per_byte = program->offsets_per_byte();
    RangeSet read(gap * per_byte, kMaxSourceRanges);
    program->note(begin, end, {}, {&read, nullptr});
    for (const ByteRange& range : whole_bytes(read.take(), per_byte)) all.add(range.begin, range.size());
  }
  return all.take();
}

}  // namespace tilework
