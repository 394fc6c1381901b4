// Limits of magnitudes: both signs of every kind of number, anywhere in an array.
#include "dtype/magnitudes.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "check.h"

namespace tilework::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLow = 0x1p-24F;
constexpr float kHigh = 65504;

struct Case {
  float from;
  float to;
};

void test_kinds() {
  const Case cases[] = {{0, 0},
                        {kLow, kLow},
                        {kLow / 2, kLow},
                        {std::numeric_limits<float>::denorm_min(), kLow},
                        {1, 1},
                        {kHigh, kHigh},
                        {65504.004F, kHigh},
                        {std::numeric_limits<float>::max(), kHigh},
                        {kInfinity, kInfinity},
                        {std::nanf("1"), std::nanf("1")}};
  std::vector<float> numbers;
  std::vector<float> wanted;
  for (int i = 0; i < 9001; ++i) {
    const Case& of = cases[i % 10];
    const float sign = i % 20 < 10 ? 1.0F : -1.0F;
    numbers.push_back(std::copysign(of.from, sign));
    wanted.push_back(std::copysign(of.to, sign));
  }
  const ClipCounts counts = clip_magnitudes(numbers.data(), 9001, kLow, kHigh);
  CHECK(counts.clipped == 1800 && counts.lifted == 1800);
  for (size_t i = 0; i < wanted.size(); ++i)
    CHECK(std::bit_cast<uint32_t>(numbers[i]) == std::bit_cast<uint32_t>(wanted[i]));
}

void test_no_lower_limit() {
  float numbers[] = {std::numeric_limits<float>::denorm_min(), -3e38F};
  const ClipCounts counts = clip_magnitudes(numbers, 2, 0, 2e38F);
  CHECK(counts.clipped == 1 && counts.lifted == 0 && numbers[0] > 0 && numbers[1] == -2e38F);
}

}  // namespace
}  // namespace tilework::test

int main() {
  tilework::test::test_kinds();
  tilework::test::test_no_lower_limit();
  return tilework::test::result();
}
