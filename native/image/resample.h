// Kernels of a resize: weighted sums of bytes along a row, and of rows, and the conversion of a row to
// numbers. Integer arithmetic, or one rounding, so the kernels of all instruction sets and the reference give
// equal bytes. Names: native/NAMING.md; the table is resample.def.
#pragma once

#include <cstdint>

#include "cpu/isa.h"
#include "image/axis.h"

namespace tilework {

// Two rows that are resized together, since each weight is loaded once for both; they may be the same row.
struct RowPair {
  const uint8_t* source[2];
  // Bytes that may be read of each row.
  int64_t source_bytes;
  uint8_t* destination[2];
  // Interleaved samples of a pixel, 1 to 4.
  int64_t channels;
};

// Rows of bytes that become one, each with a weight of a result of `taps`.
struct RowSum {
  const uint8_t* const* rows;
  uint8_t* destination;
  int64_t bytes;
};

// One row between two of 16-bit numbers, at most 32,640, with weights that sum to 2^11.
struct RowBlend {
  const int16_t* low;
  const int16_t* high;
  int16_t low_weight;
  int16_t high_weight;
  uint8_t* destination;
  int64_t count;
};

// One plane of a result: a sample of each interleaved pixel as float32. `table` has an element for each of
// the 256 samples, which equals the sample * scale + offset, rounded once.
struct PlaneRow {
  const uint8_t* pixels;
  // Samples of a pixel, 1 to 4, and which of them.
  int64_t channels;
  int64_t sample;
  const float* table;
  float scale;
  float offset;
  float* destination;
  int64_t count;
};

// Two rows of pixels to one of half the width: the mean of four pixels, halves up.
struct HalfRow {
  const uint8_t* above;
  const uint8_t* below;
  int64_t channels;
  uint8_t* destination;
  // Pixels of the result.
  int64_t count;
};

struct ResampleKernels {
  Isa isa;
  // Result i of each row by the taps.
  void (*columns)(const RowPair& pair, const IntegerTaps& taps);
  void (*rows)(const RowSum& sum, const IntegerTaps& taps, int64_t result);
  // OpenCV's linear interpolation along a row of `channels` samples a pixel: (a * w0 + b * w1) >> 4.
  void (*linear_columns)(const uint8_t* source, int64_t source_bytes, int16_t* destination, int64_t channels,
                         const LinearTaps& taps);
  // clip8((((w0 * a) >> 16) + ((w1 * b) >> 16) + 2) >> 2).
  void (*linear_rows)(const RowBlend& blend);
  void (*half)(const HalfRow& row);
  void (*plane)(const PlaneRow& row);
};

// The first row of the table that this process can run.
const ResampleKernels& resample_kernels();

#define TILEWORK_RESAMPLE_KERNELS(isa, suffix)                                                            \
  void resample_half##suffix(const HalfRow& row);                                                         \
  void resample_plane##suffix(const PlaneRow& row);                                                       \
  void resample_columns##suffix(const RowPair& pair, const IntegerTaps& taps);                            \
  void resample_rows##suffix(const RowSum& sum, const IntegerTaps& taps, int64_t result);                 \
  void resample_linear_columns##suffix(const uint8_t* source, int64_t source_bytes, int16_t* destination, \
                                       int64_t channels, const LinearTaps& taps);                         \
  void resample_linear_rows##suffix(const RowBlend& blend);
#include "image/resample.def"
#undef TILEWORK_RESAMPLE_KERNELS

}  // namespace tilework
