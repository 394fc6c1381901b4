// What the numbers of a tensor look like, in one pass. Parts are counted for themselves, by any threads, and
// merged in their order, so that the result does not depend on the threads.
#pragma once

#include <cstdint>

#include "dtype/bin_counts.h"
#include "dtype/dtypes.h"

namespace tilework {

// A number exactly: a 64-bit integer, or a double.
struct ExactValue {
  enum class Kind : uint8_t { kDouble, kSigned, kUnsigned } kind = Kind::kDouble;
  double number = 0;
  int64_t integer = 0;
};

class Statistics {
 public:
  // Of a complex type each half counts as a number. Errors: ERR_ARGUMENT for a number of bins out of range.
  Statistics(Dtype dtype, int bins);

  // Counts packed elements that begin with a whole byte.
  void add(const uint8_t* elements, int64_t count);
  // Adds what was counted behind this.
  void merge(const Statistics& other);

  Dtype dtype() const { return dtype_; }
  int bins() const { return bins_; }
  int64_t count() const { return finite_ + nans_ + infinities_; }
  int64_t nans() const { return nans_; }
  int64_t infinities() const { return infinities_; }
  // 0 and -0.
  int64_t zeros() const { return zeros_; }
  // Numbers that are neither; the following hold where there are any.
  int64_t finite() const { return finite_; }
  // 0 is never -0.
  ExactValue min() const;
  ExactValue max() const;
  // Sums are doubles; those of integers are exact to 2^53.
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
  double least_ = 0;
  double most_ = 0;
  // Of 64-bit integers; unsigned ones by their bits.
  int64_t least_integer_ = 0;
  int64_t most_integer_ = 0;
  // Numbers near the largest double add up to no double, so parts that have some are summed 2^64 times
  // smaller.
  double sum_ = 0;
  double small_sum_ = 0;
  BinCounts histogram_;
};

}  // namespace tilework
