#include "dtype/bin_counts.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "error.h"

namespace tilework {
namespace {

// Bins are at most 2^30 bins away from 0, so that bin numbers fit 32 bits.
constexpr int kBinBits = 30;

int64_t floor_of(double value, int exponent) {
  const double quotient = std::ldexp(value, -exponent);
  // A negative number may underflow to -0 when it is divided by the bin width.
  return quotient == 0 && value < 0 ? -1 : static_cast<int64_t>(std::floor(quotient));
}

int min_exponent(double low, double high) {
  const double magnitude = std::max(std::fabs(low), std::fabs(high));
  return magnitude == 0 ? BinCounts::kMinExponent
                        : std::max(std::ilogb(magnitude) - kBinBits, BinCounts::kMinExponent);
}

}  // namespace

BinCounts::BinCounts(int bins) : most_(bins), exponent_(kMinExponent) {
  if (bins >= kMinBins && bins <= kMaxBins) return;
  throw Error(ErrorCode::kArgument, "'bins' is " + std::to_string(bins) + "; it must be from " +
                                        std::to_string(kMinBins) + " to " + std::to_string(kMaxBins) + ".");
}

void BinCounts::reach(double low, double high) {
  const bool is_first = is_empty();
  low_ = is_first ? low : std::min(low_, low);
  high_ = is_first ? high : std::max(high_, high);
  int exponent = std::max(exponent_, min_exponent(low_, high_));
  while (floor_of(high_, exponent) - floor_of(low_, exponent) >= most_) ++exponent;
  const int64_t first = floor_of(low_, exponent);
  const int64_t last = floor_of(high_, exponent);
  const bool is_same = !is_first && exponent == exponent_ && first == first_ &&
                       last - first + 1 == static_cast<int64_t>(counts_.size());
  if (!is_same) set_bins(exponent, first, last);
}

void BinCounts::set_bins(int exponent, int64_t first, int64_t last) {
  std::vector<int64_t> counts(static_cast<size_t>(last - first + 1));
  const int shift = exponent - exponent_;
  for (size_t i = 0; i < counts_.size(); ++i) {
    // Rounds down, also below 0; after 63 bits only the sign is left.
    const int64_t bin = (first_ + static_cast<int64_t>(i)) >> std::min(shift, 63);
    counts[static_cast<size_t>(bin - first)] += counts_[i];
  }
  counts_ = std::move(counts);
  exponent_ = exponent;
  first_ = first;
  scale_ = std::ldexp(1.0, -exponent);
}

int64_t BinCounts::bin_of(double value) const { return floor_of(value, exponent_) - first_; }

void BinCounts::merge(const BinCounts& other) {
  if (other.is_empty()) return;
  reach(other.low_, other.high_);
  const int shift = std::min(exponent_ - other.exponent_, 63);
  for (size_t i = 0; i < other.counts_.size(); ++i) {
    add(((other.first_ + static_cast<int64_t>(i)) >> shift) - first_, other.counts_[i]);
  }
}

}  // namespace tilework
