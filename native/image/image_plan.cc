#include "image/image_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "error.h"
#include "facts/limits.h"
#include "policy/thresholds.h"

namespace tilework {
namespace {

constexpr int64_t kMostChannels = 4;
// Beyond every memory; numbers of bytes stay far from overflow.
constexpr int64_t kMostPixels = int64_t{1} << 48;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kArgument, "the image plan has wrong numbers: " + what + ".");
}

void require(bool holds, const char* what) {
  if (!holds) refuse(what);
}

bool is_inside(const Box& box, int64_t width, int64_t height) {
  return box.left >= 0 && box.top >= 0 && box.width >= 0 && box.height >= 0 && box.width <= width &&
         box.height <= height && box.left <= width - box.width && box.top <= height - box.height;
}

bool is_luma(PixelFormat format) {
  return format != PixelFormat::kInterleaved && format != PixelFormat::kPlanar;
}

bool is_pillow(ResizeRule rule) { return rule == ResizeRule::kPillow || rule == ResizeRule::kPillow12; }

NearestRule nearest_rule(const ImageDescription& is) {
  constexpr int64_t kSmallSides = 128;
  if (is.rule == ResizeRule::kTorchvision) {
    const bool is_small = is.resized_width + is.resized_height <= kSmallSides;
    return is_small ? NearestRule::kTorchvision : NearestRule::kTorchvisionLarge;
  }
  if (is.rule == ResizeRule::kOpencvNearest) return NearestRule::kOpencv;
  return is.source.sample_bytes == 2 ? NearestRule::kPillow16 : NearestRule::kPillow;
}

// One channel of a row: sample `step` apart to elements `step` apart.
template <class Element, class Sample>
void convert(const Sample* samples, int64_t sample_step, const Element* table, Element* to, int64_t to_step,
             int64_t count) {
  for (int64_t x = 0; x < count; ++x) to[x * to_step] = table[samples[x * sample_step]];
}

// Whether `table` has the bits of sample * scale + offset, rounded once, for each sample. Not for scales that
// a thread which flushes subnormal numbers takes for 0.
bool is_scaled(const float* table, float scale, float offset) {
  if (!std::isnormal(scale)) return false;
  for (int sample = 255; sample >= 0; --sample) {
    const float number = std::fma(static_cast<float>(sample), scale, offset);
    if (std::memcmp(&number, table + sample, sizeof(number)) != 0) return false;
  }
  return true;
}

template <class Body>
void with_element(int64_t bytes, Body body) {
  switch (bytes) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    default:
      return body(uint64_t{});
  }
}

}  // namespace

ImagePlan::ImagePlan(ImageDescription description)
    : is_(std::move(description)), samples_(is_.source.working_channels()) {
  check();
  // Colours are multiplied by alpha around a filter only.
  const bool is_filtered = resizes() && is_.filter != Filter::kNearest;
  if (is_.source.colours == ColourStep::kPremultiply && !is_filtered) is_.source.colours = ColourStep::kNone;
  prepare();
  find_scales();
  // Rows that are too many are refused now, not by the first run.
  make_rows(nullptr);
}

void ImagePlan::check() const {
  const SourceImage& source = is_.source;
  const auto is_size = [](int64_t width, int64_t height) {
    return width >= 1 && height >= 1 && width <= INT32_MAX && height <= INT32_MAX &&
           width * height <= kMostPixels;
  };
  require(is_size(source.width, source.height), "the size of the source");
  require(source.channels >= 1 && source.channels <= kMostChannels, "the channels of the source");
  require(source.sample_bytes == 1 || source.sample_bytes == 2, "the bytes of a sample");
  require(source.sample_bytes == 1 || source.colours == ColourStep::kNone,
          "16-bit samples with colour steps");
  if (is_luma(source.format)) {
    require(source.width % 2 == 0 && source.height % 2 == 0 && source.channels == 3, "luma and chroma");
  }
  require(source.colours != ColourStep::kGrey || source.channels >= 3, "grey of less than 3 channels");
  require(samples_ >= 1, "a background of 1 channel");
  require(is_size(is_.resized_width, is_.resized_height), "the size of the resized image");
  require(is_size(is_.width, is_.height), "the size of the result");
  require(is_inside(is_.crop, is_.resized_width, is_.resized_height), "the crop");
  require(is_inside(is_.inner, is_.width, is_.height), "the inner box");
  const Box placed{is_.left - is_.inner.left, is_.top - is_.inner.top, is_.crop.width, is_.crop.height};
  require(is_inside(placed, is_.inner.width, is_.inner.height), "the place of the crop");
  const auto channels = static_cast<int64_t>(is_.channels.size());
  require(channels >= 1 && channels <= kMostChannels, "the channels of the result");
  for (const int64_t channel : is_.channels) require(channel >= 0 && channel < samples_, "a channel");
  const int64_t bytes = is_.element_bytes;
  require(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8, "the bytes of an element");
  const int64_t entries = source.sample_bytes == 1 ? 256 : 65536;
  require(static_cast<int64_t>(is_.tables.size()) == channels * entries * bytes, "the tables");
  require(static_cast<int64_t>(is_.inner_codes.size()) == channels * bytes, "the inner codes");
  require(static_cast<int64_t>(is_.outer_codes.size()) == channels * bytes, "the outer codes");
  const bool grows = is_.resized_width > source.width || is_.resized_height > source.height;
  require(is_.rule != ResizeRule::kOpencvArea || !grows, "an area that grows");
  const bool is_wide = source.sample_bytes == 2;
  require(!is_wide || is_pillow(is_.rule) || !resizes(), "16-bit samples by another rule than Pillow's");
}

bool ImagePlan::resizes() const {
  return is_.source.width != is_.resized_width || is_.source.height != is_.resized_height;
}

// By differences of sizes, not ratios.
bool ImagePlan::is_rows_first() const {
  const int64_t height = is_.source.height;
  const int64_t width = is_.source.width;
  if (is_.rule == ResizeRule::kPillow12) return height > 100 * width && is_.resized_height < height;
  if (is_.rule != ResizeRule::kPillow) return false;
  const int64_t shrunk = height - is_.resized_height;
  return shrunk > 0 && shrunk > 2 * (width - is_.resized_width);
}

void ImagePlan::prepare() {
  const SourceImage& source = is_.source;
  const Box& crop = is_.crop;
  const Span columns{crop.left, crop.left + crop.width};
  const Span rows{crop.top, crop.top + crop.height};
  if (!resizes()) {
    first_row_ = crop.top;
    first_column_ = crop.left;
    return;
  }
  const int64_t width = is_.resized_width;
  const int64_t height = is_.resized_height;
  const bool is_nearest = is_.filter == Filter::kNearest || is_.rule == ResizeRule::kOpencvNearest;
  if (is_.rule == ResizeRule::kOpencvLinear) {
    weights_.linear_columns = opencv_linear_columns(source.width, width, columns);
    weights_.linear_rows = opencv_linear_rows(source.height, height, rows);
  } else if (is_.rule == ResizeRule::kOpencvArea) {
    weights_.area_columns = opencv_area_taps(source.width, width, columns);
    weights_.area_rows = opencv_area_taps(source.height, height, rows);
    // Whole cells are counted from the first row of the resized image.
    const bool is_whole = source.width % width == 0 && source.height % height == 0;
    if (is_whole) first_row_ = crop.top;
  } else if (is_nearest) {
    const NearestRule rule = nearest_rule(is_);
    weights_.column_indices = nearest_indices(rule, source.width, width, columns);
    weights_.row_indices = nearest_indices(rule, source.height, height, rows);
  } else {
    prepare_filter();
  }
  const bool is_half = source.width == 2 * width && source.height == 2 * height;
  if (is_half && is_.rule == ResizeRule::kOpencvLinear) first_row_ = crop.top;
}

// A side that stays is not filtered.
void ImagePlan::prepare_filter() {
  const SourceImage& source = is_.source;
  const Span columns{is_.crop.left, is_.crop.left + is_.crop.width};
  const Span rows{is_.crop.top, is_.crop.top + is_.crop.height};
  const bool is_wide = source.sample_bytes == 2;
  const auto taps = is_.rule == ResizeRule::kTorchvision ? torchvision_taps : pillow_taps;
  if (source.width == is_.resized_width) {
    first_column_ = is_.crop.left;
  } else if (is_wide) {
    weights_.wide_columns = filter_taps(source.width, is_.resized_width, is_.filter, columns);
  } else {
    weights_.columns = taps(source.width, is_.resized_width, is_.filter, columns);
  }
  if (source.height == is_.resized_height) {
    first_row_ = is_.crop.top;
  } else if (is_wide) {
    weights_.wide_rows = filter_taps(source.height, is_.resized_height, is_.filter, rows);
  } else {
    weights_.rows = taps(source.height, is_.resized_height, is_.filter, rows);
  }
}

RowsPointer ImagePlan::make_rows(const uint8_t* pixels) const {
  const SourceImage& source = is_.source;
  if (is_.crop.width == 0 || is_.crop.height == 0 || !resizes()) return source_rows(source, pixels, 1);
  const int64_t width = is_.resized_width;
  const int64_t height = is_.resized_height;
  const bool is_half = source.width == 2 * width && source.height == 2 * height;
  const bool is_opencv = is_.rule == ResizeRule::kOpencvLinear || is_.rule == ResizeRule::kOpencvArea;
  if (is_half && is_opencv)
    return half_rows(source_rows(source, pixels, 2), samples_, is_.crop.left, is_.crop.width);
  if (is_.rule == ResizeRule::kOpencvLinear) {
    return linear_rows(source_rows(source, pixels, 1), source.width * samples_, samples_,
                       weights_.linear_columns, weights_.linear_rows);
  }
  if (is_.rule == ResizeRule::kOpencvArea) {
    RowsPointer rows = source_rows(source, pixels, 1);
    if (source.width % width != 0 || source.height % height != 0)
      return area_rows(std::move(rows), samples_, weights_.area_columns, weights_.area_rows);
    const WholeCells cells{source.width / width, source.height / height, is_.crop.left, is_.crop.width};
    return whole_area_rows(std::move(rows), samples_, cells);
  }
  if (!weights_.column_indices.empty()) {
    return picked_rows(source_rows(source, pixels, 1), weights_.column_indices, weights_.row_indices,
                       samples_ * source.sample_bytes);
  }
  RowsPointer rows = source.sample_bytes == 2 ? filtered_wide(pixels) : filtered(pixels);
  if (source.colours != ColourStep::kPremultiply) return rows;
  const int64_t seen = source.width == width ? width : is_.crop.width;
  return unpremultiplied_rows(std::move(rows), seen, samples_);
}

RowsPointer ImagePlan::filtered(const uint8_t* pixels) const {
  const SourceImage& source = is_.source;
  const bool has_columns = weights_.columns.results() > 0;
  const bool has_rows = weights_.rows.results() > 0;
  const int64_t most = weights_.rows.most();
  const int64_t row_bytes = source.width * samples_;
  if (!has_rows) {
    return resampled_columns(source_rows(source, pixels, 2), {source.height, row_bytes}, samples_,
                             weights_.columns, 1);
  }
  if (has_columns && !is_rows_first()) {
    RowsPointer columns = resampled_columns(source_rows(source, pixels, 2), {source.height, row_bytes},
                                            samples_, weights_.columns, most);
    return resampled_rows(std::move(columns), {0, weights_.columns.results() * samples_}, weights_.rows);
  }
  const Span seen = has_columns ? weights_.columns.reads(0, weights_.columns.results())
                                : Span{is_.crop.left, is_.crop.left + is_.crop.width};
  RowsPointer rows = resampled_rows(source_rows(source, pixels, most),
                                    {seen.begin * samples_, seen.end * samples_}, weights_.rows);
  if (!has_columns) return rows;
  return resampled_columns(std::move(rows), {weights_.rows.results(), row_bytes}, samples_, weights_.columns,
                           1);
}

RowsPointer ImagePlan::filtered_wide(const uint8_t* pixels) const {
  const SourceImage& source = is_.source;
  const bool has_columns = weights_.wide_columns.results() > 0;
  const bool has_rows = weights_.wide_rows.results() > 0;
  const int64_t most = weights_.wide_rows.most();
  if (!has_rows) return wide_columns(source_rows(source, pixels, 1), samples_, weights_.wide_columns, 1);
  if (has_columns && !is_rows_first()) {
    RowsPointer columns = wide_columns(source_rows(source, pixels, 1), samples_, weights_.wide_columns, most);
    return wide_rows(std::move(columns), {0, weights_.wide_columns.results() * samples_}, weights_.wide_rows);
  }
  RowsPointer rows =
      wide_rows(source_rows(source, pixels, most), {0, source.width * samples_}, weights_.wide_rows);
  if (!has_columns) return rows;
  return wide_columns(std::move(rows), samples_, weights_.wide_columns, 1);
}

int64_t ImagePlan::result_bytes(int64_t rows) const {
  return rows * is_.width * static_cast<int64_t>(is_.channels.size()) * is_.element_bytes;
}

int64_t ImagePlan::footprint() const {
  const auto bytes = [](const auto& list) { return static_cast<int64_t>(list.size() * sizeof(list[0])); };
  const auto of_taps = [&](const auto& taps) {
    return bytes(taps.first) + bytes(taps.count) + bytes(taps.weights);
  };
  return static_cast<int64_t>(sizeof(ImagePlan)) + bytes(is_.tables) + of_taps(weights_.columns) +
         bytes(weights_.columns.pairs) + of_taps(weights_.rows) + bytes(weights_.rows.pairs) +
         of_taps(weights_.wide_columns) + of_taps(weights_.wide_rows) + of_taps(weights_.area_columns) +
         of_taps(weights_.area_rows) + 3 * bytes(weights_.linear_columns.low) +
         3 * bytes(weights_.linear_rows.low) + bytes(weights_.column_indices) + bytes(weights_.row_indices);
}

// Neighbouring parts make some rows twice, so parts are long.
int64_t ImagePlan::parts(int64_t begin, int64_t end, size_t threads) const {
  constexpr int64_t kLeastRows = 32;
  const int64_t rows = end - begin;
  const bool is_small = source_bytes() + result_bytes(rows) < kThreadedBytes;
  if (is_small || threads < 2) return 1;
  return std::clamp<int64_t>(rows / kLeastRows, 1, static_cast<int64_t>(threads));
}

void ImagePlan::run(const uint8_t* pixels, const ImageTarget& target, int64_t begin, int64_t end) const {
  const RowsPointer rows = make_rows(pixels);
  const Box& inner = is_.inner;
  const Box crop{is_.left, is_.top, is_.crop.width, is_.crop.height};
  for (int64_t y = begin; y < end; ++y) {
    const bool is_in_inner = y >= inner.top && y < inner.top + inner.height;
    const bool is_in_crop = crop.width > 0 && y >= crop.top && y < crop.top + crop.height;
    const Span middle = is_in_inner ? Span{inner.left, inner.left + inner.width} : Span{is_.width, is_.width};
    const Span seen = is_in_crop ? Span{crop.left, crop.left + crop.width} : Span{middle.end, middle.end};
    write_border(target, y, {0, middle.begin}, is_.outer_codes);
    write_border(target, y, {middle.begin, seen.begin}, is_.inner_codes);
    if (is_in_crop) write_row(rows->row(first_row_ + y - crop.top), target, y);
    write_border(target, y, {seen.end, middle.end}, is_.inner_codes);
    write_border(target, y, {middle.end, is_.width}, is_.outer_codes);
  }
}

// The offset is the number of sample 0. The scale is near the mean step, whose rounding errors are a few
// units.
void ImagePlan::find_scales() {
  constexpr int kUnits = 16;
  if (!is_.is_planar || is_.element_bytes != 4 || is_.source.sample_bytes != 1) return;
  std::vector<float> table(256);
  for (size_t c = 0; c < is_.channels.size(); ++c) {
    std::memcpy(table.data(), is_.tables.data() + c * 1024, 1024);
    float scale = static_cast<float>((static_cast<double>(table[255]) - table[0]) / 255);
    for (int i = 0; i < kUnits; ++i) scale = std::nextafter(scale, -INFINITY);
    int tried = 0;
    while (tried <= 2 * kUnits && !is_scaled(table.data(), scale, table[0])) {
      scale = std::nextafter(scale, INFINITY);
      ++tried;
    }
    if (tried > 2 * kUnits) return scales_.clear();
    scales_.push_back({scale, table[0]});
  }
}

void ImagePlan::write_row(const uint8_t* samples, const ImageTarget& target, int64_t y) const {
  const auto channels = static_cast<int64_t>(is_.channels.size());
  const int64_t count = is_.crop.width;
  const int64_t plane = (target.end - target.begin) * is_.width;
  const int64_t at = (y - target.begin) * is_.width + is_.left;
  const int64_t entries = is_.source.sample_bytes == 1 ? 256 : 65536;
  if (!scales_.empty()) return write_scaled(samples, target.memory, at, plane);
  with_element(is_.element_bytes, [&]<class Element>(Element) {
    auto* to = reinterpret_cast<Element*>(target.memory);
    const auto* tables = reinterpret_cast<const Element*>(is_.tables.data());
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t sample = first_column_ * samples_ + is_.channels[static_cast<size_t>(c)];
      const Element* table = tables + c * entries;
      Element* first = is_.is_planar ? to + c * plane + at : to + at * channels + c;
      const int64_t step = is_.is_planar ? 1 : channels;
      if (is_.source.sample_bytes == 1) {
        convert(samples + sample, samples_, table, first, step, count);
      } else {
        convert(reinterpret_cast<const uint16_t*>(samples) + sample, samples_, table, first, step, count);
      }
    }
  });
}

void ImagePlan::write_scaled(const uint8_t* samples, uint8_t* memory, int64_t at, int64_t plane) const {
  const ResampleKernels& kernels = resample_kernels();
  for (size_t c = 0; c < scales_.size(); ++c) {
    const auto [scale, offset] = scales_[c];
    const auto* table = reinterpret_cast<const float*>(is_.tables.data()) + c * 256;
    auto* to = reinterpret_cast<float*>(memory) + static_cast<int64_t>(c) * plane + at;
    kernels.plane({samples + first_column_ * samples_, samples_, is_.channels[c], table, scale, offset, to,
                   is_.crop.width});
  }
}

void ImagePlan::write_border(const ImageTarget& target, int64_t y, Span columns,
                             const std::vector<uint8_t>& codes) const {
  if (columns.count() <= 0) return;
  const auto channels = static_cast<int64_t>(is_.channels.size());
  const int64_t plane = (target.end - target.begin) * is_.width;
  const int64_t at = (y - target.begin) * is_.width + columns.begin;
  with_element(is_.element_bytes, [&]<class Element>(Element) {
    auto* to = reinterpret_cast<Element*>(target.memory);
    const auto* values = reinterpret_cast<const Element*>(codes.data());
    for (int64_t c = 0; c < channels; ++c) {
      if (is_.is_planar) {
        std::fill_n(to + c * plane + at, columns.count(), values[c]);
      } else {
        for (int64_t x = 0; x < columns.count(); ++x) to[(at + x) * channels + c] = values[c];
      }
    }
  });
}

}  // namespace tilework
