// Comparisons of numbers as loops that the compiler vectorises. Included by one file per instruction set.
// Everything has internal linkage: the linker must not replace a template instance by one compiled for
// another CPU.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dtype/difference_kernels.h"

namespace tilework {
namespace {

// Every fourth pair goes to the same lane, which has its own sums: one register of doubles for each sum, and
// the same order of additions for every instruction set.
constexpr int kDifferenceLanes = 4;

struct DifferenceLanes {
  double different[kDifferenceLanes] = {};
  double beyond[kDifferenceLanes] = {};
  double largest_error[kDifferenceLanes] = {};
  double largest_relative_error[kDifferenceLanes] = {};
  double errors[kDifferenceLanes] = {};
  double squared_errors[kDifferenceLanes] = {};
  double squared_reference[kDifferenceLanes] = {};
  double squared_other[kDifferenceLanes] = {};
  double products[kDifferenceLanes] = {};
  // 0 while all numbers are finite, else NaN.
  double probe[kDifferenceLanes] = {};
};

inline double magnitude(double value) { return value < 0 ? -value : value; }

inline double larger(double one, double other) { return one > other ? one : other; }

// Products and sums are separate statements: a compiler that contracts an expression to a fused multiply-add
// would move the border of the tolerance.
inline void take_pair(DifferenceLanes& lanes, int lane, double a, double b, const Tolerance& tolerance) {
  const double error = magnitude(b - a);
  const double size = magnitude(a);
  const double allowance = tolerance.relative * size;
  const double limit = tolerance.absolute + allowance;
  const double relative = size > 0 ? error / size : 0;
  lanes.different[lane] += a != b ? 1 : 0;
  lanes.beyond[lane] += error > limit ? 1 : 0;
  lanes.largest_error[lane] = larger(error, lanes.largest_error[lane]);
  lanes.largest_relative_error[lane] = larger(relative, lanes.largest_relative_error[lane]);
  lanes.errors[lane] += error;
  lanes.squared_errors[lane] += error * error;
  lanes.squared_reference[lane] += a * a;
  lanes.squared_other[lane] += b * b;
  lanes.products[lane] += a * b;
  lanes.probe[lane] += a * 0.0 + b * 0.0;
}

inline RunDifferences sum_of(const DifferenceLanes& lanes) {
  RunDifferences run;
  double probe = 0;
  double different = 0;
  double beyond = 0;
  for (int lane = 0; lane < kDifferenceLanes; ++lane) {
    probe += lanes.probe[lane];
    different += lanes.different[lane];
    beyond += lanes.beyond[lane];
    run.largest_error = larger(lanes.largest_error[lane], run.largest_error);
    run.largest_relative_error = larger(lanes.largest_relative_error[lane], run.largest_relative_error);
    run.errors += lanes.errors[lane];
    run.squared_errors += lanes.squared_errors[lane];
    run.squared_reference += lanes.squared_reference[lane];
    run.squared_other += lanes.squared_other[lane];
    run.products += lanes.products[lane];
  }
  run.is_finite = probe == 0;
  run.different = static_cast<int64_t>(different);
  run.beyond = static_cast<int64_t>(beyond);
  return run;
}

template <class Number>
RunDifferences compare_by_loops(const Number* reference, const Number* other, int64_t count,
                                const Tolerance& tolerance) {
  DifferenceLanes lanes;
  const Tolerance own = tolerance;
  int64_t i = 0;
  for (; i + kDifferenceLanes <= count; i += kDifferenceLanes) {
    for (int lane = 0; lane < kDifferenceLanes; ++lane) {
      take_pair(lanes, lane, static_cast<double>(reference[i + lane]), static_cast<double>(other[i + lane]),
                own);
    }
  }
  for (int lane = 0; i < count; ++i, ++lane) {
    take_pair(lanes, lane, static_cast<double>(reference[i]), static_cast<double>(other[i]), own);
  }
  return sum_of(lanes);
}

}  // namespace
}  // namespace tilework
