// From pixels to the input of a model in one pass over rows: colour step, resize, crop, borders, conversion
// of each sample by a table, and layout. The caller decides sizes and tables; a plan serves any number of
// images of one size.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "image/axis.h"
#include "image/rows.h"

namespace tilework {

// Whose bytes a resize repeats.
enum class ResizeRule : uint8_t {
  kPillow,
  // The order of passes of Pillow 12.
  kPillow12,
  kTorchvision,
  kOpencvLinear,
  kOpencvNearest,
  // Where no side grows.
  kOpencvArea,
};

struct Box {
  int64_t left;
  int64_t top;
  int64_t width;
  int64_t height;
};

struct ImageDescription {
  SourceImage source;
  ResizeRule rule;
  // For Pillow and torchvision.
  Filter filter;
  int64_t resized_width;
  int64_t resized_height;
  // What is seen of the resized image.
  Box crop;
  // The result, and where the crop is in it.
  int64_t width;
  int64_t height;
  int64_t left;
  int64_t top;
  // Around the crop, up to this box of the result, stand `inner_codes`, and around the box `outer_codes`.
  Box inner;
  // The sample of a pixel, after the colour step, that each channel of the result shows.
  std::vector<int64_t> channels;
  // Of an element of the result: 1, 2, 4 or 8.
  int64_t element_bytes;
  // Elements: for each channel one per value of a sample.
  std::vector<uint8_t> tables;
  // One element per channel.
  std::vector<uint8_t> inner_codes;
  std::vector<uint8_t> outer_codes;
  // Whether channels are planes, or interleaved.
  bool is_planar;
};

// Rows of the result in memory: of each channel, or of all where they are interleaved, the rows
// [begin, end).
struct ImageTarget {
  uint8_t* memory;
  int64_t begin;
  int64_t end;
};

class ImagePlan {
 public:
  // Errors: ERR_ARGUMENT for a description whose numbers do not fit together, ERR_LIMIT for weights or kept
  // rows of too many bytes.
  explicit ImagePlan(ImageDescription description);
  ImagePlan(const ImagePlan&) = delete;
  ImagePlan& operator=(const ImagePlan&) = delete;

  int64_t source_bytes() const { return is_.source.bytes(); }
  // Of `rows` rows of the result, all channels.
  int64_t result_bytes(int64_t rows) const;
  int64_t height() const { return is_.height; }
  // What addresses of pixels and of a result are multiples of.
  uintptr_t source_alignment() const { return static_cast<uintptr_t>(is_.source.sample_bytes); }
  uintptr_t target_alignment() const { return static_cast<uintptr_t>(is_.element_bytes); }
  // Parts of [begin, end) that threads may run, each of whole rows.
  int64_t parts(int64_t begin, int64_t end, size_t threads) const;
  int64_t footprint() const;

  // Rows [begin, end) of the result. On any thread, and on several at a time.
  void run(const uint8_t* pixels, const ImageTarget& target, int64_t begin, int64_t end) const;

 private:
  struct Weights {
    IntegerTaps columns;
    IntegerTaps rows;
    Taps<double> wide_columns;
    Taps<double> wide_rows;
    LinearTaps linear_columns;
    LinearTaps linear_rows;
    Taps<float> area_columns;
    Taps<float> area_rows;
    std::vector<int32_t> column_indices;
    std::vector<int32_t> row_indices;
  };

  void check() const;
  void prepare();
  void prepare_filter();
  bool resizes() const;
  bool is_rows_first() const;
  RowsPointer make_rows(const uint8_t* pixels) const;
  RowsPointer filtered(const uint8_t* pixels) const;
  RowsPointer filtered_wide(const uint8_t* pixels) const;
  void find_scales();
  void write_row(const uint8_t* samples, const ImageTarget& target, int64_t y) const;
  void write_scaled(const uint8_t* samples, uint8_t* memory, int64_t at, int64_t plane) const;
  void write_border(const ImageTarget& target, int64_t y, Span columns,
                    const std::vector<uint8_t>& codes) const;

  // A table of float32 that is one multiplication and addition, rounded once.
  struct Scale {
    float scale;
    float offset;
  };

  ImageDescription is_;
  Weights weights_;
  // Of each channel; empty where the table of one is none.
  std::vector<Scale> scales_;
  int64_t samples_;
  // Row 0 of the crop as the last step counts rows, and its first pixel in such a row.
  int64_t first_row_ = 0;
  int64_t first_column_ = 0;
};

}  // namespace tilework
