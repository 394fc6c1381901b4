// Differences against comparing one pair at a time in long double, for every pair of types, whole and in
// parts.
#include "dtype/differences.h"

#include <algorithm>
#include <bit>
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

constexpr Tolerance kTolerance{1e-3, 1e-2};

using Bytes = std::vector<uint8_t>;

Bytes random_bytes(int64_t size, std::mt19937_64& random) {
  Bytes bytes(static_cast<size_t>(size));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

// Decodes packed elements with the reference casts; 64-bit integers are exact in a long double of 80 bits.
std::vector<double> numbers_of(Dtype dtype, const Bytes& bytes, int64_t count) {
  std::vector<double> numbers(static_cast<size_t>(count));
  cast_reference(
      {bytes.data(), reinterpret_cast<uint8_t*>(numbers.data()), count, dtype, Dtype::kFloat64, {}});
  return numbers;
}

struct Expected {
  PairCounts counts;
  double largest = 0, largest_relative = 0;
  long double errors = 0, squared_errors = 0, a = 0, b = 0, products = 0;
};

Expected expected_of(const std::vector<double>& reference, const std::vector<double>& other) {
  Expected result;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double a = reference[i];
    const double b = other[i];
    const auto index = static_cast<int64_t>(i);
    ++result.counts.pairs;
    result.counts.both_nans += std::isnan(a) && std::isnan(b) ? 1 : 0;
    result.counts.reference_nans += std::isnan(a) && !std::isnan(b) ? 1 : 0;
    result.counts.other_nans += !std::isnan(a) && std::isnan(b) ? 1 : 0;
    const bool is_finite = std::isfinite(a) && std::isfinite(b);
    if (is_finite) {
      ++result.counts.finite;
      const long double error = static_cast<long double>(b) - a;
      result.errors += std::fabs(error);
      result.squared_errors += error * error;
      result.a += static_cast<long double>(a) * a;
      result.b += static_cast<long double>(b) * b;
      result.products += static_cast<long double>(a) * b;
    }
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    ++result.counts.different;
    if (result.counts.first_different < 0) result.counts.first_different = index;
    if (!is_finite || std::fabs(b - a) > kTolerance.absolute + kTolerance.relative * std::fabs(a)) {
      ++result.counts.beyond;
      if (result.counts.first_beyond < 0) result.counts.first_beyond = index;
    }
    if (std::isnan(a) || std::isnan(b)) continue;
    if (result.counts.worst < 0 || std::fabs(b - a) > result.largest) {
      result.largest = std::fabs(b - a);
      result.counts.worst = index;
    }
    if (!is_finite || a == 0) continue;
    const double relative = std::fabs(b - a) / std::fabs(a);
    if (result.counts.worst_relative < 0 || relative > result.largest_relative) {
      result.largest_relative = relative;
      result.counts.worst_relative = index;
    }
  }
  return result;
}

bool is_near(double found, long double wanted) {
  if (std::isnan(found) || std::isinf(found))
    return found == static_cast<double>(wanted) || std::isnan(wanted);
  return std::fabs(found - wanted) <= 1e-9L * std::max(1.0L, std::fabs(wanted));
}

void check(const std::string& name, const Differences& found, const Expected& expected) {
  const PairCounts& a = found.counts();
  const PairCounts& b = expected.counts;
  CHECK_IN(name, a.pairs == b.pairs && a.different == b.different && a.finite == b.finite);
  CHECK_IN(name, a.beyond == b.beyond);
  CHECK_IN(name, a.both_nans == b.both_nans && a.reference_nans == b.reference_nans &&
                     a.other_nans == b.other_nans);
  CHECK_IN(name, a.first_different == b.first_different && a.first_beyond == b.first_beyond);
  CHECK_IN(name, a.worst == b.worst && found.largest_error() == expected.largest);
  CHECK_IN(name, a.worst_relative == b.worst_relative);
  CHECK_IN(name, found.largest_relative_error() == expected.largest_relative);
  if (b.finite == 0) return;
  CHECK_IN(name, is_near(found.mean_error() / (expected.largest + 1e-300),
                         expected.errors / static_cast<long double>(b.finite) / (expected.largest + 1e-300)));
  if (expected.squared_errors > 0 && expected.a > 0) {
    CHECK_IN(name + " " + std::to_string(found.sqnr()),
             is_near(found.sqnr(), 10 * std::log10(expected.a / expected.squared_errors)));
  }
  if (expected.a > 0 && expected.b > 0) {
    CHECK_IN(name + " " + std::to_string(found.cosine()),
             is_near(found.cosine(), expected.products / std::sqrt(expected.a) / std::sqrt(expected.b)));
  }
}

void check_pair(const std::string& name, Dtype from, Dtype to, const Bytes& a, const Bytes& b, int64_t count,
                const Expected& expected) {
  Differences whole(from, to, kTolerance);
  whole.add(a.data(), b.data(), count);
  check(name, whole, expected);
  Differences total(from, to, kTolerance);
  constexpr int64_t kPart = 1000;
  for (int64_t at = 0; at < count; at += kPart) {
    Differences part(from, to, kTolerance);
    part.add(a.data() + packed_bytes(from, at), b.data() + packed_bytes(to, at), std::min(kPart, count - at));
    total.merge(part);
  }
  check(name + " in parts", total, expected);
}

bool is_real(Dtype dtype) { return !is_complex(dtype); }
bool is_integer64(Dtype dtype) { return dtype == Dtype::kInt64 || dtype == Dtype::kUint64; }

// Random bits of every pair of types. Exact errors of 64-bit integers have their own test.
void test_types() {
  std::mt19937_64 random(1815);
  for (const DtypeInfo& from : dtypes()) {
    for (const DtypeInfo& to : dtypes()) {
      if (!is_real(from.dtype) || !is_real(to.dtype)) continue;
      if (is_integer64(from.dtype) || is_integer64(to.dtype)) continue;
      for (const int64_t count : {1, 3, 1024, 5003}) {
        const Bytes a = random_bytes(packed_bytes(from.dtype, count), random);
        const Bytes b = random_bytes(packed_bytes(to.dtype, count), random);
        const std::string name = std::string(from.name) + " and " + std::string(to.name);
        const Expected expected =
            expected_of(numbers_of(from.dtype, a, count), numbers_of(to.dtype, b, count));
        check_pair(name, from.dtype, to.dtype, a, b, count, expected);
      }
    }
  }
}

// Numbers near each other, of magnitudes whose squares overflow or vanish.
void test_nearly_equal() {
  std::mt19937_64 random(1816);
  for (const double scale : {1e-310, 1e-200, 1e-3, 1.0, 1e6, 1e200, 1e307}) {
    for (const int every : {1, 50, 4000}) {
      std::normal_distribution<double> normal(0, 1);
      std::vector<double> a, b;
      for (int i = 0; i < 4003; ++i) {
        a.push_back(normal(random) * scale);
        b.push_back(i % every == every / 2 ? a.back() * (1 + 0.02 * normal(random)) : a.back());
      }
      const auto bytes_of = [](const std::vector<double>& numbers) {
        Bytes bytes(numbers.size() * 8);
        std::memcpy(bytes.data(), numbers.data(), bytes.size());
        return bytes;
      };
      check_pair("scale " + std::to_string(std::log10(scale)), Dtype::kFloat64, Dtype::kFloat64, bytes_of(a),
                 bytes_of(b), static_cast<int64_t>(a.size()), expected_of(a, b));
    }
  }
}

template <class Number>
Differences compared(Dtype from, const std::vector<Number>& a, Dtype to, const auto& b, int64_t count) {
  Differences found(from, to, {0, 0});
  found.add(reinterpret_cast<const uint8_t*>(a.data()), reinterpret_cast<const uint8_t*>(b.data()), count);
  return found;
}

void test_special_numbers() {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  const std::vector<float> a = {0.0f, nan, infinity, infinity, nan, 1};
  const std::vector<float> b = {-0.0f, -nan, infinity, -infinity, 1, 1};
  const Differences found = compared(Dtype::kFloat32, a, Dtype::kFloat32, b, 6);
  CHECK(found.counts().different == 2 && found.counts().first_different == 3 && found.counts().beyond == 2);
  CHECK(found.counts().both_nans == 1 && found.counts().reference_nans == 1 &&
        found.counts().other_nans == 0);
  CHECK(std::isinf(found.largest_error()) && found.counts().worst == 3 && !found.has_equal_bits());
  CHECK(std::isinf(found.sqnr()) && found.cosine() == 1);
  // An infinite allowance allows no infinite error.
  Differences tolerant(Dtype::kFloat32, Dtype::kFloat32, {1, 1});
  tolerant.add(reinterpret_cast<const uint8_t*>(a.data()), reinterpret_cast<const uint8_t*>(b.data()), 6);
  CHECK(tolerant.counts().beyond == 2);
  const Differences same = compared(Dtype::kFloat32, a, Dtype::kFloat32, a, 6);
  CHECK(same.has_equal_bits() && same.counts().different == 0 && same.counts().worst == -1);
}

void test_integers() {
  const std::vector<int64_t> a = {std::numeric_limits<int64_t>::max(), (int64_t{1} << 53) + 1, -1, 7};
  const std::vector<int64_t> b = {std::numeric_limits<int64_t>::min(), int64_t{1} << 53, -1, 7};
  const Differences found = compared(Dtype::kInt64, a, Dtype::kInt64, b, 4);
  CHECK(found.counts().different == 2 && found.largest_error() == 0x1p64 && found.counts().worst == 0);
  const std::vector<double> rounded = {0x1p63, 0x1p53, -1, 7.5};
  const Differences mixed = compared(Dtype::kInt64, a, Dtype::kFloat64, rounded, 4);
  CHECK(mixed.counts().different == 3 && mixed.largest_error() == 1 && !mixed.has_equal_bits());
  const std::vector<uint64_t> natural = {a[0] + uint64_t{1}, 1, ~uint64_t{0}, 7};
  const Differences signs = compared(Dtype::kInt64, a, Dtype::kUint64, natural, 4);
  CHECK(signs.counts().different == 3 && signs.largest_error() == 0x1p64 && signs.counts().worst == 2);
}

void test_complex() {
  const std::vector<float> a = {3, 4, 1, 0, std::nanf(""), 0};
  const std::vector<float> b = {3, 4, 1, 2, 0, std::nanf("")};
  const Differences found = compared(Dtype::kComplex64, a, Dtype::kComplex64, b, 3);
  CHECK(found.counts().pairs == 3 && found.counts().different == 1 && found.counts().worst == 1);
  CHECK(found.largest_error() == 2 && found.counts().both_nans == 1);
  CHECK(is_near(found.sqnr(), 10 * std::log10(26.0L / 4)) &&
        is_near(found.cosine(), 26 / std::sqrt(26.0L * 30)));
  const std::vector<double> real = {5, 1, 0};
  const Differences mixed = compared(Dtype::kComplex64, a, Dtype::kFloat64, real, 2);
  CHECK(mixed.counts().different == 1 && is_near(mixed.largest_error(), std::sqrt(20.0L)));
}

// Unused bits of the last byte are no elements.
void test_tail_bits() {
  const Bytes a = {0x21, 0x03};
  const Bytes b = {0x21, 0xf3};
  CHECK(compared(Dtype::kInt4, a, Dtype::kInt4, b, 3).has_equal_bits());
  CHECK(!compared(Dtype::kInt4, a, Dtype::kInt4, b, 4).has_equal_bits());
}

void test_refusals() {
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    CHECK(code_of([&] { Differences(Dtype::kFloat32, Dtype::kFloat32, {bad, 0}); }) == "ERR_ARGUMENT");
    CHECK(code_of([&] { Differences(Dtype::kFloat32, Dtype::kFloat32, {0, bad}); }) == "ERR_ARGUMENT");
  }
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  test_types();
  test_nearly_equal();
  test_special_numbers();
  test_integers();
  test_complex();
  test_tail_bits();
  test_refusals();
  return result();
}
