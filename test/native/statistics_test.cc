// Statistics against counting one number at a time, for every type, whole and in parts, and histograms with a
// growing range.
#include "dtype/statistics.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "dtype/cast.h"

namespace tilework::test {
namespace {

constexpr int kBins = 20;

std::string text(Dtype dtype) { return std::string(info_of(dtype).name); }

// Decodes packed elements with the reference casts.
std::vector<double> numbers_of(Dtype dtype, const std::vector<uint8_t>& bytes, int64_t count) {
  std::vector<double> numbers(static_cast<size_t>(count));
  cast_reference(
      {bytes.data(), reinterpret_cast<uint8_t*>(numbers.data()), count, dtype, Dtype::kFloat64, {}});
  return numbers;
}

struct Counted {
  int64_t nans = 0, infinities = 0, zeros = 0, finite = 0;
  double least = 0, most = 0;
  long double sum = 0;
};

Counted counted(const std::vector<double>& numbers) {
  Counted result;
  for (const double number : numbers) {
    if (std::isnan(number)) {
      ++result.nans;
    } else if (std::isinf(number)) {
      ++result.infinities;
    } else {
      result.least = result.finite == 0 ? number : std::min(result.least, number);
      result.most = result.finite == 0 ? number : std::max(result.most, number);
      ++result.finite;
      result.zeros += number == 0 ? 1 : 0;
      result.sum += number;
    }
  }
  return result;
}

double value_of(const ExactValue& value) {
  switch (value.kind) {
    case ExactValue::Kind::kSigned:
      return static_cast<double>(value.integer);
    case ExactValue::Kind::kUnsigned:
      return static_cast<double>(static_cast<uint64_t>(value.integer));
    case ExactValue::Kind::kDouble:
      break;
  }
  return value.number;
}

// Every number is in the bin of its quotient by the width, and the bins are as narrow as possible.
void check_bins(const std::string& name, const BinCounts& bins, const std::vector<double>& numbers) {
  std::vector<int64_t> expected(bins.counts().size());
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    const double quotient = std::ldexp(number, -bins.exponent());
    const double whole = quotient == 0 && number < 0 ? -1 : std::floor(quotient);
    const double bin = whole - static_cast<double>(bins.first());
    CHECK_IN(name, bin >= 0 && bin < static_cast<double>(expected.size()));
    if (failures > 20) return;
    ++expected[static_cast<size_t>(bin)];
  }
  CHECK_IN(name, bins.counts() == expected);
  CHECK_IN(name, expected.size() <= kBins && expected.front() > 0 && expected.back() > 0);
  // Half the width would need too many bins, unless the width is the minimum.
  const bool are_least = expected.size() == 1 || bins.exponent() == BinCounts::kMinExponent;
  CHECK_IN(name, expected.size() * 2 + 1 > kBins || are_least);
}

void check(const std::string& name, const Statistics& found, const std::vector<double>& numbers) {
  const Counted expected = counted(numbers);
  CHECK_IN(name, found.count() == static_cast<int64_t>(numbers.size()));
  CHECK_IN(name, found.nans() == expected.nans && found.infinities() == expected.infinities);
  CHECK_IN(name, found.zeros() == expected.zeros && found.finite() == expected.finite);
  if (expected.finite == 0) return;
  CHECK_IN(name, value_of(found.min()) == expected.least && value_of(found.max()) == expected.most);
  const auto mean = static_cast<double>(expected.sum / static_cast<long double>(expected.finite));
  const double scale = std::max(std::fabs(expected.least), std::fabs(expected.most));
  CHECK_IN(name + " mean " + std::to_string(found.mean()), std::fabs(found.mean() - mean) <= scale * 1e-12);
  check_bins(name, found.histogram(), numbers);
}

std::vector<uint8_t> random_bytes(int64_t size, std::mt19937_64& random) {
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

// Random bits, whole and in merged parts.
void test_types() {
  std::mt19937_64 random(1963);
  for (const DtypeInfo& type : dtypes()) {
    if (type.kind == DtypeKind::kComplex) continue;
    for (const int64_t count : {1, 3, 1024, 5003}) {
      const std::vector<uint8_t> bytes = random_bytes(packed_bytes(type.dtype, count), random);
      const std::vector<double> numbers = numbers_of(type.dtype, bytes, count);
      Statistics whole(type.dtype, kBins);
      whole.add(bytes.data(), count);
      check(text(type.dtype), whole, numbers);
      Statistics total(type.dtype, kBins);
      constexpr int64_t kPart = 1000;
      for (int64_t at = 0; at < count; at += kPart) {
        Statistics part(type.dtype, kBins);
        part.add(bytes.data() + packed_bytes(type.dtype, at), std::min(kPart, count - at));
        total.merge(part);
      }
      check(text(type.dtype) + " in parts", total, numbers);
    }
  }
}

// Numbers of all magnitudes, near and far from each other; odd addresses.
void test_floats() {
  std::mt19937_64 random(1964);
  for (const double spread : {1e-310, 1e-3, 1.0, 1e6, 1e300}) {
    for (const double centre : {0.0, 1.0, -1e5, 3e307}) {
      std::vector<double> numbers;
      std::normal_distribution<double> normal(centre, spread);
      for (int i = 0; i < 4000; ++i) numbers.push_back(normal(random));
      std::vector<uint8_t> bytes(1 + numbers.size() * 8);
      std::memcpy(bytes.data() + 1, numbers.data(), numbers.size() * 8);
      Statistics found(Dtype::kFloat64, kBins);
      found.add(bytes.data() + 1, static_cast<int64_t>(numbers.size()));
      check("around " + std::to_string(centre), found, numbers);
    }
  }
}

void test_special_numbers() {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> numbers = {-0.0f, infinity, -infinity, std::nanf(""), -0.0f};
  Statistics found(Dtype::kFloat32, kBins);
  found.add(reinterpret_cast<const uint8_t*>(numbers.data()), static_cast<int64_t>(numbers.size()));
  CHECK(found.zeros() == 2 && found.infinities() == 2 && found.nans() == 1 && found.finite() == 2);
  CHECK(found.min().number == 0 && !std::signbit(found.min().number) && !std::signbit(found.mean()));
  CHECK(found.histogram().counts() == std::vector<int64_t>{2});
  const std::vector<uint64_t> integers = {~uint64_t{0}, 1, uint64_t{1} << 63};
  Statistics large(Dtype::kUint64, kBins);
  large.add(reinterpret_cast<const uint8_t*>(integers.data()), 3);
  CHECK(large.min().integer == 1 && static_cast<uint64_t>(large.max().integer) == integers[0]);
  const std::vector<double> huge(3, std::numeric_limits<double>::max());
  Statistics most(Dtype::kFloat64, kBins);
  most.add(reinterpret_cast<const uint8_t*>(huge.data()), 3);
  CHECK(most.mean() == huge[0]);
  CHECK(Statistics(Dtype::kComplex64, kBins).dtype() == Dtype::kFloat32);
}

void test_refusals() {
  for (const int bins : {-1, 0, 1, static_cast<int>(kMaxBins) + 1}) {
    CHECK(code_of([&] { Statistics(Dtype::kFloat32, bins); }) == "ERR_ARGUMENT");
  }
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  test_types();
  test_floats();
  test_special_numbers();
  test_refusals();
  return result();
}
