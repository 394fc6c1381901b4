// The result of an image plan by plain loops over whole images, one step after the other: no rows that are
// kept, no kernels, no spans. Weights are those of image/axis.h for whole axes, which the fixtures compare
// with the libraries whose bytes they repeat.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "image/image_plan.h"

namespace tilework::test {

// Samples of interleaved pixels, of 8 or 16 bits.
struct WholeImage {
  int64_t width;
  int64_t height;
  int64_t channels;
  std::vector<int32_t> samples;

  WholeImage(int64_t w, int64_t h, int64_t c)
      : width(w), height(h), channels(c), samples(static_cast<size_t>(w * h * c)) {}
  int32_t& at(int64_t x, int64_t y, int64_t c) {
    return samples[static_cast<size_t>((y * width + x) * channels + c)];
  }
  int32_t at(int64_t x, int64_t y, int64_t c) const {
    return samples[static_cast<size_t>((y * width + x) * channels + c)];
  }
};

inline int32_t clip8_of(int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, 0, 255)); }

inline int32_t over_255(int32_t t) { return (t + (t >> 8)) >> 8; }

template <class Make>
WholeImage made(int64_t width, int64_t height, int64_t channels, Make make) {
  WholeImage image(width, height, channels);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) image.at(x, y, c) = make(x, y, c);
    }
  }
  return image;
}

inline int32_t luma_sample(const SourceImage& is, const uint8_t* pixels, int64_t x, int64_t y, int64_t c) {
  const int64_t size = is.width * is.height;
  const int64_t at = (y / 2) * (is.width / 2) + x / 2;
  const bool is_semi_planar = is.format == PixelFormat::kNv12 || is.format == PixelFormat::kNv21;
  const int32_t first = pixels[is_semi_planar ? size + 2 * at : size + at];
  const int32_t second = pixels[is_semi_planar ? size + 2 * at + 1 : size + size / 4 + at];
  const bool is_u_first = is.format == PixelFormat::kNv12 || is.format == PixelFormat::kI420;
  const int32_t u = (is_u_first ? first : second) - 128;
  const int32_t v = (is_u_first ? second : first) - 128;
  const int32_t light = std::max(pixels[y * is.width + x] - 16, 0) * 1220542 + (1 << 19);
  const int32_t colours[] = {1673527 * v, -852492 * v - 409993 * u, 2116026 * u};
  return clip8_of((light + colours[c]) >> 20);
}

inline int32_t source_sample(const SourceImage& is, const uint8_t* pixels, int64_t x, int64_t y, int64_t c) {
  if (is.format != PixelFormat::kInterleaved && is.format != PixelFormat::kPlanar)
    return luma_sample(is, pixels, x, y, c);
  const int64_t at = is.format == PixelFormat::kPlanar ? (c * is.height + y) * is.width + x
                                                       : (y * is.width + x) * is.channels + c;
  if (is.sample_bytes == 1) return pixels[at];
  uint16_t sample;
  std::memcpy(&sample, pixels + 2 * at, sizeof(sample));
  return sample;
}

inline WholeImage coloured(const SourceImage& is, const uint8_t* pixels, bool is_filtered) {
  const auto sample = [&](int64_t x, int64_t y, int64_t c) { return source_sample(is, pixels, x, y, c); };
  const int64_t last = is.channels - 1;
  return made(is.width, is.height, is.working_channels(), [&](int64_t x, int64_t y, int64_t c) -> int32_t {
    const int32_t value = sample(x, y, c);
    const int32_t alpha = sample(x, y, last);
    switch (is.colours) {
      case ColourStep::kGrey:
        return (19595 * value + 38470 * sample(x, y, 1) + 7471 * sample(x, y, 2) + 32768) >> 16;
      case ColourStep::kPremultiply:
        return c == last || !is_filtered ? value : over_255(value * alpha + 128);
      case ColourStep::kBackground:
        return over_255(value * alpha + is.background[c] * (255 - alpha) + 128);
      case ColourStep::kWhiteFloat: {
        constexpr auto kUnit = static_cast<float>(1.0 / 255.0);
        const float share = static_cast<float>(alpha) * kUnit;
        const float product = static_cast<float>(value) * kUnit * share;
        return static_cast<int32_t>((product + (1.0F - share)) * 255.999F);
      }
      case ColourStep::kNone:
        break;
    }
    return value;
  });
}

// The image with columns and rows exchanged, so that each pass is along rows.
inline WholeImage turned(const WholeImage& from) {
  return made(from.height, from.width, from.channels,
              [&](int64_t x, int64_t y, int64_t c) { return from.at(y, x, c); });
}

template <class Round, class Weight>
WholeImage summed(const WholeImage& from, const Taps<Weight>& taps, Round round) {
  return made(taps.results(), from.height, from.channels, [&](int64_t x, int64_t y, int64_t c) {
    const auto at = static_cast<size_t>(x);
    std::conditional_t<std::is_integral_v<Weight>, int64_t, Weight> sum = 0;
    for (int64_t i = 0; i < taps.count[at]; ++i) {
      const auto sample = static_cast<decltype(sum)>(from.at(taps.first[at] + i, y, c));
      sum += sample * taps.weight(x)[i];
    }
    return round(sum);
  });
}

// One pass along rows by Pillow's or torchvision's weights.
inline WholeImage filtered(const ImageDescription& is, const WholeImage& from, int64_t width) {
  if (from.width == width) return from;
  const Span all{0, width};
  if (is.source.sample_bytes == 2) {
    return summed(from, filter_taps(from.width, width, is.filter, all), [](double sum) {
      return static_cast<int32_t>(std::clamp(std::trunc(sum >= 0 ? sum + 0.5 : sum - 0.5), 0.0, 65535.0));
    });
  }
  const bool is_torch = is.rule == ResizeRule::kTorchvision;
  const IntegerTaps taps = (is_torch ? torchvision_taps : pillow_taps)(from.width, width, is.filter, all);
  const int64_t half = int64_t{1} << taps.shift >> 1;
  return summed(from, taps, [&](int64_t sum) { return clip8_of((sum + half) >> taps.shift); });
}

inline bool is_rows_first(const ImageDescription& is) {
  const int64_t height = is.source.height - is.resized_height;
  const int64_t width = is.source.width - is.resized_width;
  if (is.rule == ResizeRule::kPillow) return height > 0 && height > 2 * width;
  return is.rule == ResizeRule::kPillow12 && is.source.height > 100 * is.source.width && height > 0;
}

inline WholeImage filtered_both(const ImageDescription& is, const WholeImage& from) {
  const auto along = [&](const WholeImage& image) { return filtered(is, image, is.resized_width); };
  const auto down = [&](const WholeImage& image) {
    return turned(filtered(is, turned(image), is.resized_height));
  };
  WholeImage image = is_rows_first(is) ? along(down(from)) : down(along(from));
  if (is.source.colours != ColourStep::kPremultiply) return image;
  const int64_t last = image.channels - 1;
  return made(image.width, image.height, image.channels, [&](int64_t x, int64_t y, int64_t c) {
    const int32_t alpha = image.at(x, y, last);
    const int32_t value = image.at(x, y, c);
    return c == last || alpha == 0 || alpha == 255 ? value : std::min(255 * value / alpha, 255);
  });
}

inline WholeImage picked(const ImageDescription& is, const WholeImage& from) {
  const int64_t width = is.resized_width;
  const int64_t height = is.resized_height;
  NearestRule rule = is.source.sample_bytes == 2 ? NearestRule::kPillow16 : NearestRule::kPillow;
  if (is.rule == ResizeRule::kOpencvNearest) rule = NearestRule::kOpencv;
  if (is.rule == ResizeRule::kTorchvision)
    rule = width + height <= 128 ? NearestRule::kTorchvision : NearestRule::kTorchvisionLarge;
  const auto columns = nearest_indices(rule, from.width, width, {0, width});
  const auto rows = nearest_indices(rule, from.height, height, {0, height});
  return made(width, height, from.channels, [&](int64_t x, int64_t y, int64_t c) {
    return from.at(columns[static_cast<size_t>(x)], rows[static_cast<size_t>(y)], c);
  });
}

inline WholeImage linear(const ImageDescription& is, const WholeImage& from) {
  const LinearTaps columns = opencv_linear_columns(from.width, is.resized_width, {0, is.resized_width});
  const LinearTaps rows = opencv_linear_rows(from.height, is.resized_height, {0, is.resized_height});
  return made(is.resized_width, is.resized_height, from.channels, [&](int64_t x, int64_t y, int64_t c) {
    const auto i = static_cast<size_t>(x);
    const auto j = static_cast<size_t>(y);
    const auto along = [&](int64_t row) {
      return (from.at(columns.low[i], row, c) * columns.weights[2 * i] +
              from.at(columns.high[i], row, c) * columns.weights[2 * i + 1]) >>
             4;
    };
    const int32_t low = (along(rows.low[j]) * rows.weights[2 * j]) >> 16;
    const int32_t high = (along(rows.high[j]) * rows.weights[2 * j + 1]) >> 16;
    return clip8_of((low + high + 2) >> 2);
  });
}

// The mean of whole cells, where both factors are whole.
inline WholeImage cells(const ImageDescription& is, const WholeImage& from, bool rounds_up) {
  const int64_t w = from.width / is.resized_width;
  const int64_t h = from.height / is.resized_height;
  return made(is.resized_width, is.resized_height, from.channels, [&](int64_t x, int64_t y, int64_t c) {
    int32_t sum = 0;
    for (int64_t i = 0; i < w * h; ++i) sum += from.at(x * w + i % w, y * h + i / w, c);
    if (rounds_up) return (sum + 2) >> 2;
    return static_cast<int32_t>(std::nearbyint(static_cast<float>(sum) * (1.0F / static_cast<float>(w * h))));
  });
}

inline WholeImage area(const ImageDescription& is, const WholeImage& from) {
  const auto columns = opencv_area_taps(from.width, is.resized_width, {0, is.resized_width});
  const auto rows = opencv_area_taps(from.height, is.resized_height, {0, is.resized_height});
  return made(is.resized_width, is.resized_height, from.channels, [&](int64_t x, int64_t y, int64_t c) {
    const auto i = static_cast<size_t>(x);
    const auto j = static_cast<size_t>(y);
    float sum = 0;
    for (int64_t row = 0; row < rows.count[j]; ++row) {
      float along = 0;
      for (int64_t k = 0; k < columns.count[i]; ++k)
        along +=
            static_cast<float>(from.at(columns.first[i] + k, rows.first[j] + row, c)) * columns.weight(x)[k];
      sum += along * rows.weight(y)[row];
    }
    return static_cast<int32_t>(std::clamp(std::nearbyint(sum), 0.0F, 255.0F));
  });
}

inline WholeImage resized_by_loops(const ImageDescription& is, const uint8_t* pixels) {
  const SourceImage& source = is.source;
  const bool stays = source.width == is.resized_width && source.height == is.resized_height;
  const bool is_nearest = is.filter == Filter::kNearest || is.rule == ResizeRule::kOpencvNearest;
  const bool is_half = source.width == 2 * is.resized_width && source.height == 2 * is.resized_height;
  const bool is_whole = source.width % is.resized_width == 0 && source.height % is.resized_height == 0;
  const WholeImage from = coloured(source, pixels, !stays && !is_nearest);
  if (stays) return from;
  if (is.rule == ResizeRule::kOpencvLinear) return is_half ? cells(is, from, true) : linear(is, from);
  if (is.rule == ResizeRule::kOpencvArea) return is_whole ? cells(is, from, is_half) : area(is, from);
  return is_nearest ? picked(is, from) : filtered_both(is, from);
}

// All rows of the result.
inline std::vector<uint8_t> image_by_loops(const ImageDescription& is, const uint8_t* pixels) {
  const WholeImage whole = resized_by_loops(is, pixels);
  const auto channels = static_cast<int64_t>(is.channels.size());
  const auto size = static_cast<size_t>(is.element_bytes);
  const int64_t entries = is.source.sample_bytes == 1 ? 256 : 65536;
  std::vector<uint8_t> result(static_cast<size_t>(is.width * is.height * channels) * size);
  const auto is_in = [](int64_t at, int64_t begin, int64_t count) {
    return at >= begin && at < begin + count;
  };
  for (int64_t y = 0; y < is.height; ++y) {
    for (int64_t x = 0; x < is.width; ++x) {
      const bool is_seen = is_in(x, is.left, is.crop.width) && is_in(y, is.top, is.crop.height);
      const bool is_inner =
          is_in(x, is.inner.left, is.inner.width) && is_in(y, is.inner.top, is.inner.height);
      for (int64_t c = 0; c < channels; ++c) {
        const uint8_t* code = (is_inner ? is.inner_codes : is.outer_codes).data() + c * is.element_bytes;
        if (is_seen) {
          const int64_t sample = whole.at(x - is.left + is.crop.left, y - is.top + is.crop.top,
                                          is.channels[static_cast<size_t>(c)]);
          code = is.tables.data() + (c * entries + sample) * is.element_bytes;
        }
        const int64_t at =
            is.is_planar ? (c * is.height + y) * is.width + x : (y * is.width + x) * channels + c;
        std::memcpy(result.data() + at * is.element_bytes, code, size);
      }
    }
  }
  return result;
}

}  // namespace tilework::test
