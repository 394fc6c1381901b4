#include "layout/slice.h"

#include <string>

#include "error.h"

namespace tilework {
namespace {

// Whether all of start, start + step, ... lie in [0, extent).
bool stays_inside(int64_t start, int64_t step, int64_t count, int64_t extent) {
  if (start < 0 || start >= extent) return false;
  int64_t way = 0;
  int64_t last = 0;
  if (__builtin_mul_overflow(step, count - 1, &way) || __builtin_add_overflow(start, way, &last))
    return false;
  return last >= 0 && last < extent;
}

}  // namespace

BoundSlice bind_slice(const std::vector<int64_t>& shape, const std::optional<Slice>& slice) {
  const size_t rank = shape.size();
  BoundSlice bound{std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, 1)};
  if (!slice) return bound;
  if (slice->shape.size() != rank || slice->start.size() != rank || slice->step.size() != rank) {
    throw Error(ErrorCode::kArgument,
                "In 'slice': shape, start and step must have one number for each of the " +
                    std::to_string(rank) + " axes.");
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t start = slice->start[axis];
    const int64_t step = slice->step[axis];
    if (step == 0)
      throw Error(ErrorCode::kArgument,
                  "In 'slice': the step of axis " + std::to_string(axis) + " is 0; steps must not be 0.");
    if (shape[axis] <= 0) continue;
    if (!stays_inside(start, step, shape[axis], slice->shape[axis])) {
      throw Error(ErrorCode::kRange,
                  "In 'slice': " + std::to_string(shape[axis]) + " indices of axis " + std::to_string(axis) +
                      " from " + std::to_string(start) + " with step " + std::to_string(step) +
                      " lie outside its extent of " + std::to_string(slice->shape[axis]) + ".");
    }
    bound.start[axis] = start;
    if (shape[axis] > 1) bound.step[axis] = step;
  }
  return bound;
}

}  // namespace tilework
