// Comparisons of numbers, several pairs at a time. Included by one file per instruction set.
// Everything has internal linkage: the linker must not replace a template instance by one compiled for
// another CPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "dtype/difference_kernels.h"

namespace tilework {
namespace {

// Every fourth pair goes to the same lane, which has its own sums: the order of additions is the same for
// every instruction set. The vector types of GCC and Clang become registers of the target, several where it
// has none of this size; loops over lanes stay scalar code, as compilers do not vectorise so many sums at
// once.
constexpr int kDifferenceLanes = 4;
using DifferenceLanes = double __attribute__((vector_size(32)));
using LaneCounts = int64_t __attribute__((vector_size(32)));

using FloatLanes = float __attribute__((vector_size(16)));

// References, because the calling convention for such values depends on the instruction set.
inline void load_lanes(const float* numbers, DifferenceLanes& lanes) {
  FloatLanes loaded;
  std::memcpy(&loaded, numbers, sizeof(loaded));
  lanes = __builtin_convertvector(loaded, DifferenceLanes);
}

inline void load_lanes(const double* numbers, DifferenceLanes& lanes) {
  std::memcpy(&lanes, numbers, sizeof(lanes));
}

struct LaneSums {
  LaneCounts different{};
  LaneCounts beyond{};
  DifferenceLanes largest_error{};
  DifferenceLanes largest_relative_error{};
  DifferenceLanes errors{};
  DifferenceLanes squared_errors{};
  DifferenceLanes squared_reference{};
  DifferenceLanes squared_other{};
  DifferenceLanes products{};
  // 0 while all numbers are finite, else NaN.
  DifferenceLanes probe{};
};

// Products and sums are separate statements: a compiler that contracts an expression to a fused multiply-add
// would move the border of the tolerance.
inline void take_lanes(LaneSums& sums, const DifferenceLanes& a, const DifferenceLanes& b,
                       const Tolerance& tolerance) {
  const DifferenceLanes difference = b - a;
  const DifferenceLanes error = difference < 0 ? -difference : difference;
  const DifferenceLanes size = a < 0 ? -a : a;
  const DifferenceLanes allowance = size * tolerance.relative;
  const DifferenceLanes limit = allowance + tolerance.absolute;
  const DifferenceLanes quotient = error / size;
  const DifferenceLanes relative = size > 0 ? quotient : DifferenceLanes{};
  // A comparison that holds is -1.
  sums.different -= a != b;
  sums.beyond -= error > limit;
  sums.largest_error = error > sums.largest_error ? error : sums.largest_error;
  sums.largest_relative_error =
      relative > sums.largest_relative_error ? relative : sums.largest_relative_error;
  sums.errors += error;
  sums.squared_errors += error * error;
  sums.squared_reference += a * a;
  sums.squared_other += b * b;
  sums.products += a * b;
  sums.probe += a * 0.0 + b * 0.0;
}

inline RunDifferences sum_of(const LaneSums& sums) {
  RunDifferences run;
  double probe = 0;
  for (int lane = 0; lane < kDifferenceLanes; ++lane) {
    probe += sums.probe[lane];
    run.different += sums.different[lane];
    run.beyond += sums.beyond[lane];
    run.largest_error = std::max(sums.largest_error[lane], run.largest_error);
    run.largest_relative_error = std::max(sums.largest_relative_error[lane], run.largest_relative_error);
    run.errors += sums.errors[lane];
    run.squared_errors += sums.squared_errors[lane];
    run.squared_reference += sums.squared_reference[lane];
    run.squared_other += sums.squared_other[lane];
    run.products += sums.products[lane];
  }
  run.is_finite = probe == 0;
  return run;
}

template <class Number>
RunDifferences compare_by_lanes(const Number* reference, const Number* other, int64_t count,
                                const Tolerance& tolerance) {
  LaneSums sums;
  DifferenceLanes a;
  DifferenceLanes b;
  int64_t i = 0;
  for (; i + kDifferenceLanes <= count; i += kDifferenceLanes) {
    load_lanes(reference + i, a);
    load_lanes(other + i, b);
    take_lanes(sums, a, b, tolerance);
  }
  if (i < count) {
    // Pairs of zeros change nothing.
    Number tails[2][kDifferenceLanes] = {};
    std::copy(reference + i, reference + count, tails[0]);
    std::copy(other + i, other + count, tails[1]);
    load_lanes(tails[0], a);
    load_lanes(tails[1], b);
    take_lanes(sums, a, b, tolerance);
  }
  return sum_of(sums);
}

}  // namespace
}  // namespace tilework
