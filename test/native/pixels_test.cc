// Pixels to planes of floats against plain loops, in memory that inaccessible pages adjoin: the kernels for
// any count and alignment, and whole plans with their ranges.
#include "reorder/pixels.h"

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "cpu/isa.h"
#include "dtype/cast.h"
#include "guarded_memory.h"
#include "reorder/cast/fused_cast.h"
#include "reorder_case.h"

namespace tilework::test {
namespace {

constexpr Against kEnds[] = {Against::kLower, Against::kUpper};
constexpr float kScales[] = {0.017124754f, 0.017507003f, 0.017429194f};
constexpr float kOffsets[] = {-2.117904f, -2.0357141f, -1.8044444f};

std::vector<uint8_t> encoded(const std::vector<float>& values, Dtype to) {
  const auto count = static_cast<int64_t>(values.size());
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  std::vector<uint8_t> result(static_cast<size_t>(packed_bytes(to, count)));
  cast_reference({bytes, result.data(), count, Dtype::kFloat32, to, {}});
  return result;
}

void fill(uint8_t* bytes, int64_t size, std::mt19937_64& random) {
  for (int64_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(random());
}

#if defined(__x86_64__)
struct Row {
  Dtype to;
  int64_t channels;
  int64_t count;
};

// A row whose last pixel ends with its first byte, as the last channel of an image does.
void check_row(const Row& row, const GuardedMemory& from, const GuardedMemory& to, std::mt19937_64& random) {
  const int64_t read = (row.count - 1) * row.channels + 1;
  const int64_t bytes = info_of(row.to).bits / 8;
  for (const Against end : kEnds) {
    uint8_t* source = from.place(read, end);
    fill(source, read, random);
    std::vector<float> values;
    for (int64_t i = 0; i < row.count; ++i) {
      values.push_back(std::fma(static_cast<float>(source[i * row.channels]), kScales[0], kOffsets[0]));
    }
    const std::vector<uint8_t> expected = encoded(values, row.to);
    for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
      uint8_t* destination = to.place(row.count * bytes, end);
      std::memset(destination, 0xA5, expected.size());
      const PixelRow pixels{source, row.channels, destination, row.count, kScales[0], kOffsets[0], stores};
      if (row.to == Dtype::kFloat16) {
        pixels_to_float16_avx2(pixels);
      } else {
        pixels_to_float32_avx2(pixels);
      }
      CHECK_IN(std::string(info_of(row.to).name) + ", " + std::to_string(row.channels) + " channels, " +
                   std::to_string(row.count) + " pixels",
               std::memcmp(destination, expected.data(), expected.size()) == 0);
    }
  }
}

// Destinations that end at a page start at every alignment of their elements.
void test_rows() {
  if (!can_run(Isa::kAvx2)) return;
  const GuardedMemory from(1 << 13);
  const GuardedMemory to(1 << 13);
  std::mt19937_64 random(1839);
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16}) {
    for (const int64_t channels : {3, 4}) {
      for (int64_t count = 1; count <= 200; ++count) check_row({dtype, channels, count}, from, to, random);
    }
  }
}
#endif

struct Batch {
  Dtype to;
  // Of the pixels; three are kept.
  int64_t channels;
  bool is_reversed;
  // Rows and columns around the kept ones.
  int64_t border;
  int64_t height;
  int64_t width;

  std::string name() const {
    return std::string(info_of(to).name) + ", " + std::to_string(channels) + " channels" +
           (is_reversed ? ", reversed" : "") + (border > 0 ? ", cropped, " : ", ") + std::to_string(height) +
           " x " + std::to_string(width);
  }
};

constexpr int64_t kImages = 2;
constexpr int64_t kPlanes = 3;

ReorderDescription description_of(const Batch& batch) {
  ReorderDescription description;
  description.element_bits = 8;
  description.shape = {kImages, kPlanes, batch.height, batch.width};
  const std::vector<int64_t> source = {kImages, batch.channels, batch.height + 2 * batch.border,
                                       batch.width + 2 * batch.border};
  if (batch.is_reversed || batch.channels != kPlanes || batch.border > 0) {
    const int64_t first = batch.is_reversed ? kPlanes - 1 : 0;
    description.slice =
        Slice{source, {0, first, batch.border, batch.border}, {1, batch.is_reversed ? -1 : 1, 1, 1}};
  }
  description.from = channels_last(source);
  description.to = row_major(description.shape);
  ScalingDescription scaling;
  scaling.from = Dtype::kUint8;
  scaling.to = Dtype::kFloat32;
  for (int64_t channel = 0; channel < batch.channels; ++channel) {
    scaling.scales.push_back(kScales[channel % kPlanes]);
    scaling.offsets.push_back(kOffsets[channel % kPlanes]);
  }
  scaling.blocks = {kImages, 1, source[2], source[3]};
  description.casts.emplace_back(scaling);
  if (batch.to != Dtype::kFloat32)
    description.casts.emplace_back(Cast(Dtype::kFloat32, batch.to, CastOptions{}));
  return description;
}

std::vector<uint8_t> expected_of(const Batch& batch, const uint8_t* source) {
  const int64_t rows = batch.height + 2 * batch.border;
  const int64_t columns = batch.width + 2 * batch.border;
  std::vector<float> values;
  for (int64_t image = 0; image < kImages; ++image) {
    for (int64_t plane = 0; plane < kPlanes; ++plane) {
      const int64_t channel = batch.is_reversed ? kPlanes - 1 - plane : plane;
      for (int64_t i = 0; i < batch.height * batch.width; ++i) {
        const int64_t y = batch.border + i / batch.width;
        const int64_t x = batch.border + i % batch.width;
        const uint8_t value = source[((image * rows + y) * columns + x) * batch.channels + channel];
        values.push_back(std::fma(static_cast<float>(value), kScales[channel], kOffsets[channel]));
      }
    }
  }
  return encoded(values, batch.to);
}

// The whole destination, and ranges that start and end inside of rows.
void check_batch(const Batch& batch, std::mt19937_64& random) {
  const ReorderPlan plan(description_of(batch));
  if (can_run(Isa::kAvx2)) {
    CHECK_IN(batch.name() + " by " + plan.cast()->kernels(),
             plan.cast()->kernels().starts_with("pixels_to_"));
  }
  const GuardedMemory from(plan.source_bytes());
  const GuardedMemory to(plan.destination_bytes());
  const int64_t bytes = info_of(batch.to).bits / 8;
  const int64_t last = plan.destination_bytes();
  const int64_t row = batch.width * bytes;
  const std::vector<std::pair<int64_t, int64_t>> ranges = {{0, last},
                                                           {0, bytes},
                                                           {last - bytes, last},
                                                           {row - bytes, row * 2 + bytes},
                                                           {5 * bytes, last - 7 * bytes}};
  for (const Against end : kEnds) {
    uint8_t* source = from.place(plan.source_bytes(), end);
    fill(source, plan.source_bytes(), random);
    const std::vector<uint8_t> expected = expected_of(batch, source);
    for (const auto& [begin, stop] : ranges) {
      for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
        uint8_t* destination = to.place(stop - begin, end);
        std::memset(destination, 0xA5, static_cast<size_t>(stop - begin));
        plan.run(source, destination, begin, stop, stores);
        CHECK_IN(batch.name() + ", range " + std::to_string(begin) + ".." + std::to_string(stop),
                 std::equal(destination, destination + (stop - begin), expected.begin() + begin));
      }
    }
  }
}

void test_batches() {
  std::mt19937_64 random(1840);
  for (const Dtype to : {Dtype::kFloat32, Dtype::kFloat16}) {
    for (const int64_t channels : {3, 4}) {
      for (const bool is_reversed : {false, true}) {
        for (const int64_t border : {0, 1}) {
          for (const int64_t width : {64, 65, 79, 81, 97, 227}) {
            check_batch({to, channels, is_reversed, border, 5, width}, random);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
#if defined(__x86_64__)
  test_rows();
#endif
  test_batches();
  return result();
}
