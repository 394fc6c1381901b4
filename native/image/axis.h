// What each result of one axis of a resize reads: source indices and weights, by the rules of the libraries
// whose bytes a resize repeats. All in float64 without fused multiply-add, each operation in the order of the
// reference: a weight that differs by one unit of 2^-22 changes bytes.
//
// Sources: Pillow 13.0.0, src/libImaging/Resample.c and Geometry.c; torch 2.15, UpSampleKernel; OpenCV 5.0,
// modules/imgproc/src/resize.cpp.
#pragma once

#include <cstdint>
#include <vector>

namespace tilework {

// Pillow's filters. Two are new in 13: mks2013 and mks2021.
enum class Filter : uint8_t {
  kNearest,
  kBox,
  kBilinear,
  kHamming,
  kBicubic,
  kLanczos,
  kMks2013,
  kMks2021,
};

// The results of an axis that somebody sees: [begin, end).
struct Span {
  int64_t begin;
  int64_t end;
  int64_t count() const { return end - begin; }
};

// Result i is the sum over x of weight(i)[x] * source[first[i] + x], for `count[i]` consecutive samples.
// Indices are relative to the begin of the span.
template <class Weight>
struct Taps {
  // Weights from one result to the next; weights behind count[i] are 0.
  int64_t stride = 0;
  std::vector<int32_t> first;
  std::vector<int32_t> count;
  std::vector<Weight> weights;

  int64_t results() const { return static_cast<int64_t>(first.size()); }
  const Weight* weight(int64_t i) const { return weights.data() + i * stride; }
  // Of the results in [begin, end): the samples that they read.
  Span reads(int64_t begin, int64_t end) const;
  // Samples that two results in a row read, at most.
  int64_t most() const;
};

// Result i is clip8((2^(shift - 1) + sum) >> shift).
struct IntegerTaps : Taps<int32_t> {
  int shift = 0;
  // Whether every weight fits 16 bits; else it is high * 2^12 + low with |low| <= 2^11.
  bool is_narrow = false;
  // The weights of taps 2j and 2j + 1 as two 16-bit numbers: [results][stride / 2], and where weights are
  // not narrow [results][stride / 2][low, high].
  std::vector<int32_t> pairs;
};

// Filters as Pillow applies them: shrinking widens the filter. Errors: ERR_LIMIT for weights of too many
// bytes.
Taps<double> filter_taps(int64_t in, int64_t out, Filter filter, Span span);
// Weights in units of 2^-22, rounded half away from zero.
IntegerTaps pillow_taps(int64_t in, int64_t out, Filter filter, Span span);
// The same in 16 bits, in the smallest unit that holds the largest weight of the whole axis.
IntegerTaps torchvision_taps(int64_t in, int64_t out, Filter filter, Span span);

// Whose nearest neighbour: all differ. torch has two kernels, which round differently, and takes the second
// where width and height of the result are more than 128 together.
enum class NearestRule : uint8_t { kPillow, kPillow16, kTorchvision, kTorchvisionLarge, kOpencv };
std::vector<int32_t> nearest_indices(NearestRule rule, int64_t in, int64_t out, Span span);

// OpenCV's linear interpolation: low and low + 1 with weights that sum to 2^11.
struct LinearTaps {
  std::vector<int32_t> low;
  std::vector<int32_t> high;
  // Of low and of high, two numbers per result.
  std::vector<int16_t> weights;
};
// Along a row indices beyond the edge lose their weight; along a column they keep it, which loses bits.
LinearTaps opencv_linear_columns(int64_t in, int64_t out, Span span);
LinearTaps opencv_linear_rows(int64_t in, int64_t out, Span span);

// OpenCV's areas where the axis does not grow: the covered part of each sample.
Taps<float> opencv_area_taps(int64_t in, int64_t out, Span span);

}  // namespace tilework
