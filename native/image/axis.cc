#include "image/axis.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "error.h"
#include "facts/limits.h"

namespace tilework {
namespace {

// The reference holds both constants in single precision.
constexpr double kHammingA = 0.54F;
constexpr double kHammingB = 0.46F;

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double hamming(double x) {
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= std::numbers::pi;
  return std::sin(x) / x * (kHammingA + kHammingB * std::cos(x));
}

double bicubic(double x) {
  if (x < 1.0) return ((-0.5 + 2.0) * x - (-0.5 + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * -0.5;
  return 0.0;
}

double mks2013(double x) {
  if (x < 0.5) return 17.0 / 16.0 - 7.0 / 4.0 * (x * x);
  if (x < 1.5) return (1.0 - x) * (7.0 / 4.0 - x);
  if (x < 2.5) return -1.0 / 8.0 * ((x - 5.0 / 2.0) * (x - 5.0 / 2.0));
  return 0.0;
}

double mks2021(double x) {
  if (x < 0.5) return 577.0 / 576.0 - 239.0 / 144.0 * (x * x);
  if (x < 1.5) return 35.0 / 36.0 * (x - 1.0) * (x - 239.0 / 140.0);
  if (x < 2.5) return 1.0 / 6.0 * (x - 2.0) * (65.0 / 24.0 - x);
  if (x < 3.5) return 1.0 / 36.0 * (x - 3.0) * (x - 15.0 / 4.0);
  if (x < 4.5) return -1.0 / 288.0 * ((x - 9.0 / 2.0) * (x - 9.0 / 2.0));
  return 0.0;
}

double value_of(Filter filter, double x) {
  switch (filter) {
    case Filter::kBox:
      return -0.5 < x && x <= 0.5 ? 1.0 : 0.0;
    case Filter::kBilinear:
      return std::max(1.0 - std::abs(x), 0.0);
    case Filter::kHamming:
      return hamming(std::abs(x));
    case Filter::kBicubic:
      return bicubic(std::abs(x));
    case Filter::kLanczos:
      return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
    case Filter::kMks2013:
      return mks2013(std::abs(x));
    case Filter::kMks2021:
      return mks2021(std::abs(x));
    case Filter::kNearest:
      break;
  }
  return 0.0;
}

double radius_of(Filter filter) {
  constexpr double kRadii[] = {0.5, 0.5, 1, 1, 2, 3, 2.5, 4.5};
  return kRadii[static_cast<size_t>(filter)];
}

// The weights of one result at a time.
class FilterRow {
 public:
  FilterRow(int64_t in, int64_t out, Filter filter)
      : in_(in),
        filter_(filter),
        scale_(static_cast<double>(in) / static_cast<double>(out)),
        support_(radius_of(filter) * std::max(scale_, 1.0)),
        inverse_(1.0 / std::max(scale_, 1.0)) {}

  int64_t most() const { return std::min(in_, static_cast<int64_t>(std::ceil(support_)) * 2 + 1); }

  void compute(int64_t result) {
    const double center = (static_cast<double>(result) + 0.5) * scale_;
    first_ = std::max<int64_t>(static_cast<int64_t>(center - support_ + 0.5), 0);
    const int64_t last = std::min(static_cast<int64_t>(center + support_ + 0.5), in_);
    weights_.clear();
    double total = 0.0;
    for (int64_t x = first_; x < last; ++x) {
      const double weight = value_of(filter_, (static_cast<double>(x) - center + 0.5) * inverse_);
      weights_.push_back(weight);
      total += weight;
    }
    if (total == 0.0) return;
    for (double& weight : weights_) weight /= total;
  }

  int64_t first() const { return first_; }
  const std::vector<double>& weights() const { return weights_; }

 private:
  int64_t in_;
  Filter filter_;
  double scale_;
  double support_;
  double inverse_;
  int64_t first_ = 0;
  std::vector<double> weights_;
};

void check_weight_bytes(double bytes) {
  if (bytes <= static_cast<double>(kMaxWeightBytes)) return;
  throw Error(ErrorCode::kLimit, "the weights of the resize take " +
                                     std::to_string(static_cast<int64_t>(bytes)) + " bytes; the limit is " +
                                     std::to_string(kMaxWeightBytes) + ".");
}

template <class Weight>
void reserve(Taps<Weight>& taps, int64_t results, int64_t stride) {
  check_weight_bytes(static_cast<double>(results) * static_cast<double>(stride) * sizeof(Weight));
  taps.stride = stride;
  taps.first.reserve(static_cast<size_t>(results));
  taps.count.reserve(static_cast<size_t>(results));
  taps.weights.reserve(static_cast<size_t>(results * stride));
}

// `weights` and zeros up to the stride.
template <class Weight, class Values, class Convert>
void append(Taps<Weight>& taps, int64_t first, const Values& weights, Convert convert) {
  taps.first.push_back(static_cast<int32_t>(first));
  taps.count.push_back(static_cast<int32_t>(weights.size()));
  for (const auto& weight : weights) taps.weights.push_back(convert(weight));
  taps.weights.resize(static_cast<size_t>(taps.results() * taps.stride));
}

int32_t half_away(double weight, int bits) {
  const double scaled = weight * static_cast<double>(int64_t{1} << bits);
  return static_cast<int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

int32_t pair_of(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a & 0xffff) | static_cast<uint32_t>(b) << 16);
}

int32_t low_of(int32_t weight) { return ((weight + 2048) & 4095) - 2048; }
int32_t high_of(int32_t weight) { return (weight - low_of(weight)) / 4096; }

void add_pairs(IntegerTaps& taps) {
  taps.is_narrow = std::all_of(taps.weights.begin(), taps.weights.end(),
                               [](int32_t weight) { return -32768 <= weight && weight <= 32767; });
  taps.pairs.reserve(taps.weights.size());
  for (size_t i = 0; i < taps.weights.size(); i += 2) {
    const int32_t a = taps.weights[i];
    const int32_t b = taps.weights[i + 1];
    if (taps.is_narrow) {
      taps.pairs.push_back(pair_of(a, b));
    } else {
      taps.pairs.push_back(pair_of(low_of(a), low_of(b)));
      taps.pairs.push_back(pair_of(high_of(a), high_of(b)));
    }
  }
}

IntegerTaps integer_taps(int64_t in, int64_t out, Filter filter, Span span, int bits) {
  FilterRow row(in, out, filter);
  IntegerTaps taps;
  taps.shift = bits;
  // Kernels read the weights of eight taps at a time.
  reserve(taps, span.count(), (row.most() + 7) / 8 * 8);
  for (int64_t i = span.begin; i < span.end; ++i) {
    row.compute(i);
    append(taps, row.first(), row.weights(), [bits](double weight) { return half_away(weight, bits); });
  }
  add_pairs(taps);
  return taps;
}

// Floor of the source coordinate, and the rest in single precision.
struct LinearPlace {
  int64_t low;
  float rest;
};

LinearPlace linear_place(int64_t in, int64_t out, int64_t result) {
  const double step = 1.0 / (static_cast<double>(out) / static_cast<double>(in));
  const auto at = static_cast<float>((static_cast<double>(result) + 0.5) * step - 0.5);
  const float low = std::floor(at);
  return {static_cast<int64_t>(low), at - low};
}

void append_linear(LinearTaps& taps, int64_t low, int64_t high, float rest) {
  taps.low.push_back(static_cast<int32_t>(low));
  taps.high.push_back(static_cast<int32_t>(high));
  taps.weights.push_back(static_cast<int16_t>(std::nearbyint((1.0F - rest) * 2048.0F)));
  taps.weights.push_back(static_cast<int16_t>(std::nearbyint(rest * 2048.0F)));
}

}  // namespace

template <class Weight>
Span Taps<Weight>::reads(int64_t begin, int64_t end) const {
  Span span{INT64_MAX, 0};
  for (int64_t i = begin; i < end; ++i) {
    const auto at = static_cast<size_t>(i);
    span.begin = std::min<int64_t>(span.begin, first[at]);
    span.end = std::max<int64_t>(span.end, int64_t{first[at]} + count[at]);
  }
  return span;
}

template <class Weight>
int64_t Taps<Weight>::most() const {
  return count.empty() ? 0 : *std::max_element(count.begin(), count.end());
}

template struct Taps<double>;
template struct Taps<int32_t>;
template struct Taps<float>;

Taps<double> filter_taps(int64_t in, int64_t out, Filter filter, Span span) {
  FilterRow row(in, out, filter);
  Taps<double> taps;
  reserve(taps, span.count(), row.most());
  for (int64_t i = span.begin; i < span.end; ++i) {
    row.compute(i);
    append(taps, row.first(), row.weights(), [](double weight) { return weight; });
  }
  return taps;
}

IntegerTaps pillow_taps(int64_t in, int64_t out, Filter filter, Span span) {
  constexpr int kBits = 22;
  return integer_taps(in, out, filter, span, kBits);
}

IntegerTaps torchvision_taps(int64_t in, int64_t out, Filter filter, Span span) {
  FilterRow row(in, out, filter);
  double largest = 0;
  for (int64_t i = 0; i < out; ++i) {
    row.compute(i);
    for (const double weight : row.weights()) largest = std::max(largest, weight);
  }
  int bits = 0;
  while (bits < 22 &&
         static_cast<int64_t>(0.5 + largest * static_cast<double>(int64_t{1} << (bits + 1))) < 1 << 15) {
    ++bits;
  }
  return integer_taps(in, out, filter, span, bits);
}

std::vector<int32_t> nearest_indices(NearestRule rule, int64_t in, int64_t out, Span span) {
  const double step = static_cast<double>(in) / static_cast<double>(out);
  const double opencv_step = 1.0 / (static_cast<double>(out) / static_cast<double>(in));
  const double single_step = static_cast<float>(in) / static_cast<float>(out);
  std::vector<int32_t> indices;
  indices.reserve(static_cast<size_t>(span.count()));
  // Pillow adds the step up, which is not the same as a product.
  double sum = step * 0.5;
  for (int64_t i = 0; i < span.end; ++i, sum += step) {
    if (i < span.begin) continue;
    const auto number = static_cast<double>(i);
    double at = sum;
    if (rule == NearestRule::kPillow16) at = (number + 0.5) * step;
    if (rule == NearestRule::kTorchvision) at = static_cast<float>((number + 0.5) * single_step);
    if (rule == NearestRule::kTorchvisionLarge) {
      // A fused multiply-add of the reference: the product is exact in float64.
      const auto place = static_cast<float>((number + 0.5) * single_step - 0.5);
      at = static_cast<float>(static_cast<double>(place) + 0.5);
    }
    if (rule == NearestRule::kOpencv) at = number * opencv_step;
    indices.push_back(static_cast<int32_t>(std::min<int64_t>(static_cast<int64_t>(at), in - 1)));
  }
  return indices;
}

LinearTaps opencv_linear_columns(int64_t in, int64_t out, Span span) {
  LinearTaps taps;
  for (int64_t i = span.begin; i < span.end; ++i) {
    const LinearPlace place = linear_place(in, out, i);
    const bool is_inside = place.low >= 0 && place.low < in - 1;
    const int64_t low = std::clamp<int64_t>(place.low, 0, in - 1);
    append_linear(taps, low, std::min(low + 1, in - 1), is_inside ? place.rest : 0.0F);
  }
  return taps;
}

LinearTaps opencv_linear_rows(int64_t in, int64_t out, Span span) {
  LinearTaps taps;
  for (int64_t i = span.begin; i < span.end; ++i) {
    const LinearPlace place = linear_place(in, out, i);
    append_linear(taps, std::clamp<int64_t>(place.low, 0, in - 1),
                  std::clamp<int64_t>(place.low + 1, 0, in - 1), place.rest);
  }
  return taps;
}

Taps<float> opencv_area_taps(int64_t in, int64_t out, Span span) {
  constexpr double kLeastCover = 1e-3;
  const double scale = 1.0 / (static_cast<double>(out) / static_cast<double>(in));
  Taps<float> taps;
  reserve(taps, span.count(), std::min<int64_t>(in, static_cast<int64_t>(std::ceil(scale)) + 2));
  std::vector<double> cells;
  for (int64_t i = span.begin; i < span.end; ++i) {
    const double start = static_cast<double>(i) * scale;
    const double end = start + scale;
    const double cell = std::min(scale, static_cast<double>(in) - start);
    const int64_t last = std::min(static_cast<int64_t>(std::floor(end)), in - 1);
    const int64_t first = std::min(static_cast<int64_t>(std::ceil(start)), last);
    const double before = static_cast<double>(first) - start;
    const double after = end - static_cast<double>(last);
    cells.clear();
    if (before > kLeastCover) cells.push_back(before / cell);
    for (int64_t x = first; x < last; ++x) cells.push_back(1.0 / cell);
    if (after > kLeastCover) cells.push_back(std::min(std::min(after, 1.0), cell) / cell);
    append(taps, before > kLeastCover ? first - 1 : first, cells,
           [](double weight) { return static_cast<float>(weight); });
  }
  return taps;
}

}  // namespace tilework
