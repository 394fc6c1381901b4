// How the elements of two tensors differ: counts, the largest errors with their positions, and the sums
// behind SQNR and cosine, in one pass. The first tensor is the reference. Parts are compared separately on
// any threads and merged in order, so the result does not depend on the number of threads.
#pragma once

#include <cstdint>

#include "dtype/dtypes.h"
#include "dtype/scaled_sum.h"

namespace tilework {

// A pair is within it if |b - a| <= absolute + relative * |a|, the rule of numpy.isclose(b, a).
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

// clang-format off
// | pair                      | equal | error of the pair                                    |
// |---------------------------|-------|------------------------------------------------------|
// | the same number, 0 and -0 | yes   | 0                                                    |
// | NaN and NaN               | yes   | none: neither in the largest errors nor in the sums  |
// | the same infinity         | yes   | 0, not in the sums                                   |
// | an infinity, other number | no    | infinite; no relative error, not in the sums         |
// | NaN and another value     | no    | none; beyond every tolerance                         |
// | complex numbers           | both halves are | the magnitude of the difference            |
// clang-format on
struct PairCounts {
  int64_t pairs = 0;
  // Pairs that are not equal.
  int64_t different = 0;
  // Pairs that are not equal and beyond the tolerance.
  int64_t beyond = 0;
  // NaN in the reference alone, in the other tensor alone, and in both.
  int64_t reference_nans = 0;
  int64_t other_nans = 0;
  int64_t both_nans = 0;
  // Pairs in the sums: both numbers are finite.
  int64_t finite = 0;
  // Indices of pairs; -1 where there is none.
  int64_t first_different = -1;
  int64_t first_beyond = -1;
  // The first pair with the largest error; -1 without a pair that is different and has an error.
  int64_t worst = -1;
  // The first pair with the largest relative error; -1 as before. Pairs with the reference 0 have none.
  int64_t worst_relative = -1;
};

class Differences {
 public:
  // Errors: ERR_ARGUMENT for a tolerance that is negative or not finite.
  Differences(Dtype reference, Dtype other, Tolerance tolerance);

  // Compares packed elements that start at a whole byte on both sides.
  void add(const uint8_t* reference, const uint8_t* other, int64_t count);
  // Adds what is known of the pairs that follow.
  void merge(const Differences& other);

  Dtype reference_type() const { return reference_; }
  Dtype other_type() const { return other_; }
  Tolerance tolerance() const { return tolerance_; }
  const PairCounts& counts() const { return counts_; }
  // True where both have the same type and every element has the same bits. NaN and -0 may be equal without.
  bool has_equal_bits() const { return has_equal_bits_; }
  double largest_error() const { return largest_error_; }
  // |b - a| / |a|.
  double largest_relative_error() const { return largest_relative_error_; }
  // Over the finite pairs. NaN without one.
  double mean_error() const;
  // Signal-to-quantization-noise ratio in dB, 10 log10(sum a^2 / sum (b - a)^2): infinity without an error,
  // -infinity where the reference is zero. NaN without a finite pair.
  double sqnr() const;
  // Cosine of the angle between both as vectors, -1 to 1; NaN where one is zero and the other is not, 1 where
  // both are. NaN without a finite pair.
  double cosine() const;

 private:
  template <class Number>
  void add_numbers(const Number* reference, const Number* other, int64_t count, bool has_equal_bits);
  void add_halves(const uint8_t* reference, const uint8_t* other, int64_t count);
  void add_integers(const uint8_t* reference, const uint8_t* other, int64_t count);
  void add_pair(int64_t index, double reference, double other, double error, bool is_equal);
  void add_products(double reference, double other, double error);
  bool compare_bits(const uint8_t* reference, const uint8_t* other, int64_t count);

  Dtype reference_;
  Dtype other_;
  Tolerance tolerance_;
  PairCounts counts_;
  bool has_equal_bits_;
  double largest_error_ = 0;
  double largest_relative_error_ = 0;
  ScaledSum errors_;
  ScaledSum squared_errors_;
  ScaledSum squared_reference_;
  ScaledSum squared_other_;
  ScaledSum products_;
};

}  // namespace tilework
