// The rows of an image on their way to a result, one at a time: a chain of steps, each of which makes a row
// from rows of the step before. Steps keep the few rows that will be asked for again, so memory grows with
// the width of an image and the height of a filter, never with whole images.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "image/axis.h"
#include "image/resample.h"

namespace tilework {

// Rows of interleaved samples. Rows must be asked for in ascending order, but for the last rows that a step
// keeps; a row stays valid while it is kept.
class Rows {
 public:
  virtual ~Rows() = default;
  virtual const uint8_t* row(int64_t y) = 0;
};

using RowsPointer = std::unique_ptr<Rows>;

// The last `capacity` rows of `bytes` each. Vectors may read kPadding bytes behind a row.
class KeptRows {
 public:
  KeptRows(int64_t capacity, int64_t bytes);
  bool has(int64_t y) const { return numbers_[slot(y)] == y; }
  uint8_t* at(int64_t y) { return memory_.get() + static_cast<int64_t>(slot(y)) * stride_; }
  // The memory of row y, which it has from now on.
  uint8_t* take(int64_t y) {
    numbers_[slot(y)] = y;
    return at(y);
  }

 private:
  static constexpr int64_t kPadding = 64;
  size_t slot(int64_t y) const { return static_cast<size_t>(y) % numbers_.size(); }

  int64_t stride_;
  std::vector<int64_t> numbers_;
  std::unique_ptr<uint8_t[]> memory_;
};

enum class PixelFormat : uint8_t { kInterleaved, kPlanar, kNv12, kNv21, kI420, kYv12 };

// What happens to the colours of a pixel before the resize.
enum class ColourStep : uint8_t {
  kNone,
  // Pillow's convert("L"): (19595 r + 38470 g + 7471 b + 2^15) >> 16. An alpha behind it is dropped.
  kGrey,
  // Colours times alpha, as Pillow resizes RGBA: t = c * a + 128, (t + (t >> 8)) >> 8.
  kPremultiply,
  // Over an opaque colour: t = c * a + background * (255 - a) + 128, (t + (t >> 8)) >> 8.
  kBackground,
  // Over white in float32, as the torchvision backend of transformers.
  kWhiteFloat,
};

struct SourceImage {
  PixelFormat format;
  int64_t width;
  int64_t height;
  // Samples of a pixel; 3 for the formats of luma and chroma.
  int64_t channels;
  // 1 or 2.
  int64_t sample_bytes;
  ColourStep colours;
  uint8_t background[3];

  // Samples of a pixel after the colour step.
  int64_t working_channels() const;
  int64_t bytes() const;
};

// The pixels themselves where they are interleaved and need no colour step, else converted; keeps `capacity`
// rows.
RowsPointer source_rows(const SourceImage& image, const uint8_t* pixels, int64_t capacity);

// Rows whose pixels are picked by index; null lists pick all.
RowsPointer picked_rows(RowsPointer from, const std::vector<int32_t>& columns,
                        const std::vector<int32_t>& rows, int64_t pixel_bytes);

// Rows before the last of which a step may read ahead, and their bytes.
struct RowLimits {
  int64_t rows;
  int64_t bytes;
};

// Weighted sums along each row; keeps `capacity` rows.
RowsPointer resampled_columns(RowsPointer from, RowLimits limits, int64_t channels, const IntegerTaps& taps,
                              int64_t capacity);
// Weighted sums of rows, of the bytes in `span` of each row only.
RowsPointer resampled_rows(RowsPointer from, Span bytes, const IntegerTaps& taps);

// OpenCV. `bytes` of a source row.
RowsPointer linear_rows(RowsPointer from, int64_t bytes, int64_t channels, const LinearTaps& columns,
                        const LinearTaps& rows);
// Half in both directions: the mean of four pixels, halves up. Columns [left, left + width).
RowsPointer half_rows(RowsPointer from, int64_t channels, int64_t left, int64_t width);

// Whole factors: the mean of cells in float32, ties to even.
struct WholeCells {
  int64_t columns;
  int64_t rows;
  int64_t left;
  int64_t width;
};
RowsPointer whole_area_rows(RowsPointer from, int64_t channels, const WholeCells& cells);
// Others: float32 sums of weighted cells, along each row first.
RowsPointer area_rows(RowsPointer from, int64_t channels, const Taps<float>& columns,
                      const Taps<float>& rows);

// 16-bit samples: sums of float64 products in ascending order, rounded half away from zero.
RowsPointer wide_columns(RowsPointer from, int64_t channels, const Taps<double>& taps, int64_t capacity);
RowsPointer wide_rows(RowsPointer from, Span samples, const Taps<double>& taps);

// Colours divided by alpha again: floor(255 * p / a), at most 255; p itself where a is 0 or 255. `pixels` of
// 2 or 4 channels, the last of which is alpha.
RowsPointer unpremultiplied_rows(RowsPointer from, int64_t pixels, int64_t channels);

}  // namespace tilework
