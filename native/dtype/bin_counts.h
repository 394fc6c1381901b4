// A histogram with a range that is unknown until all numbers are seen. The bin width is a power of two, and
// bins start at multiples of it. If a number falls outside, pairs of bins are merged until it fits. So one
// pass gives exact counts, and the bins depend only on the smallest and largest number, not on the order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "facts/limits.h"

namespace tilework {

class BinCounts {
 public:
  // No bin is narrower: the inverse of its width must be finite.
  static constexpr int kMinExponent = -1000;

  // `bins` is the maximum. Errors: ERR_ARGUMENT.
  explicit BinCounts(int bins);

  // Extends the range to [low, high], both finite. Existing counts are kept.
  void reach(double low, double high);
  // Bin of a number inside the range. The bin width is 2^exponent().
  int64_t bin_of(double value) const;
  int exponent() const { return exponent_; }
  // The first bin starts at first() times the bin width.
  int64_t first() const { return first_; }
  // Inverse of the bin width: floor(value * scale()) - first() is the bin. A negative value that underflows
  // to 0 belongs to the bin below 0.
  double scale() const { return scale_; }
  // One count per bin of the range.
  const std::vector<int64_t>& counts() const { return counts_; }
  bool is_empty() const { return counts_.empty(); }

  void add(int64_t bin, int64_t count) { counts_[static_cast<size_t>(bin)] += count; }
  // Both must have the same maximum of bins.
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
