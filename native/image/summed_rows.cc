// Steps that sum samples in loops of their own: OpenCV's areas, and samples of 16 bits. The order of float
// additions is the reference's, and no product is fused with a sum (the file is compiled so).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "image/rows.h"

namespace tilework {
namespace {

class HalfRows : public Rows {
 public:
  HalfRows(RowsPointer from, int64_t channels, int64_t left, int64_t width)
      : from_(std::move(from)), channels_(channels), left_(left), width_(width), kept_(1, width * channels) {}

  const uint8_t* row(int64_t y) override {
    if (kept_.has(y)) return kept_.at(y);
    const uint8_t* above = from_->row(2 * y) + 2 * left_ * channels_;
    const uint8_t* below = from_->row(2 * y + 1) + 2 * left_ * channels_;
    uint8_t* to = kept_.take(y);
    kernels_.half({above, below, channels_, to, width_});
    return to;
  }

 private:
  const ResampleKernels& kernels_ = resample_kernels();
  RowsPointer from_;
  int64_t channels_;
  int64_t left_;
  int64_t width_;
  KeptRows kept_;
};

class WholeAreaRows : public Rows {
 public:
  WholeAreaRows(RowsPointer from, int64_t channels, const WholeCells& cells)
      : from_(std::move(from)),
        channels_(channels),
        cells_(cells),
        sums_(static_cast<size_t>(cells.width * channels)),
        kept_(1, cells.width * channels) {}

  const uint8_t* row(int64_t y) override {
    if (kept_.has(y)) return kept_.at(y);
    std::fill(sums_.begin(), sums_.end(), 0);
    for (int64_t i = 0; i < cells_.rows; ++i) add(from_->row(y * cells_.rows + i));
    const float unit = 1.0F / static_cast<float>(cells_.rows * cells_.columns);
    uint8_t* row = kept_.take(y);
    std::transform(sums_.begin(), sums_.end(), row, [unit](int64_t sum) {
      return static_cast<uint8_t>(std::nearbyint(static_cast<float>(sum) * unit));
    });
    return row;
  }

 private:
  void add(const uint8_t* row) {
    const uint8_t* pixel = row + cells_.left * cells_.columns * channels_;
    for (int64_t x = 0; x < cells_.width; ++x) {
      for (int64_t i = 0; i < cells_.columns; ++i, pixel += channels_) {
        for (int64_t c = 0; c < channels_; ++c) sums_[static_cast<size_t>(x * channels_ + c)] += pixel[c];
      }
    }
  }

  RowsPointer from_;
  int64_t channels_;
  WholeCells cells_;
  std::vector<int64_t> sums_;
  KeptRows kept_;
};

class AreaRows : public Rows {
 public:
  AreaRows(RowsPointer from, int64_t channels, const Taps<float>& columns, const Taps<float>& rows)
      : from_(std::move(from)),
        channels_(channels),
        columns_(columns),
        rows_(rows),
        along_(static_cast<size_t>(columns.results() * channels)),
        sums_(along_.size()),
        kept_(1, columns.results() * channels) {}

  const uint8_t* row(int64_t y) override {
    if (kept_.has(y)) return kept_.at(y);
    const auto at = static_cast<size_t>(y);
    std::fill(sums_.begin(), sums_.end(), 0.0F);
    for (int32_t i = 0; i < rows_.count[at]; ++i) {
      const float weight = rows_.weight(y)[i];
      sum_along(int64_t{rows_.first[at]} + i);
      for (size_t k = 0; k < sums_.size(); ++k) sums_[k] += along_[k] * weight;
    }
    uint8_t* row = kept_.take(y);
    std::transform(sums_.begin(), sums_.end(), row, [](float sum) {
      return static_cast<uint8_t>(std::clamp(std::nearbyint(sum), 0.0F, 255.0F));
    });
    return row;
  }

 private:
  // Two results in a row share a source row at most, which is kept.
  void sum_along(int64_t y) {
    if (y == along_row_) return;
    along_row_ = y;
    const uint8_t* row = from_->row(y);
    for (int64_t x = 0; x < columns_.results(); ++x) {
      const auto at = static_cast<size_t>(x);
      for (int64_t c = 0; c < channels_; ++c) {
        float sum = 0;
        for (int32_t i = 0; i < columns_.count[at]; ++i) {
          const float sample = row[(int64_t{columns_.first[at]} + i) * channels_ + c];
          sum += sample * columns_.weight(x)[i];
        }
        along_[static_cast<size_t>(x * channels_ + c)] = sum;
      }
    }
  }

  RowsPointer from_;
  int64_t channels_;
  const Taps<float>& columns_;
  const Taps<float>& rows_;
  int64_t along_row_ = -1;
  std::vector<float> along_;
  std::vector<float> sums_;
  KeptRows kept_;
};

uint16_t rounded16(double sum) {
  return static_cast<uint16_t>(std::clamp(std::trunc(sum >= 0 ? sum + 0.5 : sum - 0.5), 0.0, 65535.0));
}

class WideColumns : public Rows {
 public:
  WideColumns(RowsPointer from, int64_t channels, const Taps<double>& taps, int64_t capacity)
      : from_(std::move(from)),
        channels_(channels),
        taps_(taps),
        kept_(capacity, taps.results() * channels * static_cast<int64_t>(sizeof(uint16_t))) {}

  const uint8_t* row(int64_t y) override {
    if (kept_.has(y)) return kept_.at(y);
    const auto* from = reinterpret_cast<const uint16_t*>(from_->row(y));
    uint8_t* row = kept_.take(y);
    auto* to = reinterpret_cast<uint16_t*>(row);
    for (int64_t x = 0; x < taps_.results(); ++x) {
      const auto at = static_cast<size_t>(x);
      for (int64_t c = 0; c < channels_; ++c) {
        double sum = 0;
        for (int32_t i = 0; i < taps_.count[at]; ++i) {
          const double sample = from[(int64_t{taps_.first[at]} + i) * channels_ + c];
          sum += sample * taps_.weight(x)[i];
        }
        *to++ = rounded16(sum);
      }
    }
    return row;
  }

 private:
  RowsPointer from_;
  int64_t channels_;
  const Taps<double>& taps_;
  KeptRows kept_;
};

class WideRows : public Rows {
 public:
  WideRows(RowsPointer from, Span samples, const Taps<double>& taps)
      : from_(std::move(from)),
        samples_(samples),
        taps_(taps),
        sums_(static_cast<size_t>(samples.count())),
        kept_(1, samples.end * static_cast<int64_t>(sizeof(uint16_t))) {}

  const uint8_t* row(int64_t y) override {
    if (kept_.has(y)) return kept_.at(y);
    const auto at = static_cast<size_t>(y);
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (int32_t i = 0; i < taps_.count[at]; ++i) {
      const double weight = taps_.weight(y)[i];
      const uint8_t* source = from_->row(int64_t{taps_.first[at]} + i);
      const auto* row = reinterpret_cast<const uint16_t*>(source) + samples_.begin;
      for (size_t k = 0; k < sums_.size(); ++k) sums_[k] += static_cast<double>(row[k]) * weight;
    }
    uint8_t* row = kept_.take(y);
    std::transform(sums_.begin(), sums_.end(), reinterpret_cast<uint16_t*>(row) + samples_.begin, rounded16);
    return row;
  }

 private:
  RowsPointer from_;
  Span samples_;
  const Taps<double>& taps_;
  std::vector<double> sums_;
  KeptRows kept_;
};

}  // namespace

RowsPointer half_rows(RowsPointer from, int64_t channels, int64_t left, int64_t width) {
  return std::make_unique<HalfRows>(std::move(from), channels, left, width);
}

RowsPointer whole_area_rows(RowsPointer from, int64_t channels, const WholeCells& cells) {
  return std::make_unique<WholeAreaRows>(std::move(from), channels, cells);
}

RowsPointer area_rows(RowsPointer from, int64_t channels, const Taps<float>& columns,
                      const Taps<float>& rows) {
  return std::make_unique<AreaRows>(std::move(from), channels, columns, rows);
}

RowsPointer wide_columns(RowsPointer from, int64_t channels, const Taps<double>& taps, int64_t capacity) {
  return std::make_unique<WideColumns>(std::move(from), channels, taps, capacity);
}

RowsPointer wide_rows(RowsPointer from, Span samples, const Taps<double>& taps) {
  return std::make_unique<WideRows>(std::move(from), samples, taps);
}

}  // namespace tilework
