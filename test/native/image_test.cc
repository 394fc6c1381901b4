// Kernels of a resize against the reference, in memory that inaccessible pages adjoin; whole plans against
// plain loops over whole images, for any rows and in parts. The argument is a number of cases: a million take
// minutes.
#include <algorithm>
#include <cmath>
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
#include "image_oracle.h"

namespace tilework::test {
namespace {

using Random = std::mt19937_64;

constexpr ResampleKernels kTable[] = {
#define TILEWORK_RESAMPLE_KERNELS(isa, suffix) \
  {Isa::isa,                                   \
   resample_columns##suffix,                   \
   resample_rows##suffix,                      \
   resample_linear_columns##suffix,            \
   resample_linear_rows##suffix,               \
   resample_half##suffix,                      \
   resample_plane##suffix},
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

void check_half(const ResampleKernels& kernels, const GuardedMemory& memory, Random& random) {
  const int64_t channels = from_to(random, 1, 4);
  const int64_t count = from_to(random, 1, 60);
  const int64_t bytes = 2 * count * channels;
  uint8_t* above = memory.place(bytes, Against::kUpper);
  std::vector<uint8_t> below(static_cast<size_t>(bytes));
  fill(above, bytes, random);
  fill(below.data(), bytes, random);
  std::vector<uint8_t> rows[2];
  for (auto& row : rows) row.assign(static_cast<size_t>(count * channels + 1), 99);
  reference().half({above, below.data(), channels, rows[0].data(), count});
  kernels.half({above, below.data(), channels, rows[1].data(), count});
  CHECK_IN(std::string(isa_of(kernels)) + " half of " + std::to_string(channels) + " channels",
           rows[0] == rows[1]);
}

void check_plane(const ResampleKernels& kernels, const GuardedMemory& memory, Random& random) {
  const int64_t channels = from_to(random, 1, 4);
  const int64_t count = from_to(random, 1, 60);
  const int64_t bytes = count * channels;
  uint8_t* pixels = memory.place(bytes, Against::kUpper);
  fill(pixels, bytes, random);
  const float scale = 1.0F / static_cast<float>(from_to(random, -300, -1));
  const float offset = static_cast<float>(from_to(random, -999, 999)) / 77;
  float table[256];
  for (int i = 0; i < 256; ++i) table[i] = std::fma(static_cast<float>(i), scale, offset);
  std::vector<float> rows[2];
  for (auto& row : rows) row.assign(static_cast<size_t>(count + 1), 99);
  const int64_t sample = from_to(random, 0, channels - 1);
  reference().plane({pixels, channels, sample, table, scale, offset, rows[0].data(), count});
  kernels.plane({pixels, channels, sample, table, scale, offset, rows[1].data(), count});
  CHECK_IN(std::string(isa_of(kernels)) + " plane of " + std::to_string(channels) + " channels",
           std::memcmp(rows[0].data(), rows[1].data(), rows[0].size() * sizeof(float)) == 0);
}

// float32 tables that a scale and an offset give, a number of which may be another.
void fill_with_numbers(std::vector<uint8_t>& tables, int64_t channels, Random& random) {
  for (int64_t c = 0; c < channels; ++c) {
    const float scale = 1.0F / static_cast<float>(from_to(random, 1, 300));
    const float offset = static_cast<float>(from_to(random, -9, 9));
    for (int64_t i = 0; i < 256; ++i) {
      const float number = std::fma(static_cast<float>(i), scale, offset);
      std::memcpy(tables.data() + (c * 256 + i) * 4, &number, 4);
    }
  }
  if (random() % 2 == 0) tables[static_cast<size_t>(from_to(random, 0, channels * 1024 - 1))] ^= 1;
}

// Mostly 1 to 70; sometimes a long side beside a short one.
int64_t any_side(Random& random) {
  return random() % 16 == 0 ? from_to(random, 100, 400) : from_to(random, 1, random() % 4 == 0 ? 9 : 70);
}

SourceImage any_source(Random& random) {
  SourceImage is{PixelFormat::kInterleaved, any_side(random), any_side(random), from_to(random, 1, 4), 1,
                 ColourStep::kNone,         {11, 222, 133}};
  if (is.width * is.height > 20000) is.height = from_to(random, 1, 40);
  if (random() % 32 == 0) {
    is.width = from_to(random, 1, 3);
    is.height = 100 * is.width;
  }
  const uint64_t kind = random() % 8;
  if (kind == 0) is.sample_bytes = 2;
  if (kind <= 1) is.format = PixelFormat::kPlanar;
  if (kind == 2) {
    is.format = static_cast<PixelFormat>(from_to(random, 2, 5));
    is.channels = 3;
    is.width = (is.width + 1) / 2 * 2;
    is.height = (is.height + 1) / 2 * 2;
  }
  if (is.sample_bytes == 1 && random() % 4 == 0 && is.channels >= 2) {
    is.colours = static_cast<ColourStep>(from_to(random, is.channels >= 3 ? 1 : 2, 4));
  }
  return is;
}

void place(ImageDescription& is, Random& random) {
  const int64_t left = from_to(random, 0, is.resized_width - 1);
  const int64_t top = from_to(random, 0, is.resized_height - 1);
  is.crop = {left, top, from_to(random, 1, is.resized_width - left),
             from_to(random, 1, is.resized_height - top)};
  if (random() % 32 == 0) is.crop = {0, 0, 0, 0};
  const auto border = [&] { return random() % 2 == 0 ? 0 : from_to(random, 0, 3); };
  is.inner = {border(), border(), 0, 0};
  is.left = is.inner.left + border();
  is.top = is.inner.top + border();
  is.inner.width = is.left - is.inner.left + is.crop.width + border();
  is.inner.height = is.top - is.inner.top + is.crop.height + border();
  is.width = std::max<int64_t>(is.inner.left + is.inner.width + border(), 1);
  is.height = std::max<int64_t>(is.inner.top + is.inner.height + border(), 1);
}

// Sizes that have a rule of their own.
void choose_sizes(ImageDescription& is, Random& random) {
  const SourceImage& source = is.source;
  is.resized_width = any_side(random);
  is.resized_height = is.resized_width > 70 ? from_to(random, 1, 40) : any_side(random);
  const uint64_t kind = random() % 8;
  if (kind == 0) is.resized_width = source.width;
  if (kind == 1) is.resized_height = source.height;
  if (kind == 2 && source.width % 2 == 0 && source.height % 2 == 0) {
    is.resized_width = source.width / 2;
    is.resized_height = source.height / 2;
  }
  // Orders of passes change here.
  if (kind == 3) {
    const int64_t less = from_to(random, 0, std::min(source.width - 1, (source.height - 1) / 2));
    is.resized_width = source.width - less;
    is.resized_height = source.height - 2 * less;
  }
  if (is.rule == ResizeRule::kOpencvArea) {
    is.resized_width = std::min(is.resized_width, source.width);
    is.resized_height = std::min(is.resized_height, source.height);
  }
}

// A description with tables that keep each sample apart.
ImageDescription any_description(Random& random) {
  ImageDescription is{};
  is.source = any_source(random);
  // OpenCV weights no colours by alpha.
  const int64_t last_rule = is.source.sample_bytes == 2                     ? 1
                            : is.source.colours == ColourStep::kPremultiply ? 2
                                                                            : 5;
  is.rule = static_cast<ResizeRule>(from_to(random, 0, last_rule));
  is.filter = static_cast<Filter>(from_to(random, 0, 7));
  choose_sizes(is, random);
  place(is, random);
  const int64_t samples = is.source.working_channels();
  const int64_t channels = from_to(random, 1, 4);
  for (int64_t c = 0; c < channels; ++c) is.channels.push_back(from_to(random, 0, samples - 1));
  is.element_bytes = 1 << from_to(random, 0, 3);
  const auto bytes = static_cast<size_t>(channels * is.element_bytes);
  is.tables.resize((is.source.sample_bytes == 1 ? 256 : 65536) * bytes);
  const auto seed = static_cast<uint32_t>(random());
  for (size_t i = 0; i < is.tables.size(); ++i)
    is.tables[i] = static_cast<uint8_t>((static_cast<uint32_t>(i) * 2654435761U + seed) >> 21);
  const bool has_numbers = is.element_bytes == 4 && is.source.sample_bytes == 1 && random() % 4 != 0;
  if (has_numbers) fill_with_numbers(is.tables, channels, random);
  is.inner_codes.assign(bytes, 17);
  is.outer_codes.assign(bytes, 18);
  is.is_planar = random() % 2 == 0;
  return is;
}

std::string text_of(const ImageDescription& is) {
  const auto number = [](auto value) { return std::to_string(static_cast<int64_t>(value)) + " "; };
  return "rule " + number(is.rule) + "filter " + number(is.filter) + "format " + number(is.source.format) +
         "colours " + number(is.source.colours) + "channels " + number(is.source.channels) + "from " +
         number(is.source.width) + number(is.source.height) + "to " + number(is.resized_width) +
         number(is.resized_height) + "crop " + number(is.crop.left) + number(is.crop.top) +
         number(is.crop.width) + number(is.crop.height);
}

// Rows [begin, end) of each plane of the whole result.
std::vector<uint8_t> rows_of(const std::vector<uint8_t>& whole, const ImageDescription& is, int64_t begin,
                             int64_t end) {
  const auto channels = static_cast<int64_t>(is.channels.size());
  const int64_t planes = is.is_planar ? channels : 1;
  const int64_t row = is.width * is.element_bytes * (is.is_planar ? 1 : channels);
  std::vector<uint8_t> rows;
  for (int64_t plane = 0; plane < planes; ++plane) {
    const uint8_t* at = whole.data() + plane * is.height * row;
    rows.insert(rows.end(), at + begin * row, at + end * row);
  }
  return rows;
}

void check_plan(Random& random) {
  const ImageDescription is = any_description(random);
  const ImagePlan plan(is);
  std::vector<uint8_t> pixels(static_cast<size_t>(plan.source_bytes()));
  fill(pixels.data(), plan.source_bytes(), random);
  const int64_t begin = random() % 2 == 0 ? 0 : from_to(random, 0, is.height - 1);
  const int64_t end = random() % 2 == 0 ? is.height : from_to(random, begin, is.height);
  const int64_t middle = from_to(random, begin, end);
  std::vector<uint8_t> found(static_cast<size_t>(plan.result_bytes(end - begin)));
  plan.run(pixels.data(), {found.data(), begin, end}, middle, end);
  plan.run(pixels.data(), {found.data(), begin, end}, begin, middle);
  CHECK_IN(text_of(is), found == rows_of(image_by_loops(is, pixels.data()), is, begin, end));
}

// FNV-1a of 32-bit numbers.
uint64_t hash_of(const std::vector<int32_t>& numbers) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const int32_t number : numbers) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash ^= (static_cast<uint32_t>(number) >> shift) & 255;
      hash *= 0x100000001b3;
    }
  }
  return hash;
}

// Of each result the first sample and the weights.
uint64_t hash_of(const IntegerTaps& taps) {
  std::vector<int32_t> numbers;
  for (int64_t i = 0; i < taps.results(); ++i) {
    const auto at = static_cast<size_t>(i);
    numbers.push_back(taps.first[at]);
    numbers.insert(numbers.end(), taps.weight(i), taps.weight(i) + taps.count[at]);
  }
  return hash_of(numbers);
}

// Hashes of the weights that a program in Python makes of the formulas, like Pillow and like torchvision. The
// last bits of most show in no small picture.
struct KnownWeights {
  Filter filter;
  int64_t in;
  int64_t out;
  uint64_t pillow;
  uint64_t torchvision;
};

constexpr KnownWeights kKnownWeights[] = {
    // A sample half a unit away counts on one side only.
    {Filter::kBox, 6, 4, 0x440e8a45b9411e91, 0xff8e65826136f411},
    {Filter::kBox, 997, 331, 0x81582c475123cb72, 0xf58dd711eb49b243},
    {Filter::kBox, 61, 500, 0x6575e931af580983, 0xae3c36edc49d9383},
    {Filter::kBilinear, 997, 331, 0x322672c7decb04d7, 0x601b3bdf04f2c08d},
    {Filter::kBilinear, 61, 500, 0x5440080df292541, 0x2230d9c36e918f5},
    {Filter::kHamming, 997, 331, 0x62d14b33b778c284, 0x7e3b2bc8dbfb046d},
    {Filter::kHamming, 61, 500, 0xf3e3175c20a9b851, 0x9803dbfd8baa2595},
    {Filter::kBicubic, 997, 331, 0xb93d61eb87c2f70a, 0xfc176b01aef37407},
    {Filter::kBicubic, 61, 500, 0xe6a4dade39b0a6f9, 0x4655d0a9cf3b6575},
    {Filter::kLanczos, 997, 331, 0x1a10c5eae343e9a7, 0x87aa07536efb8225},
    {Filter::kLanczos, 61, 500, 0x28fe886f5ea86969, 0x4223ead78d4bbb71},
    {Filter::kMks2013, 997, 331, 0xe0c13e55f376ebc, 0xb0caca7d9fba3308},
    {Filter::kMks2013, 61, 500, 0xff199c378ced44f, 0xfc2deca0ec18322f},
    {Filter::kMks2021, 997, 331, 0xbf3f63c1de2249ee, 0x7a01285a90fcf9b5},
    {Filter::kMks2021, 61, 500, 0x68aff7d02141c89, 0x3516eecb24bdd909},
};

void check_known_weights() {
  for (const KnownWeights& known : kKnownWeights) {
    const Span all{0, known.out};
    const std::string text = "filter " + std::to_string(static_cast<int>(known.filter));
    CHECK_IN(text + " like pillow",
             hash_of(pillow_taps(known.in, known.out, known.filter, all)) == known.pillow);
    CHECK_IN(text + " like torchvision",
             hash_of(torchvision_taps(known.in, known.out, known.filter, all)) == known.torchvision);
  }
  CHECK(hash_of(nearest_indices(NearestRule::kPillow, 997, 331, {0, 331})) == 0x637f58967a03b01e);
  CHECK(hash_of(nearest_indices(NearestRule::kPillow, 61, 500, {0, 500})) == 0xebf667b5158b6fd3);
  CHECK(hash_of(nearest_indices(NearestRule::kPillow, 1000, 999, {0, 999})) == 0x3d15f33434d0cf3e);
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

void run(int64_t cases, uint64_t seed) {
  Random random(seed);
  const GuardedMemory memory(1024);
  for (const ResampleKernels& kernels : kTable) {
    if (!can_run(kernels.isa)) continue;
    for (int64_t i = 0; i < cases; ++i) {
      check_columns(kernels, memory, random);
      check_rows(kernels, memory, random);
      check_linear(kernels, memory, random);
      check_half(kernels, memory, random);
      check_plane(kernels, memory, random);
    }
  }
  for (int64_t i = 0; i < cases; ++i) check_plan(random);
  check_known_weights();
  check_refusals();
}

}  // namespace
}  // namespace tilework::test

int main(int argc, char** argv) {
  tilework::test::run(argc > 1 ? std::atoll(argv[1]) : 4000,
                      argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 7);
  return tilework::test::result();
}
