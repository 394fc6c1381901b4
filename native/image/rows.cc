#include "image/rows.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "error.h"
#include "facts/limits.h"

namespace tilework {
namespace {

class PickedRows : public Rows {
 public:
  PickedRows(RowsPointer from, const std::vector<int32_t>& columns, const std::vector<int32_t>& rows,
             int64_t pixel_bytes)
      : from_(std::move(from)),
        columns_(columns),
        rows_(rows),
        pixel_bytes_(pixel_bytes),
        kept_(1, static_cast<int64_t>(columns.size()) * pixel_bytes) {}

  const uint8_t* row(int64_t y) override {
    const int64_t source_row = rows_[static_cast<size_t>(y)];
    if (kept_.has(source_row)) return kept_.at(source_row);
    const uint8_t* from = from_->row(source_row);
    uint8_t* to = kept_.take(source_row);
    switch (pixel_bytes_) {
      case 1:
        return pick<1>(from, to);
      case 3:
        return pick<3>(from, to);
      case 4:
        return pick<4>(from, to);
      default:
        for (const int32_t column : columns_) {
          std::memcpy(to, from + column * pixel_bytes_, static_cast<size_t>(pixel_bytes_));
          to += pixel_bytes_;
        }
        return kept_.at(source_row);
    }
  }

 private:
  template <size_t kBytes>
  const uint8_t* pick(const uint8_t* from, uint8_t* to) const {
    const uint8_t* row = to;
    for (const int32_t column : columns_) {
      std::memcpy(to, from + static_cast<size_t>(column) * kBytes, kBytes);
      to += kBytes;
    }
    return row;
  }

  RowsPointer from_;
  const std::vector<int32_t>& columns_;
  const std::vector<int32_t>& rows_;
  int64_t pixel_bytes_;
  KeptRows kept_;
};

class ResampledColumns : public Rows {
 public:
  // One row more is kept: rows are made in pairs.
  ResampledColumns(RowsPointer from, RowLimits limits, int64_t channels, const IntegerTaps& taps,
                   int64_t capacity)
      : from_(std::move(from)),
        limits_(limits),
        channels_(channels),
        taps_(taps),
        kept_(capacity + 1, taps.results() * channels) {}

  const uint8_t* row(int64_t y) override {
    if (kept_.has(y)) return kept_.at(y);
    const int64_t next = y + 1 < limits_.rows ? y + 1 : y;
    const uint8_t* first = from_->row(y);
    const uint8_t* second = from_->row(next);
    const RowPair pair{{first, second}, limits_.bytes, {kept_.take(y), kept_.take(next)}, channels_};
    kernels_.columns(pair, taps_);
    return kept_.at(y);
  }

 private:
  const ResampleKernels& kernels_ = resample_kernels();
  RowsPointer from_;
  RowLimits limits_;
  int64_t channels_;
  const IntegerTaps& taps_;
  KeptRows kept_;
};

class ResampledRows : public Rows {
 public:
  ResampledRows(RowsPointer from, Span bytes, const IntegerTaps& taps)
      : from_(std::move(from)), bytes_(bytes), taps_(taps), kept_(2, bytes.end) {}

  const uint8_t* row(int64_t y) override {
    if (kept_.has(y)) return kept_.at(y);
    const auto at = static_cast<size_t>(y);
    rows_.clear();
    for (int32_t i = 0; i < taps_.count[at]; ++i) {
      rows_.push_back(from_->row(int64_t{taps_.first[at]} + i) + bytes_.begin);
    }
    uint8_t* row = kept_.take(y);
    kernels_.rows({rows_.data(), row + bytes_.begin, bytes_.count()}, taps_, y);
    return row;
  }

 private:
  const ResampleKernels& kernels_ = resample_kernels();
  RowsPointer from_;
  Span bytes_;
  const IntegerTaps& taps_;
  KeptRows kept_;
  std::vector<const uint8_t*> rows_;
};

class LinearRows : public Rows {
 public:
  LinearRows(RowsPointer from, int64_t bytes, int64_t channels, const LinearTaps& columns,
             const LinearTaps& rows)
      : from_(std::move(from)),
        bytes_(bytes),
        channels_(channels),
        columns_(columns),
        rows_(rows),
        count_(static_cast<int64_t>(columns.low.size()) * channels),
        along_(2, count_ * static_cast<int64_t>(sizeof(int16_t))),
        made_(1, count_) {}

  const uint8_t* row(int64_t y) override {
    if (made_.has(y)) return made_.at(y);
    const auto at = static_cast<size_t>(y);
    const int16_t low_weight = rows_.weights[2 * at];
    const int16_t high_weight = rows_.weights[2 * at + 1];
    const int16_t* low = along(rows_.low[at]);
    // A row without weight adds 0, so it is not made.
    const int16_t* high = high_weight == 0 ? low : along(rows_.high[at]);
    uint8_t* row = made_.take(y);
    kernels_.linear_rows({low, high, low_weight, high_weight, row, count_});
    return row;
  }

 private:
  const int16_t* along(int64_t y) {
    if (!along_.has(y)) {
      const uint8_t* from = from_->row(y);
      kernels_.linear_columns(from, bytes_, reinterpret_cast<int16_t*>(along_.take(y)), channels_, columns_);
    }
    return reinterpret_cast<const int16_t*>(along_.at(y));
  }

  const ResampleKernels& kernels_ = resample_kernels();
  RowsPointer from_;
  int64_t bytes_;
  int64_t channels_;
  const LinearTaps& columns_;
  const LinearTaps& rows_;
  int64_t count_;
  KeptRows along_;
  KeptRows made_;
};

class UnpremultipliedRows : public Rows {
 public:
  UnpremultipliedRows(RowsPointer from, int64_t pixels, int64_t channels)
      : from_(std::move(from)), pixels_(pixels), channels_(channels), kept_(1, pixels * channels) {}

  const uint8_t* row(int64_t y) override {
    if (kept_.has(y)) return kept_.at(y);
    const uint8_t* from = from_->row(y);
    uint8_t* row = kept_.take(y);
    std::memcpy(row, from, static_cast<size_t>(pixels_ * channels_));
    const int64_t colours = channels_ - 1;
    for (uint8_t* pixel = row; pixel < row + pixels_ * channels_; pixel += channels_) {
      const unsigned alpha = pixel[colours];
      if (alpha == 0 || alpha == 255) continue;
      for (int64_t c = 0; c < colours; ++c) {
        pixel[c] = static_cast<uint8_t>(std::min(255U * pixel[c] / alpha, 255U));
      }
    }
    return row;
  }

 private:
  RowsPointer from_;
  int64_t pixels_;
  int64_t channels_;
  KeptRows kept_;
};

}  // namespace

KeptRows::KeptRows(int64_t capacity, int64_t bytes)
    : stride_((bytes + 2 * kPadding - 1) / kPadding * kPadding) {
  if (capacity > kMaxScratchBytes / stride_) {
    throw Error(ErrorCode::kLimit, "the resize keeps " + std::to_string(capacity) + " rows of " +
                                       std::to_string(bytes) + " bytes; the limit is " +
                                       std::to_string(kMaxScratchBytes) + " bytes.");
  }
  numbers_.assign(static_cast<size_t>(capacity), -1);
  memory_.reset(new uint8_t[static_cast<size_t>(capacity * stride_)]);
}

RowsPointer picked_rows(RowsPointer from, const std::vector<int32_t>& columns,
                        const std::vector<int32_t>& rows, int64_t pixel_bytes) {
  return std::make_unique<PickedRows>(std::move(from), columns, rows, pixel_bytes);
}

RowsPointer resampled_columns(RowsPointer from, RowLimits limits, int64_t channels, const IntegerTaps& taps,
                              int64_t capacity) {
  return std::make_unique<ResampledColumns>(std::move(from), limits, channels, taps, capacity);
}

RowsPointer resampled_rows(RowsPointer from, Span bytes, const IntegerTaps& taps) {
  return std::make_unique<ResampledRows>(std::move(from), bytes, taps);
}

RowsPointer linear_rows(RowsPointer from, int64_t bytes, int64_t channels, const LinearTaps& columns,
                        const LinearTaps& rows) {
  return std::make_unique<LinearRows>(std::move(from), bytes, channels, columns, rows);
}

RowsPointer unpremultiplied_rows(RowsPointer from, int64_t pixels, int64_t channels) {
  return std::make_unique<UnpremultipliedRows>(std::move(from), pixels, channels);
}

}  // namespace tilework
