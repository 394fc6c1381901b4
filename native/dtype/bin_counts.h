// A histogram whose range is not known before it ends. Bins are as wide as a power of two and begin at
// multiples of it; where a number falls outside, pairs of bins become one until it fits. So one pass gives
// exact counts, and the bins depend on the smallest and the largest number alone, not on the order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "facts/limits.h"

namespace tilework {

class BinCounts {
 public:
  // No width is smaller: its inverse has to be a number, too.
  static constexpr int kLeastExponent = -1000;

  // At most so many bins. Errors: ERR_ARGUMENT.
  explicit BinCounts(int bins);

  // Makes room for numbers from `low` to `high`, both finite. What is counted already keeps its place.
  void reach(double low, double high);
  // The bin of a number within reach, and the width of all as a power of two.
  int64_t bin_of(double value) const;
  int exponent() const { return exponent_; }
  // Which multiple of the width the first bin begins with.
  int64_t first() const { return first_; }
  // The width's inverse: value * scale() - first() is the bin, rounded down; a negative number
  // of which that leaves 0 belongs below it.
  double scale() const { return scale_; }
  // As many as numbers reach.
  const std::vector<int64_t>& counts() const { return counts_; }
  bool is_empty() const { return counts_.empty(); }

  void add(int64_t bin, int64_t count) { counts_[static_cast<size_t>(bin)] += count; }
  // Both were made for as many bins.
  void merge(const BinCounts& other);

 private:
  void set_bins(int exponent, int64_t first, int64_t last);

  int most_;
  int exponent_;
  int64_t first_ = 0;
  double scale_ = 1;
  double low_ = 0;
  double high_ = 0;
  std::vector<int64_t> counts_;
};

}  // namespace tilework
