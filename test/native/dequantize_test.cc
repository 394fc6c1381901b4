// Every kernel of every block type against the reference: random bits, among them scales that are infinite,
// NaN and subnormal, finite scales, and runs of blocks at every alignment. test/formats/gguf compares the
// reference with gguf-py.
#include "blocks/dequantize.h"

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "dtype/cast.h"

namespace tilework::test {
namespace {

std::mt19937_64 random_bits(20'261'129);

// Random bytes; `mask` clears bits of the odd ones, so that most float16 scales are finite.
std::vector<uint8_t> random_blocks(const BlockTypeInfo& type, int64_t count, uint8_t mask) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count * type.bytes));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(random_bits());
    if (i % 2 == 1) bytes[i] &= mask;
  }
  return bytes;
}

// Equal bits; the payloads of NaN depend on the instructions.
bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

void compare_kernels(const BlockTypeInfo& type, uint8_t mask) {
  constexpr int64_t kCount = 500;
  std::vector<uint8_t> bytes = random_blocks(type, kCount, mask);
  const auto elements = static_cast<size_t>(kCount * type.elements);
  std::vector<float> expected(elements);
  dequantize_reference(type.type)(bytes.data(), kCount, expected.data());
  for (const DequantizeKernels& kernels : dequantize_kernels()) {
    if (!can_run(kernels.isa)) continue;
    // Blocks have no alignment.
    for (size_t shift = 0; shift < 4; ++shift) {
      std::vector<uint8_t> moved(shift);
      moved.insert(moved.end(), bytes.begin(), bytes.end());
      // One more number shows a write behind the end.
      std::vector<float> found(elements + 1, 7.5F);
      kernels.of(type.type)(moved.data() + shift, kCount, found.data());
      size_t bad = 0;
      while (bad < elements && same(found[bad], expected[bad])) ++bad;
      CHECK_IN(std::string(type.name) + kernel_suffix(kernels.isa) + " element " + std::to_string(bad),
               bad == elements);
      CHECK(found[elements] == 7.5F);
    }
  }
}

// float16 and bfloat16 are the float32 numbers rounded once, whatever the number of blocks, the address and
// the stores.
void compare_rounded(const BlockTypeInfo& type) {
  for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{65}, int64_t{129}}) {
    const std::vector<uint8_t> bytes = random_blocks(type, count, 0xBF);
    const int64_t elements = count * type.elements;
    std::vector<float> numbers(static_cast<size_t>(elements));
    dequantize_reference(type.type)(bytes.data(), count, numbers.data());
    for (const Dtype to : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16}) {
      const size_t size = static_cast<size_t>(elements) * static_cast<size_t>(info_of(to).bits / 8);
      std::vector<uint8_t> expected(size);
      Cast(Dtype::kFloat32, to, {})
          .run(reinterpret_cast<const uint8_t*>(numbers.data()), expected.data(), elements);
      for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
        std::vector<uint8_t> found(size + 2, 99);
        dequantize_blocks(type.type, bytes.data(), count, to, found.data() + 1, stores);
        CHECK_IN(type.name, std::equal(expected.begin(), expected.end(), found.begin() + 1));
        CHECK(found.front() == 99 && found.back() == 99);
      }
    }
  }
  CHECK(code_of([&] { dequantize_blocks(type.type, nullptr, 0, Dtype::kInt8, nullptr); }) == "ERR_DTYPE");
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework;
  for (const BlockTypeInfo& type : kBlockTypes) {
    test::compare_kernels(type, 0xFF);
    test::compare_kernels(type, 0xBF);
    test::compare_rounded(type);
  }
  return test::result();
}
