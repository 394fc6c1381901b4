// Compares the reference cast with values of the published tables, and every kernel with the reference, bit
// for bit. Sources of up to 16 bits are tested with all codes; wider sources with the ties and limits of
// every target and their neighbours, and with seeded random patterns.
//
//   cast_test                        part of every test run
//   cast_test --exhaustive [types]   all 2^32 patterns of float32 to every type of 4, 6, 8 and 16 bits
#include "dtype/cast.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "dtype/exact_number.h"

namespace tilework::test {
namespace {

constexpr CastOptions kSpec{};
constexpr CastOptions kSpecNoSaturate{CastMode::kSpec, false};
constexpr CastOptions kOnnx{CastMode::kOnnx};
constexpr CastOptions kOnnxNoSaturate{CastMode::kOnnx, false};
constexpr CastOptions kAll[] = {kSpec, kSpecNoSaturate, kOnnx, kOnnxNoSaturate};

std::string text(Dtype dtype) { return std::string(info_of(dtype).name); }

std::string text(const CastOptions& options) {
  return std::string(options.mode == CastMode::kSpec ? " spec" : " onnx") +
         (options.saturate ? " saturating" : "");
}

// A buffer of exactly `packed_bytes` at an unaligned address.
class Packed {
 public:
  Packed(Dtype dtype, int64_t count)
      : size_(packed_bytes(dtype, count)), memory_(new uint8_t[static_cast<size_t>(size_ + 1)]) {}
  uint8_t* data() const { return memory_.get() + 1; }
  size_t size() const { return static_cast<size_t>(size_); }

 private:
  int64_t size_;
  std::unique_ptr<uint8_t[]> memory_;
};

uint64_t cast_one(Dtype from, uint64_t code, Dtype to, const CastOptions& options) {
  uint64_t result = 0;
  uint8_t bytes[16] = {};
  cast_reference({reinterpret_cast<const uint8_t*>(&code), bytes, 1, from, to, options});
  std::memcpy(&result, bytes, sizeof(result));
  return result;
}

uint64_t pattern_of(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

uint64_t pattern_of(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

void check_float32(float value, Dtype to, const CastOptions& options, uint64_t expected) {
  const uint64_t found = cast_one(Dtype::kFloat32, pattern_of(value), to, options);
  CHECK_IN(std::to_string(value) + " to " + text(to) + text(options) + " gives " + std::to_string(found),
           found == expected);
}

void check_float64(double value, Dtype to, const CastOptions& options, uint64_t expected) {
  const uint64_t found = cast_one(Dtype::kFloat64, pattern_of(value), to, options);
  CHECK_IN(std::to_string(value) + " to " + text(to) + text(options) + " gives " + std::to_string(found),
           found == expected);
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();

void check_published_float8() {
  struct Row {
    Dtype to;
    float last;
    uint64_t max, beyond, nan;
  };
  // `last` is the largest value that rounds to `max`; larger ones give `beyond` without saturation.
  for (const Row& row : {Row{Dtype::kFloat8E4m3fn, 464, 0x7e, 0x7f, 0x7f},
                         Row{Dtype::kFloat8E4m3fnuz, std::nextafter(248.0f, 0.0f), 0x7f, 0x80, 0x80},
                         Row{Dtype::kFloat8E5m2, std::nextafter(61440.0f, 0.0f), 0x7b, 0x7c, 0x7e},
                         Row{Dtype::kFloat8E5m2fnuz, std::nextafter(61440.0f, 0.0f), 0x7f, 0x80, 0x80}}) {
    for (const CastOptions& options : kAll) {
      check_float32(row.last, row.to, options, row.max);
      const uint64_t beyond = options.saturate ? row.max : row.beyond;
      check_float32(std::nextafter(row.last, kInfinity), row.to, options, beyond);
      check_float32(kInfinity, row.to, options, beyond);
      check_float32(-kInfinity, row.to, options, beyond | 0x80);
      check_float32(kNaN, row.to, options, row.nan);
      const bool has_negative_zero = row.nan != 0x80;
      check_float32(-0.0f, row.to, options, has_negative_zero ? 0x80 : 0);
      check_float32(-1e-30f, row.to, options, has_negative_zero ? 0x80 : 0);
    }
  }
}

void check_published_float4() {
  const float values[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5, 1e9f, kInfinity, -0.0f, -kInfinity};
  const uint64_t codes[] = {0, 2, 2, 4, 4, 6, 6, 7, 7, 8, 15};
  for (size_t i = 0; i < std::size(values); ++i) {
    for (const CastOptions& options : kAll) check_float32(values[i], Dtype::kFloat4E2m1fn, options, codes[i]);
  }
  check_float32(kNaN, Dtype::kFloat4E2m1fn, kSpec, 7);
  check_float32(kNaN, Dtype::kFloat4E2m1fn, kOnnx, 8);
  check_float32(-kNaN, Dtype::kFloat4E2m1fn, kOnnx, 0);
}

// The examples of ONNX's page on float6, and ties.
void check_published_float6() {
  const float values[] = {25,      -0.0f, kInfinity, -kInfinity, 0.0625f, 0.1875f,
                          1.0625f, 7.25f, 0.03125f,  26,         2.25f};
  const uint64_t e2m3[] = {31, 32, 31, 63, 0, 2, 8, 30, 0, 31, 17};
  const uint64_t e3m2[] = {30, 32, 31, 63, 1, 3, 12, 23, 0, 30, 16};
  for (size_t i = 0; i < std::size(values); ++i) {
    for (const CastOptions& options : kAll) {
      check_float32(values[i], Dtype::kFloat6E2m3fn, options, e2m3[i]);
      check_float32(values[i], Dtype::kFloat6E3m2fn, options, e3m2[i]);
    }
  }
  for (const Dtype to : {Dtype::kFloat6E2m3fn, Dtype::kFloat6E3m2fn}) {
    check_float32(kNaN, to, kSpec, 32);
    check_float32(-kNaN, to, kSpec, 32);
    check_float32(kNaN, to, kOnnx, 32);
    check_float32(-kNaN, to, kOnnx, 0);
  }
}

void check_published_scale() {
  const Dtype to = Dtype::kFloat8E8m0fnu;
  const CastOptions nearest{CastMode::kSpec, false, ScaleRounding::kNearest};
  const CastOptions down{CastMode::kSpec, true, ScaleRounding::kDown};
  const float subnormal = std::ldexp(1.0f, -130);
  struct Row {
    float value;
    uint64_t spec, spec_nearest, onnx;
  };
  for (const Row& row : {Row{0, 0, 0xff, 0}, Row{kNaN, 0xff, 0xff, 0xff}, Row{kInfinity, 0xfe, 0xff, 0xff},
                         Row{3e38f, 0xfe, 0xff, 0xfe}, Row{1, 127, 127, 127}, Row{1.25f, 128, 127, 128},
                         Row{1.5f, 128, 128, 128}, Row{subnormal, 0, 0, 1}}) {
    check_float32(row.value, to, kSpec, row.spec);
    check_float32(row.value, to, nearest, row.spec_nearest);
    check_float32(row.value, to, kOnnx, row.onnx);
  }
  check_float32(-2, to, kSpec, 0xff);
  check_float32(-2, to, kOnnx, 0x80);
  check_float32(3e38f, to, kOnnxNoSaturate, 0xff);
  check_float32(1.99f, to, down, 127);
  check_float32(std::ldexp(1.0f, -127), to, kSpec, 0);
  check_float32(std::ldexp(1.0f, -127), to, kOnnx, 1);
}

void check_published_integers() {
  const Dtype i8 = Dtype::kInt8;
  check_float32(kNaN, i8, kSpec, 0);
  check_float32(300, i8, kSpec, 127);
  check_float32(-kInfinity, i8, kSpec, 0x80);
  check_float32(-1.9f, i8, kSpec, 0xff);
  check_float32(-5, Dtype::kUint64, kSpec, 0);
  check_float32(1e30f, Dtype::kUint64, kSpec, ~uint64_t{0});
  check_float32(8, Dtype::kInt4, kSpec, 8);
  check_float32(-9, Dtype::kInt4, kSpec, 7);
  check_float32(1.5f, Dtype::kInt4, kSpec, 2);
  check_float32(1.5f, Dtype::kInt4, kOnnx, 1);
  check_float32(kInfinity, Dtype::kInt4, kSpec, 0);
  CHECK(cast_one(Dtype::kUint8, 200, i8, kSpec) == 200);
  CHECK(cast_one(Dtype::kInt8, 100, Dtype::kInt4, kSpec) == 4);
  CHECK(cast_one(Dtype::kInt32, 70000, Dtype::kFloat16, kSpec) == 0x7c00);
  CHECK(cast_one(Dtype::kBool, 2, Dtype::kFloat32, kSpec) == pattern_of(1.0f));
  check_float32(kNaN, Dtype::kBool, kSpec, 1);
  check_float32(-0.0f, Dtype::kBool, kSpec, 0);
}

void check_single_rounding() {
  const double above_tie = 1 + std::ldexp(1, -8) + std::ldexp(1, -30);
  check_float64(above_tie, Dtype::kBfloat16, kSpec, 0x3f81);
  check_float64(above_tie, Dtype::kBfloat16, kOnnx, 0x3f80);
  check_float64(1 + std::ldexp(1, -11) + std::ldexp(1, -40), Dtype::kFloat16, kOnnx, 0x3c01);
  const uint64_t large = (uint64_t{1} << 40) + (uint64_t{1} << 32) + 1;
  CHECK(cast_one(Dtype::kInt64, large, Dtype::kBfloat16, kSpec) == 0x5381);
  CHECK(cast_one(Dtype::kInt64, large, Dtype::kBfloat16, kOnnx) == 0x5380);
}

void check_not_numbers() {
  CHECK(cast_one(Dtype::kFloat32, 0x7f800001, Dtype::kFloat16, kSpec) == 0x7e00);
  CHECK(cast_one(Dtype::kFloat32, 0xffd00000, Dtype::kFloat16, kSpec) == 0xfe80);
  CHECK(cast_one(Dtype::kFloat32, 0xffd00000, Dtype::kBfloat16, kSpec) == 0xffc0);
  CHECK(cast_one(Dtype::kFloat16, 0xfd00, Dtype::kFloat32, kSpec) == 0xffe00000 + 0);
}

void check_complex() {
  const float pair[] = {1.5f, -2};
  double wide[2] = {};
  cast_reference({reinterpret_cast<const uint8_t*>(pair), reinterpret_cast<uint8_t*>(wide), 1,
                  Dtype::kComplex64, Dtype::kComplex128, kSpec});
  CHECK(wide[0] == 1.5 && wide[1] == -2);
  cast_reference({reinterpret_cast<const uint8_t*>(pair), reinterpret_cast<uint8_t*>(wide), 1,
                  Dtype::kFloat32, Dtype::kComplex128, kSpec});
  CHECK(wide[0] == 1.5 && wide[1] == 0);
  const auto drop_half = [] { Cast(Dtype::kComplex64, Dtype::kFloat32, kSpec); };
  CHECK(code_of(drop_half) == "ERR_DTYPE");
}

// Source patterns for casts from wide types, packed.
class Patterns {
 public:
  Patterns(Dtype from, int64_t random_count, uint64_t seed) : from_(from) {
    const int bits = info_of(from).bits;
    if (bits <= 16) {
      for (uint64_t code = 0; code < uint64_t{1} << bits; ++code) add(code);
    } else {
      add_near_limits();
      std::mt19937_64 random(seed);
      for (int64_t i = 0; i < random_count; ++i) add(random());
    }
  }

  const uint8_t* data() const { return bytes_.data(); }
  int64_t count() const { return count_; }

 private:
  void add(uint64_t code) {
    const int bits = info_of(from_).bits;
    if (bits < 8) {
      bytes_.resize(static_cast<size_t>(packed_bytes(from_, count_ + 1)));
      for (int bit = 0; bit < bits; ++bit) {
        const int64_t at = count_ * bits + bit;
        uint8_t& byte = bytes_[static_cast<size_t>(at / 8)];
        byte = static_cast<uint8_t>(byte | ((code >> bit) & 1) << (at % 8));
      }
    } else {
      const auto* from = reinterpret_cast<const uint8_t*>(&code);
      bytes_.insert(bytes_.end(), from, from + std::min(bits, 64) / 8);
      if (bits == 128) bytes_.insert(bytes_.end(), from, from + 8);
    }
    ++count_;
  }

  // For every exponent (or highest bit of an integer): all values of the next six bits, every single lower
  // bit, all lower bits set, and the neighbours of each. These include the ties, limits and smallest
  // subnormals of all narrower types.
  void add_near_limits() {
    const DtypeInfo& type = info_of(from_);
    const bool is_float = type.kind == DtypeKind::kFloat || type.kind == DtypeKind::kComplex;
    const int m = is_float ? type.mantissa_bits : 0;
    const int width = type.kind == DtypeKind::kComplex ? type.bits / 2 : type.bits;
    const int sizes = is_float ? 1 << std::min(width - 1 - m, 11) : width;
    for (int size = 0; size < sizes; ++size) {
      const uint64_t first = is_float ? static_cast<uint64_t>(size) << m : uint64_t{1} << size;
      const int lower = is_float ? m : size;
      for (uint64_t front = 0; front < 64; ++front) {
        const uint64_t tail = lower >= 6 ? front << (lower - 6) : front >> (6 - lower);
        add_neighbours(first + tail, width);
      }
      add_neighbours(first + ((uint64_t{1} << lower) - 1), width);
      for (int single = 0; single < lower; ++single) add_neighbours(first + (uint64_t{1} << single), width);
    }
    add_neighbours(0, width);
  }

  void add_neighbours(uint64_t code, int width) {
    const uint64_t sign = uint64_t{1} << (width - 1);
    for (const uint64_t near : {code - 1, code, code + 1}) {
      add(near);
      add(info_of(from_).kind == DtypeKind::kInt ? 0 - near : near ^ sign);
    }
  }

  Dtype from_;
  std::vector<uint8_t> bytes_;
  int64_t count_ = 0;
};

// Describes the first byte that differs, for the message.
std::string difference(const Packed& found, const Packed& expected, Dtype to) {
  const auto* at = std::mismatch(found.data(), found.data() + found.size(), expected.data()).first;
  const int64_t byte = at - found.data();
  return ": byte " + std::to_string(byte) + ", element " + std::to_string(byte * 8 / info_of(to).bits) +
         ", is " + std::to_string(*at) + ", not " + std::to_string(expected.data()[byte]);
}

template <class Run>
void check_run(const std::string& name, const CastArguments& given, const Packed& expected, Run run) {
  const Packed found(given.to, given.count);
  std::memset(found.data(), 0xA5, found.size());
  CastArguments arguments = given;
  arguments.destination = found.data();
  run(arguments);
  const bool equal = std::memcmp(found.data(), expected.data(), expected.size()) == 0;
  if (equal) return;
  CHECK_IN(name + text(given.options) + difference(found, expected, given.to), equal);
}

void check_pair(const Patterns& patterns, Dtype from, Dtype to, const CastOptions& options) {
  const Packed expected(to, patterns.count());
  const CastArguments arguments{patterns.data(), expected.data(), patterns.count(), from, to, options};
  cast_reference(arguments);
  const Cast cast(from, to, options);
  check_run(cast.kernels() + " of " + text(from) + " to " + text(to), arguments, expected,
            [&](const CastArguments& at) { cast.run(at.source, at.destination, at.count); });
  for (const CastKernel& kernel : cast_kernels()) {
    if (kernel.from != from || kernel.to != to || !can_run(kernel.isa)) continue;
    const bool rounds_twice =
        options.mode == CastMode::kOnnx && info_of(from).bits > 16 && from != Dtype::kFloat32;
    if (kernel.rounding != CastRounding::kNearest || rounds_twice) continue;
    check_run(name_of(kernel), arguments, expected, kernel.run);
  }
}

// The kernels of a pair that this CPU can run. `check` takes a name and a function of CastArguments.
template <class Check>
void for_each_kernel(Dtype from, Dtype to, Check check) {
  for (const CastKernel& kernel : cast_kernels()) {
    const bool is_of_pair = kernel.from == from && kernel.to == to;
    if (is_of_pair && kernel.rounding == CastRounding::kNearest && can_run(kernel.isa)) {
      check(name_of(kernel), kernel.run);
    }
  }
}

// All lengths up to 70 elements, which is more than a block, and those around the blocks of casts in several
// steps, at unaligned addresses. The reference leaves the unused bits of the last byte zero.
void check_tails(Dtype from, Dtype to) {
  std::vector<int64_t> counts(71);
  std::iota(counts.begin(), counts.end(), 0);
  for (const int64_t blocks : {1024, 2048}) {
    for (int64_t past = -3; past <= 3; ++past) counts.push_back(blocks + past);
  }
  std::mt19937_64 random(7);
  const Cast cast(from, to, kSpec);
  for (const int64_t count : counts) {
    const Packed source(from, count);
    for (size_t i = 0; i < source.size(); ++i) source.data()[i] = static_cast<uint8_t>(random());
    const Packed expected(to, count);
    const CastArguments arguments{source.data(), expected.data(), count, from, to, kSpec};
    cast_reference(arguments);
    const auto check = [&](const std::string& name, auto run) {
      check_run(name + " of " + std::to_string(count), arguments, expected, run);
    };
    check(cast.kernels(), [&](const CastArguments& at) { cast.run(at.source, at.destination, at.count); });
    for_each_kernel(from, to, check);
  }
}

// The unused bits of the last byte are zero, whatever the source has in its own.
void check_unused_bits(Dtype from, Dtype to) {
  const int bits = info_of(to).bits;
  if (bits >= 8) return;
  for (int64_t count = 1; count <= 70; ++count) {
    const int unused = static_cast<int>(packed_bytes(to, count) * 8 - count * bits);
    if (unused == 0) continue;
    const Packed source(from, count);
    const Packed found(to, count);
    const auto check = [&](const std::string& name, auto run) {
      for (const int byte : {0x00, 0x3C, 0x40, 0xA5, 0xFF}) {
        std::memset(source.data(), byte, source.size());
        std::memset(found.data(), 0xFF, found.size());
        run(CastArguments{source.data(), found.data(), count, from, to, kSpec});
        CHECK_IN(name + " of " + std::to_string(count), found.data()[found.size() - 1] >> (8 - unused) == 0);
      }
    };
    const Cast cast(from, to, kSpec);
    check("cast_reference to " + text(to), cast_reference);
    check(cast.kernels(), [&](const CastArguments& at) { cast.run(at.source, at.destination, at.count); });
    for_each_kernel(from, to, check);
  }
}

constexpr size_t kLine = 64;

// A buffer whose `at()` is `past` bytes after a cache line boundary, with at least a line of padding on both
// sides.
struct Room {
  Room(size_t size, size_t past)
      : bytes(size + 4 * kLine, 0xA5),
        start(kLine + (kLine - reinterpret_cast<uintptr_t>(bytes.data()) % kLine) + past) {}
  uint8_t* at() { return bytes.data() + start; }

  std::vector<uint8_t> bytes;
  size_t start;
};

// A copy of the source that starts `past` bytes after a cache line boundary and ends with its allocation, so
// that AddressSanitizer reports reads past the end.
class LastBytes {
 public:
  LastBytes(const Packed& source, size_t past)
      : past_(past),
        bytes_(static_cast<uint8_t*>(::operator new(past + source.size(), std::align_val_t{kLine}))) {
    std::memcpy(bytes_ + past, source.data(), source.size());
  }
  LastBytes(const LastBytes&) = delete;
  LastBytes& operator=(const LastBytes&) = delete;
  ~LastBytes() { ::operator delete(bytes_, std::align_val_t{kLine}); }
  const uint8_t* at() const { return bytes_ + past_; }

 private:
  size_t past_;
  uint8_t* bytes_;
};

// Sources and destinations that start at a cache line boundary, between two, and where no element ends at
// one, with streaming and with cached stores. The largest count is long enough for cached casts to be aligned
// to a line as well. Nothing outside the result is written.
void check_lines(Dtype from, Dtype to) {
  constexpr int64_t kLongBytes = 70000;
  std::mt19937_64 random(8);
  const Cast cast(from, to, kSpec);
  const int64_t many = kLongBytes * 8 / (info_of(from).bits + info_of(to).bits) + 37;
  for (const int64_t count : {int64_t{1}, int64_t{63}, int64_t{64}, int64_t{700}, int64_t{1025}, many}) {
    const Packed source(from, count);
    for (size_t i = 0; i < source.size(); ++i) source.data()[i] = static_cast<uint8_t>(random());
    const Packed expected(to, count);
    cast_reference({source.data(), expected.data(), count, from, to, kSpec});
    for (const size_t past : {size_t{0}, size_t{8}, size_t{31}, size_t{62}}) {
      const LastBytes given(source, past);
      for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
        Room room(expected.size(), past);
        Room wanted = room;
        std::memcpy(wanted.at(), expected.data(), expected.size());
        cast.run(given.at(), room.at(), count, stores);
        end_streaming();
        CHECK_IN(cast.kernels() + (stores == Stores::kCached ? " cached " : " streamed ") +
                     std::to_string(count) + " " + std::to_string(past),
                 room.bytes == wanted.bytes);
      }
    }
  }
}

bool is_cast(Dtype from, Dtype to) { return from != to && (!is_complex(from) || is_complex(to)); }

void check_all_pairs() {
  for (const DtypeInfo& from : dtypes()) {
    const Patterns patterns(from.dtype, 20000, 1);
    for (const DtypeInfo& to : dtypes()) {
      if (!is_cast(from.dtype, to.dtype)) continue;
      for (const CastOptions& options : kAll) check_pair(patterns, from.dtype, to.dtype, options);
      check_tails(from.dtype, to.dtype);
      check_unused_bits(from.dtype, to.dtype);
      check_lines(from.dtype, to.dtype);
    }
  }
}

constexpr Dtype kNarrowTargets[] = {Dtype::kFloat16,        Dtype::kBfloat16,    Dtype::kFloat8E4m3fn,
                                    Dtype::kFloat8E4m3fnuz, Dtype::kFloat8E5m2,  Dtype::kFloat8E5m2fnuz,
                                    Dtype::kFloat8E8m0fnu,  Dtype::kInt8,        Dtype::kUint8,
                                    Dtype::kInt16,          Dtype::kUint16,      Dtype::kFloat4E2m1fn,
                                    Dtype::kInt4,           Dtype::kUint4,       Dtype::kBool,
                                    Dtype::kFloat6E2m3fn,   Dtype::kFloat6E3m2fn};

void check_seeded_float32() {
  constexpr int64_t kPatterns = 10'000'000;
  constexpr int64_t kChunk = 1'000'000;
  for (int64_t done = 0; done < kPatterns; done += kChunk) {
    const Patterns patterns(Dtype::kFloat32, kChunk, static_cast<uint64_t>(done) + 2);
    for (const Dtype to : kNarrowTargets) check_pair(patterns, Dtype::kFloat32, to, kSpec);
  }
}

// All float32 to one type with one set of options.
struct Target {
  Dtype to;
  CastOptions options;
  std::atomic<int64_t> differences{0};
};

uint64_t six_bits(const uint8_t* bytes, size_t i) {
  const uint8_t* group = bytes + i / 4 * 3;
  const unsigned codes = group[0] | group[1] << 8 | group[2] << 16;
  return (codes >> (i % 4 * 6)) & 63;
}

// Casts patterns [first, first + count) to every target; decodes each pattern once for all targets.
void check_patterns(uint64_t first, size_t count, std::deque<Target>& targets) {
  std::vector<uint32_t> codes(count);
  std::vector<ExactNumber> numbers(count);
  const DtypeInfo& float32 = info_of(Dtype::kFloat32);
  for (size_t i = 0; i < count; ++i) {
    codes[i] = static_cast<uint32_t>(first + i);
    numbers[i] = decode(float32, codes[i]);
  }
  for (Target& target : targets) {
    const DtypeInfo& type = info_of(target.to);
    std::vector<uint16_t> found(count);
    const Cast cast(Dtype::kFloat32, target.to, target.options);
    cast.run(reinterpret_cast<const uint8_t*>(codes.data()), reinterpret_cast<uint8_t*>(found.data()),
             static_cast<int64_t>(count));
    const auto* bytes = reinterpret_cast<const uint8_t*>(found.data());
    for (size_t i = 0; i < count; ++i) {
      const uint64_t code = type.bits == 16  ? found[i]
                            : type.bits == 8 ? bytes[i]
                            : type.bits == 6 ? six_bits(bytes, i)
                                             : (bytes[i / 2] >> (i % 2 * 4)) & 15;
      if (code != encode(type, numbers[i], target.options)) ++target.differences;
    }
  }
}

// Casts all 2^32 patterns to several types at once, on two threads.
void check_every_float32(std::span<const Dtype> types) {
  const auto start = std::chrono::steady_clock::now();
  std::deque<Target> targets;
  const auto add = [&](Dtype to, const CastOptions& options) {
    targets.emplace_back();
    targets.back().to = to;
    targets.back().options = options;
  };
  for (const Dtype to : types) {
    const bool is_float8 = is_float(to) && info_of(to).bits == 8;
    add(to, kSpec);
    if (is_float8) add(to, kSpecNoSaturate);
  }
  std::atomic<uint64_t> next{0};
  const auto work = [&] {
    constexpr uint64_t kChunk = uint64_t{1} << 13;
    for (uint64_t first = next.fetch_add(kChunk); first < uint64_t{1} << 32; first = next.fetch_add(kChunk)) {
      if (first % (uint64_t{1} << 28) == 0) {
        std::fprintf(stderr, "%d of 16\n", static_cast<int>(first >> 28));
      }
      check_patterns(first, kChunk, targets);
    }
  };
  std::thread other(work);
  work();
  other.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  for (const Target& target : targets) {
    CHECK_IN(text(target.to) + text(target.options), target.differences == 0);
    std::printf("float32 to %s%s: 2^32 patterns, %lld differences, %s\n", text(target.to).c_str(),
                text(target.options).c_str(), static_cast<long long>(target.differences),
                Cast(Dtype::kFloat32, target.to, target.options).kernels().c_str());
  }
  std::printf("%zu casts at once in %.0f s\n", targets.size(), seconds.count());
  std::fflush(stdout);
}

// The named types, or all types.
void check_every_float32(int count, char** names) {
  std::vector<Dtype> types;
  for (int i = 0; i < count; ++i) {
    const Dtype dtype = dtype_of(names[i]);
    CHECK_IN(names[i], std::find(std::begin(kNarrowTargets), std::end(kNarrowTargets), dtype) !=
                           std::end(kNarrowTargets));
    types.push_back(dtype);
  }
  if (count == 0) types.assign(std::begin(kNarrowTargets), std::end(kNarrowTargets));
  constexpr size_t kTypesAtOnce = 3;
  for (size_t first = 0; first < types.size(); first += kTypesAtOnce) {
    check_every_float32(std::span(types).subspan(first, std::min(kTypesAtOnce, types.size() - first)));
  }
}

int run(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "--exhaustive") {
    check_every_float32(count - 2, arguments + 2);
    return result();
  }
  check_published_float8();
  check_published_float4();
  check_published_float6();
  check_published_scale();
  check_published_integers();
  check_single_rounding();
  check_not_numbers();
  check_complex();
  check_all_pairs();
  check_seeded_float32();
  return result();
}

}  // namespace
}  // namespace tilework::test

int main(int count, char** arguments) { return tilework::test::run(count, arguments); }
