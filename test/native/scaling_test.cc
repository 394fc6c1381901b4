// Scalings: the reference against worked examples, every kernel against the reference bit for bit, and the
// chains of casts and kernels for every pair of types against the oracle.
#include "dtype/scaling.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "dtype/cast_chain.h"
#include "packed_elements.h"
#include "scaling_oracle.h"

namespace tilework::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();

std::string text(const ScalingDescription& scaling) {
  constexpr const char* kKinds[] = {"quantize ", "dequantize ", "affine "};
  return kKinds[static_cast<size_t>(scaling.kind)] + std::string(info_of(scaling.from).name) + " to " +
         std::string(info_of(scaling.to).name) +
         (scaling.rules == QuantizeRules::kTmfile ? " by the rules of tmfile" : "");
}

ScalingDescription describe(ScalingKind kind, Dtype from, Dtype to, double scale, double offset) {
  ScalingDescription scaling;
  scaling.kind = kind;
  scaling.from = from;
  scaling.to = to;
  scaling.scales = {scale};
  scaling.offsets = {offset};
  return scaling;
}

int quantized(float value, const ScalingDescription& scaling) {
  int8_t code = 0;
  CastChain(scaling_steps(scaling, nullptr))
      .run(reinterpret_cast<const uint8_t*>(&value), reinterpret_cast<uint8_t*>(&code), 0, 1);
  return scaling.to == Dtype::kUint8 ? static_cast<uint8_t>(code) : code;
}

void test_worked_numbers() {
  const auto to_int8 = describe(ScalingKind::kQuantize, Dtype::kFloat32, Dtype::kInt8, 0.5, 3);
  auto to_uint8 = describe(ScalingKind::kQuantize, Dtype::kFloat32, Dtype::kUint8, 2, 128);
  auto by_tmfile = to_int8;
  by_tmfile.rules = to_uint8.rules = QuantizeRules::kTmfile;
  // Rounds ties to even before adding the zero point.
  CHECK(quantized(1.25f, to_int8) == 5 && quantized(1.75f, to_int8) == 7 && quantized(-1.25f, to_int8) == 1);
  CHECK(quantized(1e9f, to_int8) == 127 && quantized(-kInfinity, to_int8) == -128);
  CHECK(quantized(kNaN, to_int8) == 3 && quantized(-0.0f, to_int8) == 3);
  // Rounds ties away from zero after adding the zero point.
  CHECK(quantized(1.25f, by_tmfile) == 6 && quantized(-3.25f, by_tmfile) == -4);
  CHECK(quantized(-1e9f, by_tmfile) == -127 && quantized(kNaN, by_tmfile) == 3);
  CHECK(quantized(-257, to_uint8) == 0 && quantized(-255, to_uint8) == 1 && quantized(999, to_uint8) == 255);
  // 0.49999997 + 0.5 is 1 in float32.
  CHECK(quantized(std::nextafter(0.5f, 0.0f), [] {
          auto scaling = describe(ScalingKind::kQuantize, Dtype::kFloat32, Dtype::kInt8, 1, 0);
          scaling.rules = QuantizeRules::kTmfile;
          return scaling;
        }()) == 0);
}

// Numbers around every tie and limit, large and small numbers, NaN and infinities; random patterns.
std::vector<float> floats(std::mt19937& random) {
  std::vector<float> values = {0.0f, -0.0f, kNaN, -kNaN, kInfinity, -kInfinity, 1e-45f, 3e38f, -3e38f};
  for (int half = -300; half <= 300; ++half) {
    const float value = static_cast<float>(half) / 2;
    for (const float near : {std::nextafter(value, -kInfinity), value, std::nextafter(value, kInfinity)}) {
      values.push_back(near);
      values.push_back(near * 256);
    }
  }
  for (int i = 0; i < 60000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    values.push_back(value);
  }
  return values;
}

std::vector<uint8_t> source_of(Dtype from, const std::vector<float>& values) {
  const auto bytes = static_cast<size_t>(info_of(from).bits / 8);
  // The extra first byte makes all addresses odd.
  std::vector<uint8_t> source(1 + values.size() * bytes);
  const CastOptions options;
  cast_reference({reinterpret_cast<const uint8_t*>(values.data()), source.data() + 1,
                  static_cast<int64_t>(values.size()), Dtype::kFloat32, from, options});
  return source;
}

template <class Number>
void check_kernel(const ScalingKernel& kernel, const ScalingKernel& reference, std::mt19937& random) {
  const std::vector<float> values = floats(random);
  const std::vector<uint8_t> source = source_of(kernel.from, values);
  std::uniform_real_distribution<Number> scale_of(Number(0.001), Number(3));
  std::vector<Number> scales;
  std::vector<Number> offsets;
  for (size_t i = 0; i < values.size(); ++i) {
    scales.push_back(i < 2000 ? Number{1} : scale_of(random));
    // A code that is valid in every type, as zero points are.
    offsets.push_back(static_cast<Number>(random() % 128));
  }
  const auto size = values.size() * static_cast<size_t>(info_of(kernel.to).bits / 8);
  for (const QuantizeRules rules : {QuantizeRules::kOnnx, QuantizeRules::kTmfile}) {
    for (const int64_t stride : {0, 1}) {
      std::vector<uint8_t> expected(size + 1, 0xA5);
      std::vector<uint8_t> found(size + 1, 0xA5);
      const double low = kernel.to == Dtype::kUint8 ? 0 : -128;
      const double high = kernel.to == Dtype::kUint8 ? 255 : kernel.to == Dtype::kInt32 ? 65535 : 127;
      ScalingArguments arguments{source.data() + 1,
                                 expected.data() + 1,
                                 static_cast<int64_t>(values.size()),
                                 scales.data(),
                                 offsets.data(),
                                 stride,
                                 low,
                                 high,
                                 rules};
      reference.run(arguments);
      arguments.destination = found.data() + 1;
      kernel.run(arguments);
      CHECK_IN(name_of(kernel) + " stride " + std::to_string(stride), found == expected);
    }
  }
}

// Payloads of NaN need no tolerance: all kernels do the same operations in the same order.
void test_kernels() {
  std::mt19937 random(1960);
  for (const ScalingKernel& kernel : scaling_kernels()) {
    if (kernel.isa == Isa::kReference || !can_run(kernel.isa)) continue;
    for (const ScalingKernel& reference : scaling_kernels()) {
      if (reference.isa != Isa::kReference || reference.kind != kernel.kind) continue;
      if (reference.from != kernel.from || reference.to != kernel.to) continue;
      if (kernel.from == Dtype::kFloat64) {
        check_kernel<double>(kernel, reference, random);
      } else {
        check_kernel<float>(kernel, reference, random);
      }
    }
  }
}

void test_list() {
  for (const ScalingKernel& kernel : scaling_kernels()) {
    bool has_reference = false;
    for (const ScalingKernel& other : scaling_kernels()) {
      const bool is_same = other.kind == kernel.kind && other.from == kernel.from && other.to == kernel.to;
      has_reference = has_reference || (is_same && other.isa == Isa::kReference);
    }
    CHECK_IN(name_of(kernel), has_reference);
  }
}

bool are_equal(Dtype dtype, uint64_t found, uint64_t expected) {
  if (found == expected) return true;
  // The compiler decides which of two NaN a sum keeps.
  const bool are_floats = is_float(dtype) && info_of(dtype).bits >= 16;
  return are_floats && std::isnan(number_of<double>(dtype, found)) &&
         std::isnan(number_of<double>(dtype, expected));
}

uint64_t element(const std::vector<uint8_t>& bytes, int bits, size_t index) {
  if (bits < 8) return packed_element(bytes.data(), bits, static_cast<int64_t>(index));
  uint64_t code = 0;
  std::memcpy(&code, bytes.data() + index * static_cast<size_t>(bits / 8), static_cast<size_t>(bits / 8));
  return code;
}

void check_pair(const ScalingDescription& scaling, std::mt19937_64& random) {
  constexpr int64_t kCount = 5003;
  std::vector<uint8_t> source(static_cast<size_t>(packed_bytes(scaling.from, kCount)));
  for (uint8_t& byte : source) byte = static_cast<uint8_t>(random());
  // Small numbers too, which random bytes of wide types rarely are.
  for (int64_t i = 0; i < 1000 && info_of(scaling.from).bits >= 32; ++i) {
    const uint64_t code = code_of_number(static_cast<double>(i - 500) / 4, scaling.from, true);
    std::memcpy(source.data() + packed_bytes(scaling.from, i), &code,
                static_cast<size_t>(info_of(scaling.from).bits / 8));
  }
  std::vector<uint8_t> found(static_cast<size_t>(packed_bytes(scaling.to, kCount)), 0xA5);
  CastChain(scaling_steps(scaling, nullptr)).run(source.data(), found.data(), 0, kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const uint64_t code = element(source, info_of(scaling.from).bits, i);
    const uint64_t expected = scaled_code(scaling, 0, code);
    const uint64_t got = element(found, info_of(scaling.to).bits, i);
    CHECK_IN(text(scaling) + " of " + std::to_string(code) + " gives " + std::to_string(got) + ", not " +
                 std::to_string(expected),
             are_equal(scaling.to, got, expected));
    if (failures > 20) return;
  }
}

void test_pairs() {
  std::mt19937_64 random(1961);
  for (const ScalingKind kind : {ScalingKind::kQuantize, ScalingKind::kDequantize, ScalingKind::kAffine}) {
    for (const DtypeInfo& from : dtypes()) {
      for (const DtypeInfo& to : dtypes()) {
        const bool is_float_code = is_float(to.dtype) && kind == ScalingKind::kQuantize;
        const double offset = is_float_code ? 0 : to.kind == DtypeKind::kInt ? -2 : 3;
        ScalingDescription scaling = describe(kind, from.dtype, to.dtype, 0.37, offset);
        if (!may_scale(kind, from.dtype, to.dtype)) {
          CHECK_IN(text(scaling), code_of([&] { scaling_steps(scaling, nullptr); }) == "ERR_DTYPE");
          continue;
        }
        check_pair(scaling, random);
        scaling.rules = QuantizeRules::kTmfile;
        scaling.saturate = false;
        check_pair(scaling, random);
      }
    }
  }
}

void test_refusals() {
  auto scaling = describe(ScalingKind::kAffine, Dtype::kUint8, Dtype::kFloat32, 1, 0);
  scaling.offsets = {0, 1};
  CHECK(code_of([&] { scaling_steps(scaling, nullptr); }) == "ERR_ARGUMENT");
  scaling.offsets = scaling.scales = {};
  CHECK(code_of([&] { scaling_steps(scaling, nullptr); }) == "ERR_ARGUMENT");
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  test_worked_numbers();
  test_list();
  test_kernels();
  test_pairs();
  test_refusals();
  return result();
}
