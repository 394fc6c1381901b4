// Rows of the source as interleaved samples, and the colour steps before a resize. Source of the integers of
// luma and chroma: OpenCV 5.0, color_yuv.simd.hpp (BT.601, limited range, chroma repeated).
#include <algorithm>
#include <cstring>

#include "image/rows.h"

namespace tilework {
namespace {

class InterleavedRows : public Rows {
 public:
  InterleavedRows(const uint8_t* pixels, int64_t bytes) : pixels_(pixels), bytes_(bytes) {}
  const uint8_t* row(int64_t y) override { return pixels_ + y * bytes_; }

 private:
  const uint8_t* pixels_;
  int64_t bytes_;
};

uint8_t divided_by_255(unsigned t) { return static_cast<uint8_t>((t + (t >> 8)) >> 8); }

uint8_t clip8(int32_t value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

template <class Sample>
void interleave(const SourceImage& image, const uint8_t* pixels, int64_t y, uint8_t* to) {
  const auto* samples = reinterpret_cast<const Sample*>(pixels);
  auto* result = reinterpret_cast<Sample*>(to);
  for (int64_t c = 0; c < image.channels; ++c) {
    const Sample* row = samples + (c * image.height + y) * image.width;
    for (int64_t x = 0; x < image.width; ++x) result[x * image.channels + c] = row[x];
  }
}

// Where a format of luma and chroma has its samples: u and v of a 2 x 2 block, `step` bytes apart in a row.
struct Chroma {
  const uint8_t* u;
  const uint8_t* v;
  int64_t step;
};

Chroma chroma_of(const SourceImage& image, const uint8_t* pixels, int64_t y) {
  const uint8_t* chroma = pixels + image.width * image.height;
  const int64_t half = image.width / 2;
  const int64_t plane = half * (image.height / 2);
  const int64_t row = y / 2;
  switch (image.format) {
    case PixelFormat::kNv12:
      return {chroma + row * image.width, chroma + row * image.width + 1, 2};
    case PixelFormat::kNv21:
      return {chroma + row * image.width + 1, chroma + row * image.width, 2};
    case PixelFormat::kI420:
      return {chroma + row * half, chroma + plane + row * half, 1};
    default:
      return {chroma + plane + row * half, chroma + row * half, 1};
  }
}

void convert_luma(const SourceImage& image, const uint8_t* pixels, int64_t y, uint8_t* to) {
  const Chroma chroma = chroma_of(image, pixels, y);
  const uint8_t* luma = pixels + y * image.width;
  for (int64_t x = 0; x < image.width; ++x, to += 3) {
    const int32_t u = chroma.u[x / 2 * chroma.step] - 128;
    const int32_t v = chroma.v[x / 2 * chroma.step] - 128;
    const int32_t light = std::max(luma[x] - 16, 0) * 1220542 + (1 << 19);
    to[0] = clip8((light + 1673527 * v) >> 20);
    to[1] = clip8((light - 852492 * v - 409993 * u) >> 20);
    to[2] = clip8((light + 2116026 * u) >> 20);
  }
}

void over_background(const SourceImage& image, const uint8_t* from, uint8_t* to) {
  const int64_t colours = image.channels - 1;
  for (int64_t x = 0; x < image.width; ++x, from += image.channels) {
    const unsigned alpha = from[colours];
    for (int64_t c = 0; c < colours; ++c) {
      *to++ = divided_by_255(from[c] * alpha + image.background[c] * (255 - alpha) + 128);
    }
  }
}

void over_white(const SourceImage& image, const uint8_t* from, uint8_t* to) {
  constexpr auto kUnit = static_cast<float>(1.0 / 255.0);
  const int64_t colours = image.channels - 1;
  for (int64_t x = 0; x < image.width; ++x, from += image.channels) {
    const float alpha = static_cast<float>(from[colours]) * kUnit;
    for (int64_t c = 0; c < colours; ++c) {
      const float product = static_cast<float>(from[c]) * kUnit * alpha;
      const float mixed = product + (1.0F - alpha);
      *to++ = static_cast<uint8_t>(mixed * 255.999F);
    }
  }
}

void premultiply(const SourceImage& image, const uint8_t* from, uint8_t* to) {
  const int64_t colours = image.channels - 1;
  for (int64_t x = 0; x < image.width; ++x, from += image.channels) {
    const unsigned alpha = from[colours];
    for (int64_t c = 0; c < colours; ++c) *to++ = divided_by_255(from[c] * alpha + 128);
    *to++ = from[colours];
  }
}

void to_grey(int64_t width, int64_t channels, const uint8_t* from, uint8_t* to) {
  for (int64_t x = 0; x < width; ++x, from += channels) {
    to[x] = static_cast<uint8_t>((19595 * from[0] + 38470 * from[1] + 7471 * from[2] + 32768) >> 16);
  }
}

class ConvertedRows : public Rows {
 public:
  ConvertedRows(const SourceImage& image, const uint8_t* pixels, int64_t capacity)
      : image_(image),
        pixels_(pixels),
        gathered_(is_gathered() && has_step() ? 1 : 0, image.width * image.channels * image.sample_bytes),
        kept_(capacity, image.width * image.working_channels() * image.sample_bytes) {}

  const uint8_t* row(int64_t y) override {
    if (kept_.has(y)) return kept_.at(y);
    uint8_t* row = kept_.take(y);
    if (!has_step()) {
      gather(y, row);
    } else if (is_gathered()) {
      gather(y, gathered_.take(0));
      change_colours(gathered_.at(0), row);
    } else {
      change_colours(pixels_ + y * image_.width * image_.channels, row);
    }
    return row;
  }

 private:
  bool is_gathered() const { return image_.format != PixelFormat::kInterleaved; }
  bool has_step() const { return image_.colours != ColourStep::kNone; }

  void gather(int64_t y, uint8_t* to) const {
    if (image_.format != PixelFormat::kPlanar) {
      convert_luma(image_, pixels_, y, to);
    } else if (image_.sample_bytes == 2) {
      interleave<uint16_t>(image_, pixels_, y, to);
    } else {
      interleave<uint8_t>(image_, pixels_, y, to);
    }
  }

  void change_colours(const uint8_t* from, uint8_t* to) const {
    switch (image_.colours) {
      case ColourStep::kGrey:
        return to_grey(image_.width, image_.channels, from, to);
      case ColourStep::kPremultiply:
        return premultiply(image_, from, to);
      case ColourStep::kBackground:
        return over_background(image_, from, to);
      case ColourStep::kWhiteFloat:
        return over_white(image_, from, to);
      case ColourStep::kNone:
        return;
    }
  }

  const SourceImage& image_;
  const uint8_t* pixels_;
  KeptRows gathered_;
  KeptRows kept_;
};

}  // namespace

int64_t SourceImage::working_channels() const {
  switch (colours) {
    case ColourStep::kGrey:
      return 1;
    case ColourStep::kBackground:
    case ColourStep::kWhiteFloat:
      return channels - 1;
    default:
      return channels;
  }
}

int64_t SourceImage::bytes() const {
  const int64_t pixels = width * height;
  const bool has_luma = format != PixelFormat::kInterleaved && format != PixelFormat::kPlanar;
  return has_luma ? pixels * 3 / 2 : pixels * channels * sample_bytes;
}

RowsPointer source_rows(const SourceImage& image, const uint8_t* pixels, int64_t capacity) {
  if (image.format == PixelFormat::kInterleaved && image.colours == ColourStep::kNone) {
    return std::make_unique<InterleavedRows>(pixels, image.width * image.channels * image.sample_bytes);
  }
  return std::make_unique<ConvertedRows>(image, pixels, capacity);
}

}  // namespace tilework
