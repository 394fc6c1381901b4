// Statistics of a tensor's numbers in one pass. Parts are counted separately on any threads and merged in
// order, so the result does not depend on the number of threads.
#pragma once

#include <cstdint>

#include "dtype/bin_counts.h"
#include "dtype/dtypes.h"

namespace tilework {

// An exact number: a 64-bit integer or a double.
struct ExactValue {
  enum class Kind : uint8_t { kDouble, kSigned, kUnsigned } kind = Kind::kDouble;
  double number = 0;
  int64_t integer = 0;
};

class Statistics {
 public:
  // Each half of a complex element counts as a number. Errors: ERR_ARGUMENT for a number of bins out of
  // range.
  Statistics(Dtype dtype, int bins);

  // Counts packed elements that start at a whole byte.
  void add(const uint8_t* elements, int64_t count);
  // Adds the counts of the elements that follow.
  void merge(const Statistics& other);

  Dtype dtype() const { return dtype_; }
  int bins() const { return bins_; }
  int64_t count() const { return finite_ + nans_ + infinities_; }
  int64_t nans() const { return nans_; }
  int64_t infinities() const { return infinities_; }
  // 0 and -0.
  int64_t zeros() const { return zeros_; }
  // Neither NaN nor infinite. The functions below need at least one such number.
  int64_t finite() const { return finite_; }
  // Never -0.
  ExactValue min() const;
  ExactValue max() const;
  // Computed from a double sum, which is exact for integers up to 2^53.
  double mean() const;
  const BinCounts& histogram() const { return histogram_; }

 private:
  template <class Number>
  void add_numbers(const Number* numbers, int64_t count);
  template <class Number>
  void add_histogram(const Number* numbers, int64_t count);
  void add_bytes(const uint8_t* elements, int64_t count);
  void add_value(double value, int64_t count);
  template <class Integer>
  void add_integers(const uint8_t* elements, int64_t count);

  Dtype dtype_;
  int bins_;
  int64_t finite_ = 0;
  int64_t nans_ = 0;
  int64_t infinities_ = 0;
  int64_t zeros_ = 0;
  double min_ = 0;
  double max_ = 0;
  // 64-bit integers; unsigned ones as their bits.
  int64_t min_integer_ = 0;
  int64_t max_integer_ = 0;
  // Parts with numbers near the largest double are summed 2^64 times smaller, so that the sum stays finite.
  double sum_ = 0;
  double small_sum_ = 0;
  BinCounts histogram_;
};

}  // namespace tilework
