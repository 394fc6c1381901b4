#include "dtype/differences.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "cpu/isa.h"
#include "dtype/cast.h"
#include "dtype/difference_kernels.h"
#include "error.h"

namespace tilework {
namespace {

// Pairs that are read into the L1 cache and visited twice there.
constexpr int64_t kBlockPairs = 1024;

#define TILEWORK_COMPARE_kPortable compare_numbers_portable
#define TILEWORK_COMPARE_kAvx2 compare_numbers_avx2

template <class Number>
using CompareRun = RunDifferences (*)(const Number*, const Number*, int64_t, const Tolerance&);

// The first kernel of the table that this CPU can run.
template <class Number>
CompareRun<Number> fastest_comparison() {
#define TILEWORK_DIFFERENCE_KERNEL(number, isa)                   \
  if constexpr (std::is_same_v<Number, number>) {                 \
    if (can_run(Isa::isa)) return TILEWORK_COMPARE_##isa<number>; \
  }
#include "dtype/differences.def"
#undef TILEWORK_DIFFERENCE_KERNEL
  return nullptr;
}

template <class Number>
RunDifferences compare_numbers(const Number* reference, const Number* other, int64_t count,
                               const Tolerance& tolerance) {
  static const CompareRun<Number> run = fastest_comparison<Number>();
  return run(reference, other, count, tolerance);
}

bool is_wide_integer(Dtype dtype) { return dtype == Dtype::kInt64 || dtype == Dtype::kUint64; }

// Types with values that are exact in float32.
bool fits_float32(Dtype dtype) { return dtype == Dtype::kFloat32 || info_of(dtype).bits <= 16; }

double check_tolerance(double value, const char* name) {
  if (value >= 0 && value <= std::numeric_limits<double>::max()) return value;
  throw Error(ErrorCode::kArgument,
              "The " + std::string(name) + " tolerance must be a finite number from 0 on.");
}

// Elements of one side as numbers of another type, a block at a time.
class Decoder {
 public:
  Decoder(Dtype from, Dtype to) : cast_(from, to, {}) {}

  // Decodes elements [first, first + count) of a storage to `numbers`.
  void decode(const uint8_t* elements, int64_t first, int64_t count, void* numbers) const {
    const uint8_t* from = elements + packed_bytes(cast_.from(), first);
    if (cast_.from() == cast_.to()) {
      std::memcpy(numbers, from, static_cast<size_t>(packed_bytes(cast_.from(), count)));
    } else {
      cast_.run(from, static_cast<uint8_t*>(numbers), count);
    }
  }

 private:
  Cast cast_;
};

// A 64-bit integer, or any other number: exact, so that differences of large integers are too.
struct WholeNumber {
  __extension__ typedef __int128 Integer;
  Integer whole = 0;
  double fraction = 0;
  // False for NaN, infinities and numbers beyond 2^100; `number` is exact then.
  bool is_exact = true;
  double number = 0;
};

WholeNumber whole_of(double number) {
  if (!(std::fabs(number) < 0x1p100)) return {0, 0, false, number};
  const double whole = std::trunc(number);
  return {static_cast<WholeNumber::Integer>(whole), number - whole, true, number};
}

// Decodes a block to numbers of which 64-bit integers are exact.
void decode_whole(Dtype dtype, const uint8_t* elements, int64_t first, int64_t count, WholeNumber* numbers) {
  if (!is_wide_integer(dtype)) {
    double plain[kBlockPairs];
    Decoder(dtype, Dtype::kFloat64).decode(elements, first, count, plain);
    for (int64_t i = 0; i < count; ++i) numbers[i] = whole_of(plain[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    uint64_t code = 0;
    std::memcpy(&code, elements + (first + i) * 8, sizeof(code));
    if (dtype == Dtype::kInt64) {
      numbers[i] = {static_cast<int64_t>(code), 0, true, static_cast<double>(static_cast<int64_t>(code))};
    } else {
      numbers[i] = {code, 0, true, static_cast<double>(code)};
    }
  }
}

// |b - a|, and whether both are the same number.
struct ExactError {
  double error;
  bool is_equal;
};

ExactError error_of(const WholeNumber& a, const WholeNumber& b) {
  if (!a.is_exact || !b.is_exact) return {std::fabs(b.number - a.number), a.number == b.number};
  const WholeNumber::Integer whole = b.whole - a.whole;
  const double fraction = b.fraction - a.fraction;
  return {std::fabs(static_cast<double>(whole) + fraction), whole == 0 && fraction == 0};
}

// Whether no sum of a run has overflowed or lost products of tiny numbers. Squares of float32 do neither.
template <class Number>
bool has_exact_sums(const RunDifferences& run) {
  if constexpr (std::is_same_v<Number, float>) return true;
  const auto is_exact = [](double sum) { return sum > ScaledSum::kSmallest && sum < ScaledSum::kLargest; };
  const bool has_exact_errors = run.largest_error == 0 || is_exact(run.squared_errors);
  return has_exact_errors && is_exact(run.squared_reference) && is_exact(run.squared_other);
}

double ratio_in_decibels(const ScaledSum::Parts& a, const ScaledSum::Parts& b) {
  constexpr double kDecibelsPerBit = 3.0102999566398120;
  return 10 * std::log10(a.mantissa / b.mantissa) + kDecibelsPerBit * (a.exponent - b.exponent);
}

}  // namespace

Differences::Differences(Dtype reference, Dtype other, Tolerance tolerance)
    : reference_(reference),
      other_(other),
      tolerance_{check_tolerance(tolerance.absolute, "absolute"),
                 check_tolerance(tolerance.relative, "relative")},
      has_equal_bits_(reference == other) {}

void Differences::add(const uint8_t* reference, const uint8_t* other, int64_t count) {
  if (is_complex(reference_) || is_complex(other_)) return add_halves(reference, other, count);
  if (is_wide_integer(reference_) || is_wide_integer(other_)) return add_integers(reference, other, count);
  const bool fits = fits_float32(reference_) && fits_float32(other_);
  const Dtype number = fits ? Dtype::kFloat32 : Dtype::kFloat64;
  const Decoder of_reference(reference_, number);
  const Decoder of_other(other_, number);
  alignas(64) double block[2][kBlockPairs];
  for (int64_t at = 0; at < count; at += kBlockPairs) {
    const int64_t size = std::min(kBlockPairs, count - at);
    const bool is_same =
        compare_bits(reference + packed_bytes(reference_, at), other + packed_bytes(other_, at), size);
    of_reference.decode(reference, at, size, block[0]);
    of_other.decode(other, at, size, block[1]);
    if (fits) {
      add_numbers(reinterpret_cast<const float*>(block[0]), reinterpret_cast<const float*>(block[1]), size,
                  is_same);
    } else {
      add_numbers(block[0], block[1], size, is_same);
    }
  }
}

// Whether a block has the same bits on both sides; remembers where it has not.
bool Differences::compare_bits(const uint8_t* reference, const uint8_t* other, int64_t count) {
  if (reference_ != other_) return false;
  // Sub-byte elements may end inside the last byte.
  const int64_t bits = info_of(reference_).bits;
  const int64_t tail = bits < 8 ? count % elements_per_group(reference_) * bits % 8 : 0;
  const auto whole = static_cast<size_t>(packed_bytes(reference_, count) - (tail != 0 ? 1 : 0));
  bool is_same = std::memcmp(reference, other, whole) == 0;
  if (tail != 0) {
    const int mask = (1 << tail) - 1;
    is_same = is_same && ((reference[whole] ^ other[whole]) & mask) == 0;
  }
  has_equal_bits_ = has_equal_bits_ && is_same;
  return is_same;
}

template <class Number>
void Differences::add_numbers(const Number* reference, const Number* other, int64_t count,
                              bool has_equal_bits) {
  const RunDifferences run = compare_numbers(reference, other, count, tolerance_);
  if (!run.is_finite) {
    for (int64_t i = 0; i < count; ++i) {
      const auto a = static_cast<double>(reference[i]);
      const auto b = static_cast<double>(other[i]);
      add_pair(counts_.pairs + i, a, b, std::fabs(b - a), a == b);
      if (std::isfinite(a) && std::isfinite(b)) add_products(a, b, b - a);
    }
    counts_.pairs += count;
    return;
  }
  if (has_exact_sums<Number>(run)) {
    errors_.add(run.errors);
    squared_errors_.add(run.squared_errors);
    squared_reference_.add(run.squared_reference);
    squared_other_.add(run.squared_other);
    products_.add(run.products);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const auto a = static_cast<double>(reference[i]);
      const auto b = static_cast<double>(other[i]);
      add_products(a, b, b - a);
      errors_.add_product(std::min(std::fabs(b - a), std::numeric_limits<double>::max()), 1);
    }
  }
  const int64_t first = counts_.pairs;
  counts_.pairs += count;
  counts_.finite += count;
  if (has_equal_bits || run.different == 0) return;
  const auto find = [&](auto matches) {
    int64_t i = 0;
    while (i < count - 1 && !matches(static_cast<double>(reference[i]), static_cast<double>(other[i]))) ++i;
    return first + i;
  };
  if (counts_.first_different < 0) counts_.first_different = find([](double a, double b) { return a != b; });
  if (counts_.first_beyond < 0 && run.beyond > 0) {
    counts_.first_beyond = find([&](double a, double b) {
      const double allowance = tolerance_.relative * std::fabs(a);
      return std::fabs(b - a) > tolerance_.absolute + allowance;
    });
  }
  counts_.different += run.different;
  counts_.beyond += run.beyond;
  if (counts_.worst < 0 || run.largest_error > largest_error_) {
    largest_error_ = run.largest_error;
    counts_.worst = find([&](double a, double b) { return std::fabs(b - a) == largest_error_ && a != b; });
  }
  const bool has_relative = run.largest_relative_error > 0;
  if (has_relative && (counts_.worst_relative < 0 || run.largest_relative_error > largest_relative_error_)) {
    largest_relative_error_ = run.largest_relative_error;
    counts_.worst_relative = find([&](double a, double b) {
      return a != 0 && std::fabs(b - a) / std::fabs(a) == largest_relative_error_;
    });
  }
}

// Adds a pair of finite numbers, whose squares may overflow or vanish, to the sums of products.
void Differences::add_products(double reference, double other, double error) {
  // The difference of two huge numbers may overflow; that of their halves does not.
  const bool is_finite = std::isfinite(error);
  const double kept = is_finite ? error : other / 2 - reference / 2;
  squared_errors_.add_product(kept, kept, is_finite ? 0 : 2);
  squared_reference_.add_product(reference, reference);
  squared_other_.add_product(other, other);
  products_.add_product(reference, other);
}

// One pair, whatever its numbers are, without its products. The definition of the result.
void Differences::add_pair(int64_t index, double reference, double other, double error, bool is_equal) {
  const bool is_reference_nan = std::isnan(reference);
  const bool is_other_nan = std::isnan(other);
  counts_.both_nans += is_reference_nan && is_other_nan ? 1 : 0;
  counts_.reference_nans += is_reference_nan && !is_other_nan ? 1 : 0;
  counts_.other_nans += is_other_nan && !is_reference_nan ? 1 : 0;
  if (std::isfinite(reference) && std::isfinite(other)) {
    ++counts_.finite;
    errors_.add_product(std::min(error, std::numeric_limits<double>::max()), 1);
  }
  if (is_equal || (is_reference_nan && is_other_nan)) return;
  ++counts_.different;
  if (counts_.first_different < 0) counts_.first_different = index;
  const double allowance = tolerance_.relative * std::fabs(reference);
  // Infinite numbers are within no tolerance, although their allowance is infinite.
  const bool is_within =
      std::isfinite(reference) && std::isfinite(other) && error <= tolerance_.absolute + allowance;
  if (!is_within) {
    ++counts_.beyond;
    if (counts_.first_beyond < 0) counts_.first_beyond = index;
  }
  if (std::isnan(error)) return;
  if (counts_.worst < 0 || error > largest_error_) {
    largest_error_ = error;
    counts_.worst = index;
  }
  const double relative = error / std::fabs(reference);
  if (reference == 0 || !std::isfinite(reference) || !std::isfinite(other)) return;
  if (counts_.worst_relative < 0 || relative > largest_relative_error_) {
    largest_relative_error_ = relative;
    counts_.worst_relative = index;
  }
}

// Complex numbers, and real ones beside them: errors are magnitudes, sums are over both halves.
void Differences::add_halves(const uint8_t* reference, const uint8_t* other, int64_t count) {
  const Decoder of_reference(reference_, Dtype::kComplex128);
  const Decoder of_other(other_, Dtype::kComplex128);
  double block[2][2 * kBlockPairs];
  for (int64_t at = 0; at < count; at += kBlockPairs) {
    const int64_t size = std::min(kBlockPairs, count - at);
    compare_bits(reference + packed_bytes(reference_, at), other + packed_bytes(other_, at), size);
    of_reference.decode(reference, at, size, block[0]);
    of_other.decode(other, at, size, block[1]);
    for (int64_t i = 0; i < size; ++i) {
      const double* a = block[0] + 2 * i;
      const double* b = block[1] + 2 * i;
      // The difference of equal infinities would be NaN.
      const double errors[] = {a[0] == b[0] ? 0 : b[0] - a[0], a[1] == b[1] ? 0 : b[1] - a[1]};
      const double magnitudes[] = {std::hypot(a[0], a[1]), std::hypot(b[0], b[1])};
      add_pair(counts_.pairs + i, magnitudes[0], magnitudes[1], std::hypot(errors[0], errors[1]),
               a[0] == b[0] && a[1] == b[1]);
      if (!std::isfinite(magnitudes[0]) || !std::isfinite(magnitudes[1])) continue;
      for (int half = 0; half < 2; ++half) add_products(a[half], b[half], errors[half]);
    }
    counts_.pairs += size;
  }
}

void Differences::add_integers(const uint8_t* reference, const uint8_t* other, int64_t count) {
  constexpr int64_t kFew = 256;
  WholeNumber block[2][kFew];
  for (int64_t at = 0; at < count; at += kFew) {
    const int64_t size = std::min(kFew, count - at);
    compare_bits(reference + packed_bytes(reference_, at), other + packed_bytes(other_, at), size);
    decode_whole(reference_, reference, at, size, block[0]);
    decode_whole(other_, other, at, size, block[1]);
    for (int64_t i = 0; i < size; ++i) {
      const double a = block[0][i].number;
      const double b = block[1][i].number;
      const ExactError found = error_of(block[0][i], block[1][i]);
      add_pair(counts_.pairs + i, a, b, found.error, found.is_equal);
      if (std::isfinite(a) && std::isfinite(b)) add_products(a, b, found.error);
    }
    counts_.pairs += size;
  }
}

void Differences::merge(const Differences& next) {
  const PairCounts& later = next.counts_;
  const auto first_of = [&](int64_t& index, int64_t other) {
    if (index < 0 && other >= 0) index = counts_.pairs + other;
  };
  first_of(counts_.first_different, later.first_different);
  first_of(counts_.first_beyond, later.first_beyond);
  const auto worst_of = [&](int64_t& index, double& largest, int64_t other, double error) {
    if (other < 0 || (index >= 0 && error <= largest)) return;
    index = counts_.pairs + other;
    largest = error;
  };
  worst_of(counts_.worst, largest_error_, later.worst, next.largest_error_);
  worst_of(counts_.worst_relative, largest_relative_error_, later.worst_relative,
           next.largest_relative_error_);
  has_equal_bits_ = has_equal_bits_ && next.has_equal_bits_;
  counts_.pairs += later.pairs;
  counts_.different += later.different;
  counts_.beyond += later.beyond;
  counts_.reference_nans += later.reference_nans;
  counts_.other_nans += later.other_nans;
  counts_.both_nans += later.both_nans;
  counts_.finite += later.finite;
  errors_.merge(next.errors_);
  squared_errors_.merge(next.squared_errors_);
  squared_reference_.merge(next.squared_reference_);
  squared_other_.merge(next.squared_other_);
  products_.merge(next.products_);
}

double Differences::mean_error() const {
  const ScaledSum::Parts sum = errors_.parts();
  return std::ldexp(sum.mantissa / static_cast<double>(counts_.finite), sum.exponent);
}

double Differences::sqnr() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (counts_.finite == 0) return std::numeric_limits<double>::quiet_NaN();
  const ScaledSum::Parts noise = squared_errors_.parts();
  const ScaledSum::Parts signal = squared_reference_.parts();
  if (noise.mantissa == 0) return kInfinity;
  return signal.mantissa == 0 ? -kInfinity : ratio_in_decibels(signal, noise);
}

double Differences::cosine() const {
  if (counts_.finite == 0) return std::numeric_limits<double>::quiet_NaN();
  ScaledSum::Parts a = squared_reference_.parts();
  ScaledSum::Parts b = squared_other_.parts();
  if (a.mantissa == 0 && b.mantissa == 0) return 1;
  if (a.mantissa == 0 || b.mantissa == 0) return std::numeric_limits<double>::quiet_NaN();
  // Even exponents have exact roots.
  for (ScaledSum::Parts* part : {&a, &b}) {
    if (part->exponent % 2 == 0) continue;
    part->mantissa *= 2;
    --part->exponent;
  }
  const ScaledSum::Parts product = products_.parts();
  const double length = std::sqrt(a.mantissa) * std::sqrt(b.mantissa);
  const double cosine =
      std::ldexp(product.mantissa / length, product.exponent - a.exponent / 2 - b.exponent / 2);
  return std::clamp(cosine, -1.0, 1.0);
}

}  // namespace tilework
