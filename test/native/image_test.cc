// Kernels of a resize against the reference, in memory that inaccessible pages adjoin; whole plans against
// plain loops over the whole image, for any rows and in parts.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "cpu/isa.h"
#include "guarded_memory.h"
#include "image/image_plan.h"
#include "image/resample.h"

namespace tilework::test {
namespace {

using Random = std::mt19937_64;

constexpr ResampleKernels kTable[] = {
#define TILEWORK_RESAMPLE_KERNELS(isa, suffix)                                                 \
  {Isa::isa, resample_columns##suffix, resample_rows##suffix, resample_linear_columns##suffix, \
   resample_linear_rows##suffix},
#include "image/resample.def"
#undef TILEWORK_RESAMPLE_KERNELS
};

const ResampleKernels& reference() { return kTable[std::size(kTable) - 1]; }

int64_t from_to(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

// Noise, and runs of the extremes, where sums are largest.
void fill(uint8_t* bytes, int64_t size, Random& random) {
  const bool is_extreme = random() % 3 == 0;
  for (int64_t i = 0; i < size; ++i) {
    const auto byte = static_cast<uint8_t>(random());
    bytes[i] = is_extreme ? (byte < 128 ? 0 : 255) : byte;
  }
}

Filter any_filter(Random& random) { return static_cast<Filter>(from_to(random, 1, 7)); }

IntegerTaps any_taps(int64_t in, int64_t out, Random& random) {
  const int64_t begin = from_to(random, 0, out - 1);
  const Span span{random() % 2 == 0 ? 0 : begin, out};
  const Filter filter = any_filter(random);
  return random() % 2 == 0 ? pillow_taps(in, out, filter, span) : torchvision_taps(in, out, filter, span);
}

const char* isa_of(const ResampleKernels& kernels) { return name_of(kernels.isa); }

void check_columns(const ResampleKernels& kernels, const GuardedMemory& memory, Random& random) {
  const int64_t channels = from_to(random, 1, 4);
  const int64_t in = from_to(random, 1, 90);
  const IntegerTaps taps = any_taps(in, from_to(random, 1, 90), random);
  const int64_t bytes = in * channels;
  const int64_t made = taps.results() * channels;
  std::vector<uint8_t> wanted[2];
  std::vector<uint8_t> found[2];
  std::vector<uint8_t> other(static_cast<size_t>(bytes + 64));
  uint8_t* row = memory.place(bytes, Against::kUpper);
  fill(row, bytes, random);
  fill(other.data(), bytes, random);
  for (int i = 0; i < 2; ++i) {
    wanted[i].resize(static_cast<size_t>(made + 64));
    found[i].resize(static_cast<size_t>(made + 64));
  }
  reference().columns({{row, other.data()}, bytes, {wanted[0].data(), wanted[1].data()}, channels}, taps);
  kernels.columns({{row, other.data()}, bytes, {found[0].data(), found[1].data()}, channels}, taps);
  for (int i = 0; i < 2; ++i) {
    CHECK_IN(std::string(isa_of(kernels)) + " columns of " + std::to_string(channels) + " channels, " +
                 std::to_string(in) + " to " + std::to_string(taps.results()),
             std::equal(found[i].begin(), found[i].begin() + made, wanted[i].begin()));
  }
}

void check_rows(const ResampleKernels& kernels, const GuardedMemory& memory, Random& random) {
  const int64_t in = from_to(random, 1, 40);
  const IntegerTaps taps = any_taps(in, from_to(random, 1, 40), random);
  const int64_t result = from_to(random, 0, taps.results() - 1);
  const int64_t count = taps.count[static_cast<size_t>(result)];
  const int64_t bytes = from_to(random, 1, 300);
  std::vector<const uint8_t*> rows;
  std::vector<std::vector<uint8_t>> others(static_cast<size_t>(count));
  for (auto& other : others) {
    other.resize(static_cast<size_t>(bytes));
    fill(other.data(), bytes, random);
    rows.push_back(other.data());
  }
  uint8_t* last = memory.place(bytes, Against::kUpper);
  fill(last, bytes, random);
  rows.back() = last;
  std::vector<uint8_t> wanted(static_cast<size_t>(bytes));
  std::vector<uint8_t> found(static_cast<size_t>(bytes));
  reference().rows({rows.data(), wanted.data(), bytes}, taps, result);
  kernels.rows({rows.data(), found.data(), bytes}, taps, result);
  CHECK_IN(std::string(isa_of(kernels)) + " rows of " + std::to_string(bytes) + " bytes", found == wanted);
}

void check_linear(const ResampleKernels& kernels, const GuardedMemory& memory, Random& random) {
  const int64_t channels = from_to(random, 1, 4);
  const int64_t in = from_to(random, 1, 90);
  const int64_t out = from_to(random, 1, 90);
  const LinearTaps taps = opencv_linear_columns(in, out, {0, out});
  const int64_t bytes = in * channels;
  uint8_t* row = memory.place(bytes, Against::kUpper);
  fill(row, bytes, random);
  std::vector<int16_t> wanted(static_cast<size_t>(out * channels + 32));
  std::vector<int16_t> found(wanted.size());
  reference().linear_columns(row, bytes, wanted.data(), channels, taps);
  kernels.linear_columns(row, bytes, found.data(), channels, taps);
  wanted.resize(static_cast<size_t>(out * channels));
  found.resize(wanted.size());
  CHECK_IN(std::string(isa_of(kernels)) + " linear columns of " + std::to_string(channels), found == wanted);
  const auto weight = static_cast<int16_t>(from_to(random, 0, 2048));
  std::vector<uint8_t> rows[2] = {std::vector<uint8_t>(wanted.size()), std::vector<uint8_t>(wanted.size())};
  const RowBlend blend{wanted.data(), wanted.data(),  static_cast<int16_t>(2048 - weight),
                       weight,        rows[0].data(), static_cast<int64_t>(wanted.size())};
  RowBlend other = blend;
  other.destination = rows[1].data();
  reference().linear_rows(blend);
  kernels.linear_rows(other);
  CHECK_IN(std::string(isa_of(kernels)) + " linear rows", rows[0] == rows[1]);
}

// A description with tables that keep each sample apart.
ImageDescription any_description(Random& random) {
  ImageDescription is{};
  is.source = {PixelFormat::kInterleaved,
               from_to(random, 1, 70),
               from_to(random, 1, 70),
               from_to(random, 1, 4),
               1,
               ColourStep::kNone,
               {}};
  is.rule = static_cast<ResizeRule>(from_to(random, 0, 4));
  is.filter = static_cast<Filter>(from_to(random, 0, 7));
  is.resized_width = from_to(random, 1, 70);
  is.resized_height = from_to(random, 1, 70);
  const int64_t left = from_to(random, 0, is.resized_width - 1);
  const int64_t top = from_to(random, 0, is.resized_height - 1);
  is.crop = {left, top, from_to(random, 1, is.resized_width - left),
             from_to(random, 1, is.resized_height - top)};
  is.left = from_to(random, 0, 3);
  is.top = from_to(random, 0, 3);
  is.width = is.left + is.crop.width + from_to(random, 0, 3);
  is.height = is.top + is.crop.height + from_to(random, 0, 3);
  is.inner = {0, 0, is.width, is.height};
  for (int64_t c = 0; c < is.source.channels; ++c) is.channels.push_back(c);
  is.element_bytes = 1 << from_to(random, 0, 3);
  const auto bytes = static_cast<size_t>(is.source.channels * is.element_bytes);
  is.tables.resize(256 * bytes);
  for (uint8_t& byte : is.tables) byte = static_cast<uint8_t>(random());
  is.inner_codes.assign(bytes, 17);
  is.outer_codes.assign(bytes, 18);
  is.is_planar = random() % 2 == 0;
  return is;
}

// The whole resized image, as the crop, table and layout of `is` would not change it.
std::vector<uint8_t> resized(const ImageDescription& is, const uint8_t* pixels) {
  ImageDescription plain = is;
  plain.crop = {0, 0, is.resized_width, is.resized_height};
  plain.left = plain.top = 0;
  plain.width = is.resized_width;
  plain.height = is.resized_height;
  plain.inner = plain.crop;
  plain.element_bytes = 1;
  plain.is_planar = false;
  plain.tables.clear();
  for (size_t i = 0; i < 256 * is.channels.size(); ++i) plain.tables.push_back(static_cast<uint8_t>(i));
  plain.inner_codes.assign(is.channels.size(), 0);
  plain.outer_codes = plain.inner_codes;
  const ImagePlan plan(plain);
  std::vector<uint8_t> result(static_cast<size_t>(plan.result_bytes(plan.height())));
  plan.run(pixels, {result.data(), 0, plan.height()}, 0, plan.height());
  return result;
}

void check_plan(Random& random) {
  const ImageDescription is = any_description(random);
  const ImagePlan plan(is);
  std::vector<uint8_t> pixels(static_cast<size_t>(plan.source_bytes()));
  fill(pixels.data(), plan.source_bytes(), random);
  const std::vector<uint8_t> whole = resized(is, pixels.data());
  const auto channels = static_cast<int64_t>(is.channels.size());
  const int64_t begin = from_to(random, 0, is.height - 1);
  const int64_t end = from_to(random, begin, is.height);
  const auto size = static_cast<size_t>(is.element_bytes);
  std::vector<uint8_t> found(static_cast<size_t>(plan.result_bytes(end - begin)));
  const int64_t middle = from_to(random, begin, end);
  plan.run(pixels.data(), {found.data(), begin, end}, middle, end);
  plan.run(pixels.data(), {found.data(), begin, end}, begin, middle);
  bool is_equal = true;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = begin; y < end; ++y) {
      for (int64_t x = 0; x < is.width; ++x) {
        const int64_t row = y - is.top;
        const int64_t column = x - is.left;
        const bool is_seen = row >= 0 && row < is.crop.height && column >= 0 && column < is.crop.width;
        const int64_t from = ((is.crop.top + row) * is.resized_width + is.crop.left + column) * channels + c;
        const uint8_t* wanted =
            is_seen ? is.tables.data() + (c * 256 + whole[static_cast<size_t>(from)]) * is.element_bytes
                    : is.inner_codes.data();
        const int64_t at = is.is_planar ? (c * (end - begin) + y - begin) * is.width + x
                                        : ((y - begin) * is.width + x) * channels + c;
        is_equal = is_equal && std::memcmp(found.data() + at * is.element_bytes, wanted, size) == 0;
      }
    }
  }
  CHECK_IN("rule " + std::to_string(static_cast<int>(is.rule)) + " filter " +
               std::to_string(static_cast<int>(is.filter)) + " " + std::to_string(is.source.width) + "x" +
               std::to_string(is.source.height) + " to " + std::to_string(is.resized_width) + "x" +
               std::to_string(is.resized_height),
           is_equal);
}

void check_refusals() {
  Random random(1);
  const auto refused = [&](auto change) {
    ImageDescription is = any_description(random);
    change(is);
    return code_of([&] { ImagePlan plan(is); });
  };
  CHECK(refused([](ImageDescription& is) { is.source.width = 0; }) == "ERR_ARGUMENT");
  CHECK(refused([](ImageDescription& is) { is.source.channels = 5; }) == "ERR_ARGUMENT");
  CHECK(refused([](ImageDescription& is) { is.crop.width = is.resized_width + 1; }) == "ERR_ARGUMENT");
  CHECK(refused([](ImageDescription& is) { is.crop.left = -1; }) == "ERR_ARGUMENT");
  CHECK(refused([](ImageDescription& is) { is.left = is.width; }) == "ERR_ARGUMENT");
  CHECK(refused([](ImageDescription& is) { is.channels[0] = 4; }) == "ERR_ARGUMENT");
  CHECK(refused([](ImageDescription& is) { is.tables.pop_back(); }) == "ERR_ARGUMENT");
  CHECK(refused([](ImageDescription& is) { is.element_bytes = 3; }) == "ERR_ARGUMENT");
  CHECK(refused([](ImageDescription& is) {
          is.source.format = PixelFormat::kNv12;
          is.source.width = 3;
        }) == "ERR_ARGUMENT");
  // One result that reads two thousand million samples.
  CHECK(code_of([] { filter_taps(INT32_MAX, 1, Filter::kLanczos, {0, 1}); }) == "ERR_LIMIT");
}

void run(int64_t cases) {
  Random random(7);
  const GuardedMemory memory(1024);
  for (const ResampleKernels& kernels : kTable) {
    if (!can_run(kernels.isa)) continue;
    for (int64_t i = 0; i < cases; ++i) {
      check_columns(kernels, memory, random);
      check_rows(kernels, memory, random);
      check_linear(kernels, memory, random);
    }
  }
  for (int64_t i = 0; i < cases; ++i) check_plan(random);
  check_refusals();
}

}  // namespace
}  // namespace tilework::test

int main(int argc, char** argv) {
  tilework::test::run(argc > 1 ? std::atoll(argv[1]) : 4000);
  return tilework::test::result();
}
