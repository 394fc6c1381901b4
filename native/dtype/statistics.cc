#include "dtype/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "dtype/cast.h"

namespace tilework {
namespace {

// Elements that are read into the L1 cache and visited twice there.
constexpr int64_t kBlockElements = 1024;
// Fills a vector register or two.
constexpr int kLanes = 8;
constexpr double kShrink = 0x1p-64;
constexpr double kHuge = 0x1p960;

Dtype number_of(Dtype dtype) {
  if (dtype == Dtype::kComplex64) return Dtype::kFloat32;
  return dtype == Dtype::kComplex128 ? Dtype::kFloat64 : dtype;
}

bool is_integer64(Dtype dtype) { return dtype == Dtype::kInt64 || dtype == Dtype::kUint64; }

// Types with values that are exact in float32.
bool is_of_float32(Dtype dtype) { return dtype == Dtype::kFloat32 || info_of(dtype).bits <= 16; }

template <class Number>
struct BlockSummary {
  Number min = std::numeric_limits<Number>::infinity();
  Number max = -std::numeric_limits<Number>::infinity();
  double sum = 0;
  int64_t nans = 0;
  int64_t infinities = 0;
  int64_t zeros = 0;
};

// Every eighth number goes to the same lane, which has its own sums. The compiler can vectorise over lanes,
// and the order of additions is the same for every instruction set.
template <class Number>
BlockSummary<Number> summarize(const Number* numbers, int64_t count, double scale) {
  using Count = std::conditional_t<sizeof(Number) == 4, int32_t, int64_t>;
  constexpr Number kInfinity = std::numeric_limits<Number>::infinity();
  constexpr Number kLargest = std::numeric_limits<Number>::max();
  Number min[kLanes];
  Number max[kLanes];
  double sums[kLanes] = {};
  Count nans[kLanes] = {};
  Count finites[kLanes] = {};
  Count zeros[kLanes] = {};
  std::fill_n(min, kLanes, kInfinity);
  std::fill_n(max, kLanes, -kInfinity);
  const auto take = [&](int lane, Number value) {
    const bool is_finite = value <= kLargest && value >= -kLargest;
    const Number low = is_finite ? value : kInfinity;
    const Number high = is_finite ? value : -kInfinity;
    min[lane] = low < min[lane] ? low : min[lane];
    max[lane] = high > max[lane] ? high : max[lane];
    sums[lane] += static_cast<double>(is_finite ? value : Number{0}) * scale;
    nans[lane] += value != value ? 1 : 0;
    finites[lane] += is_finite ? 1 : 0;
    zeros[lane] += value == 0 ? 1 : 0;
  };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) take(lane, numbers[i + lane]);
  }
  for (; i < count; ++i) take(static_cast<int>(i % kLanes), numbers[i]);
  BlockSummary<Number> summary;
  summary.infinities = count;
  for (int lane = 0; lane < kLanes; ++lane) {
    summary.min = std::min(summary.min, min[lane]);
    summary.max = std::max(summary.max, max[lane]);
    summary.sum += sums[lane];
    summary.nans += nans[lane];
    summary.infinities -= nans[lane] + finites[lane];
    summary.zeros += zeros[lane];
  }
  return summary;
}

template <class Number>
double largest_of(const BlockSummary<Number>& summary) {
  return std::max(std::fabs(static_cast<double>(summary.min)), std::fabs(static_cast<double>(summary.max)));
}

// Unpacks the elements of one byte, lowest bits first.
void unpack(uint8_t byte, Dtype dtype, int64_t count, float* numbers) {
  Cast(dtype, Dtype::kFloat32, {}).run(&byte, reinterpret_cast<uint8_t*>(numbers), count);
}

}  // namespace

Statistics::Statistics(Dtype dtype, int bins) : dtype_(number_of(dtype)), bins_(bins), histogram_(bins) {}

void Statistics::add(const uint8_t* elements, int64_t count) {
  if (dtype_ == Dtype::kInt64) return add_integers<int64_t>(elements, count);
  if (dtype_ == Dtype::kUint64) return add_integers<uint64_t>(elements, count);
  const int bits = info_of(dtype_).bits;
  if (bits <= 8 && 8 % bits == 0) return add_bytes(elements, count);
  const bool is_float32 = is_of_float32(dtype_);
  const Cast cast(dtype_, is_float32 ? Dtype::kFloat32 : Dtype::kFloat64, {});
  const bool is_itself = cast.from() == cast.to();
  alignas(64) double block[kBlockElements];
  auto* bytes = reinterpret_cast<uint8_t*>(block);
  for (int64_t at = 0; at < count; at += kBlockElements) {
    const int64_t size = std::min(kBlockElements, count - at);
    const uint8_t* from = elements + packed_bytes(dtype_, at);
    if (is_itself) {
      std::memcpy(bytes, from, static_cast<size_t>(packed_bytes(dtype_, size)));
    } else {
      cast.run(from, bytes, size);
    }
    if (is_float32) {
      add_numbers(reinterpret_cast<const float*>(bytes), size);
    } else {
      add_numbers(block, size);
    }
  }
}

template <class Number>
void Statistics::add_numbers(const Number* numbers, int64_t count) {
  BlockSummary<Number> summary = summarize(numbers, count, 1);
  const int64_t finite = count - summary.nans - summary.infinities;
  nans_ += summary.nans;
  infinities_ += summary.infinities;
  zeros_ += summary.zeros;
  if (finite == 0) return;
  const double largest = largest_of(summary);
  if (largest >= kHuge) {
    small_sum_ += summarize(numbers, count, kShrink).sum;
  } else {
    sum_ += summary.sum;
  }
  const auto min = static_cast<double>(summary.min);
  const auto max = static_cast<double>(summary.max);
  min_ = finite_ == 0 ? min : std::min(min_, min);
  max_ = finite_ == 0 ? max : std::max(max_, max);
  finite_ += finite;
  histogram_.reach(min_, max_);
  add_histogram(numbers, count);
}

// Computes bin numbers first, in a vectorised loop, then counts. Elements go to four tables in rotation,
// since incrementing the same counter twice in a row stalls.
template <class Number>
void Statistics::add_histogram(const Number* numbers, int64_t count) {
  constexpr int kTables = 4;
  int32_t bins[kBlockElements];
  const double scale = histogram_.scale();
  const auto first = static_cast<int32_t>(histogram_.first());
  const auto none = static_cast<int32_t>(histogram_.counts().size());
  constexpr Number kLargest = std::numeric_limits<Number>::max();
  for (int64_t i = 0; i < count; ++i) {
    const Number value = numbers[i];
    const bool is_finite = value <= kLargest && value >= -kLargest;
    const double quotient = static_cast<double>(is_finite ? value : Number{0}) * scale;
    const auto whole = static_cast<int32_t>(quotient);
    const bool is_below = quotient < whole || (quotient == 0 && value < 0);
    const int32_t bin = whole - (is_below ? 1 : 0) - first;
    bins[i] = is_finite ? bin : none;
  }
  int32_t counts[kTables][kMaxBins + 1];
  for (auto& table : counts) std::fill_n(table, none + 1, 0);
  for (int64_t i = 0; i < count; ++i) ++counts[i % kTables][bins[i]];
  for (int32_t bin = 0; bin < none; ++bin) {
    histogram_.add(bin, int64_t{counts[0][bin]} + counts[1][bin] + counts[2][bin] + counts[3][bin]);
  }
}

// A byte of whole elements has 256 values: counts them, then adds the numbers of each that often.
void Statistics::add_bytes(const uint8_t* elements, int64_t count) {
  constexpr int kTables = 4;
  constexpr int kBytes = 256;
  constexpr int kMaxPerByte = 4;
  const int64_t in_byte = elements_per_group(dtype_);
  const int64_t bytes = count / in_byte;
  // 64-bit counters: a part may have any number of bytes.
  int64_t counts[kTables][kBytes] = {};
  for (int64_t i = 0; i < bytes; ++i) ++counts[i % kTables][elements[i]];
  float numbers[kMaxPerByte];
  for (int byte = 0; byte < kBytes; ++byte) {
    int64_t total = 0;
    for (const auto& table : counts) total += table[byte];
    if (total == 0) continue;
    unpack(static_cast<uint8_t>(byte), dtype_, in_byte, numbers);
    for (int64_t i = 0; i < in_byte; ++i) add_value(static_cast<double>(numbers[i]), total);
  }
  const int64_t tail = count % in_byte;
  if (tail == 0) return;
  unpack(elements[bytes], dtype_, tail, numbers);
  for (int64_t i = 0; i < tail; ++i) add_value(static_cast<double>(numbers[i]), 1);
}

void Statistics::add_value(double value, int64_t count) {
  if (std::isnan(value)) {
    nans_ += count;
  } else if (std::isinf(value)) {
    infinities_ += count;
  } else {
    min_ = finite_ == 0 ? value : std::min(min_, value);
    max_ = finite_ == 0 ? value : std::max(max_, value);
    finite_ += count;
    zeros_ += value == 0 ? count : 0;
    sum_ += value * static_cast<double>(count);
    histogram_.reach(value, value);
    histogram_.add(histogram_.bin_of(value), count);
  }
}

// Minimum, maximum and zeros are exact; sums and bins use the nearest double.
template <class Integer>
void Statistics::add_integers(const uint8_t* elements, int64_t count) {
  double numbers[kBlockElements];
  for (int64_t at = 0; at < count; at += kBlockElements) {
    const int64_t size = std::min(kBlockElements, count - at);
    Integer integers[kBlockElements];
    std::memcpy(integers, elements + at * 8, static_cast<size_t>(size * 8));
    auto min = finite_ == 0 ? integers[0] : std::bit_cast<Integer>(min_integer_);
    auto max = finite_ == 0 ? integers[0] : std::bit_cast<Integer>(max_integer_);
    for (int64_t i = 0; i < size; ++i) {
      min = std::min(min, integers[i]);
      max = std::max(max, integers[i]);
      numbers[i] = static_cast<double>(integers[i]);
    }
    min_integer_ = std::bit_cast<int64_t>(min);
    max_integer_ = std::bit_cast<int64_t>(max);
    add_numbers(numbers, size);
  }
}

void Statistics::merge(const Statistics& other) {
  if (other.finite_ > 0) {
    const bool is_first = finite_ == 0;
    min_ = is_first ? other.min_ : std::min(min_, other.min_);
    max_ = is_first ? other.max_ : std::max(max_, other.max_);
    const auto is_below = [this](int64_t a, int64_t b) {
      return dtype_ == Dtype::kUint64 ? std::bit_cast<uint64_t>(a) < std::bit_cast<uint64_t>(b) : a < b;
    };
    if (is_first || is_below(other.min_integer_, min_integer_)) min_integer_ = other.min_integer_;
    if (is_first || is_below(max_integer_, other.max_integer_)) max_integer_ = other.max_integer_;
  }
  finite_ += other.finite_;
  nans_ += other.nans_;
  infinities_ += other.infinities_;
  zeros_ += other.zeros_;
  sum_ += other.sum_;
  small_sum_ += other.small_sum_;
  histogram_.merge(other.histogram_);
}

ExactValue Statistics::min() const {
  if (!is_integer64(dtype_)) return {ExactValue::Kind::kDouble, min_ + 0.0, 0};
  const bool is_signed = dtype_ == Dtype::kInt64;
  return {is_signed ? ExactValue::Kind::kSigned : ExactValue::Kind::kUnsigned, 0, min_integer_};
}

ExactValue Statistics::max() const {
  ExactValue value = min();
  value.number = max_ + 0.0;
  value.integer = max_integer_;
  return value;
}

double Statistics::mean() const {
  const auto count = static_cast<double>(finite_);
  return sum_ / count + small_sum_ / count / kShrink;
}

}  // namespace tilework
