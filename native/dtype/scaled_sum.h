// A sum of products of doubles that neither overflows nor loses products of tiny numbers.
#pragma once

#include <array>
#include <cmath>

namespace tilework {

class ScaledSum {
 public:
  // Products between these neither overflow in a sum nor are rounded as subnormal numbers.
  static constexpr double kLargest = 0x1p960;
  static constexpr double kSmallest = 0x1p-960;

  // Adds a sum of such products.
  void add(double sum) { sums_[kNormal] += sum; }

  // Adds x * y * 2^exponent for any finite numbers.
  void add_product(double x, double y, int exponent = 0) {
    int of_x = 0;
    int of_y = 0;
    const double mantissa = std::frexp(x, &of_x) * std::frexp(y, &of_y);
    exponent += of_x + of_y;
    const int range = exponent > 960 ? kNormal + 1 : exponent < -960 ? kNormal - 1 : kNormal;
    sums_[range] += std::ldexp(mantissa, exponent - exponent_of(range));
  }

  void merge(const ScaledSum& other) {
    for (int range = 0; range < kRanges; ++range) sums_[range] += other.sums_[range];
  }

  // The sum as mantissa * 2^exponent.
  struct Parts {
    double mantissa = 0;
    int exponent = 0;
  };

  Parts parts() const {
    Parts total;
    for (int range = kRanges - 1; range >= 0; --range) {
      if (sums_[range] == 0) continue;
      int exponent = 0;
      const double mantissa = std::frexp(sums_[range], &exponent);
      exponent += exponent_of(range);
      if (total.mantissa == 0) {
        total = {mantissa, exponent};
      } else {
        // Below the last bit unless the numbers lie at the border of two ranges.
        total.mantissa += std::ldexp(mantissa, exponent - total.exponent);
      }
    }
    return total;
  }

 private:
  // Tiny, normal and huge products; those of the outer ranges are kept with an exponent of their own.
  static constexpr int kRanges = 3;
  static constexpr int kNormal = 1;
  static constexpr int exponent_of(int range) { return (range - kNormal) * 1040; }

  std::array<double, kRanges> sums_{};
};

}  // namespace tilework
