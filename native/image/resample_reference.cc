// The definition of the kernels of resample.h: plain loops in the order of the formulas.
#include <algorithm>

#include "image/resample.h"

namespace tilework {
namespace {

uint8_t clip8(int64_t value) { return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255)); }

constexpr ResampleKernels kTable[] = {
#define TILEWORK_RESAMPLE_KERNELS(isa, suffix) \
  {Isa::isa,                                   \
   resample_columns##suffix,                   \
   resample_rows##suffix,                      \
   resample_linear_columns##suffix,            \
   resample_linear_rows##suffix,               \
   resample_half##suffix,                      \
   resample_plane##suffix},
#include "image/resample.def"
#undef TILEWORK_RESAMPLE_KERNELS
};

}  // namespace

const ResampleKernels& resample_kernels() {
  for (const ResampleKernels& row : kTable) {
    if (can_run(row.isa)) return row;
  }
  return kTable[std::size(kTable) - 1];
}

void resample_columns_reference(const RowPair& pair, const IntegerTaps& taps) {
  for (int row = 0; row < 2; ++row) {
    for (int64_t i = 0; i < taps.results(); ++i) {
      const auto at = static_cast<size_t>(i);
      for (int64_t c = 0; c < pair.channels; ++c) {
        int64_t sum = int64_t{1} << taps.shift >> 1;
        for (int64_t x = 0; x < taps.count[at]; ++x) {
          sum += int64_t{pair.source[row][(taps.first[at] + x) * pair.channels + c]} * taps.weight(i)[x];
        }
        pair.destination[row][i * pair.channels + c] = clip8(sum >> taps.shift);
      }
    }
  }
}

void resample_rows_reference(const RowSum& sum, const IntegerTaps& taps, int64_t result) {
  for (int64_t i = 0; i < sum.bytes; ++i) {
    int64_t total = int64_t{1} << taps.shift >> 1;
    for (int64_t y = 0; y < taps.count[static_cast<size_t>(result)]; ++y) {
      total += int64_t{sum.rows[y][i]} * taps.weight(result)[y];
    }
    sum.destination[i] = clip8(total >> taps.shift);
  }
}

void resample_linear_columns_reference(const uint8_t* source, int64_t, int16_t* destination, int64_t channels,
                                       const LinearTaps& taps) {
  for (size_t i = 0; i < taps.low.size(); ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      const int32_t low = source[taps.low[i] * channels + c];
      const int32_t high = source[taps.high[i] * channels + c];
      const int32_t sum = low * taps.weights[2 * i] + high * taps.weights[2 * i + 1];
      *destination++ = static_cast<int16_t>(sum >> 4);
    }
  }
}

void resample_linear_rows_reference(const RowBlend& blend) {
  for (int64_t i = 0; i < blend.count; ++i) {
    const int32_t low = int32_t{blend.low[i]} * blend.low_weight >> 16;
    const int32_t high = int32_t{blend.high[i]} * blend.high_weight >> 16;
    blend.destination[i] = clip8((low + high + 2) >> 2);
  }
}

void resample_half_reference(const HalfRow& row) {
  for (int64_t x = 0; x < row.count; ++x) {
    for (int64_t c = 0; c < row.channels; ++c) {
      const int64_t first = 2 * x * row.channels + c;
      const int64_t second = first + row.channels;
      const int sum = row.above[first] + row.above[second] + row.below[first] + row.below[second];
      row.destination[x * row.channels + c] = static_cast<uint8_t>((sum + 2) >> 2);
    }
  }
}

void resample_plane_reference(const PlaneRow& row) {
  for (int64_t x = 0; x < row.count; ++x)
    row.destination[x] = row.table[row.pixels[x * row.channels + row.sample]];
}

}  // namespace tilework
