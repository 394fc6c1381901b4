// Codes of blocks against the formulas written out one number at a time, with the functions of the C++
// library: random matrices of every rule and both directions, ties, zeros of both signs, and blocks that end
// early.
#include "dtype/block_codes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "dtype/cast.h"
#include "io/checked_math.h"

namespace tilework::test {
namespace {

float as_half(float value) {
  uint16_t half = 0;
  float result = 0;
  Cast(Dtype::kFloat32, Dtype::kFloat16, {})
      .run(reinterpret_cast<const uint8_t*>(&value), reinterpret_cast<uint8_t*>(&half), 1);
  Cast(Dtype::kFloat16, Dtype::kFloat32, {})
      .run(reinterpret_cast<const uint8_t*>(&half), reinterpret_cast<uint8_t*>(&result), 1);
  return result;
}

struct Block {
  float scale = 0;
  int zero = 0;
  std::vector<int> codes;
};

// The product of two float32 numbers, and the sum with a third, each rounded: a double holds a product
// exactly, and `volatile` keeps the steps apart.
float product_plus(float a, float b, float c) {
  const volatile float product = a * b;
  return product + c;
}

Block quantized(const BlockRule& rule, const std::vector<float>& numbers) {
  float lo = numbers[0];
  float hi = numbers[0];
  for (const float x : numbers) {
    if (x < lo) lo = x;
    if (x > hi) hi = x;
  }
  const int count = 1 << rule.bits;
  const int half = count / 2;
  const bool is_gather = rule.formula == BlockFormula::kGatherBlocks;
  const bool is_unsigned = !rule.symmetric || rule.formula == BlockFormula::kMatMulNBits;
  const int least = is_unsigned ? 0 : -half;
  const int last = least + count - 1;
  const auto clamped = [&](double code) { return static_cast<int>(std::clamp<double>(code, least, last)); };
  Block block;
  const auto stored = [&](float scale) { return rule.half_scales ? as_half(scale) : scale; };
  if (rule.symmetric) {
    const float extreme = std::fabs(hi) > std::fabs(lo) ? hi : lo;
    block.scale = stored(-extreme / static_cast<float>(half));
    block.zero = rule.formula == BlockFormula::kMatMulNBits ? half : 0;
  } else {
    lo = std::min(lo, 0.0F);
    hi = std::max(hi, 0.0F);
    const float exact = (hi - lo) / static_cast<float>(count - 1);
    block.scale = stored(exact);
    if (is_gather)
      block.zero = block.scale == 0 ? half : clamped(std::nearbyint(-lo / block.scale));
    else
      block.zero = clamped(std::round(exact == 0 ? lo : 0 - lo / exact));
  }
  const float reciprocal = block.scale == 0 ? 0 : 1 / block.scale;
  const auto zero = static_cast<float>(block.zero);
  for (const float x : numbers) {
    if (is_gather)
      block.codes.push_back(block.scale == 0 ? block.zero : clamped(std::nearbyint(x / block.scale + zero)));
    else if (rule.formula == BlockFormula::kMatMulNBits)
      block.codes.push_back(clamped(std::round(product_plus(x, reciprocal, zero))));
    else
      block.codes.push_back(clamped(std::round(product_plus(x, reciprocal, 0)) + block.zero));
  }
  return block;
}

// What quantize_blocks stores, in either order.
struct Stored {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
  std::vector<uint8_t> zeros;
};

void put(std::vector<uint8_t>& packed, int bits, int64_t at, int code) {
  const int per_byte = 8 / bits;
  packed[static_cast<size_t>(at / per_byte)] |=
      static_cast<uint8_t>((code & ((1 << bits) - 1)) << (at % per_byte * bits));
}

std::vector<float> numbers_of(const BlockedNumbers& matrix, int64_t line, int64_t block) {
  std::vector<float> numbers;
  const int64_t end = std::min(matrix.line_length(), (block + 1) * matrix.block);
  for (int64_t i = block * matrix.block; i < end; ++i)
    numbers.push_back(matrix.numbers[matrix.down ? i * matrix.columns + line : line * matrix.columns + i]);
  return numbers;
}

// Bit for bit; the sign of a zero counts.
bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float one, float other) {
    return std::bit_cast<uint32_t>(one) == std::bit_cast<uint32_t>(other);
  });
}

void check_elements(const std::string& name, const BlockRule& rule, const BlockedNumbers& matrix) {
  const int64_t blocks = matrix.line_blocks();
  const int64_t entries = matrix.lines() * blocks;
  const auto bytes = static_cast<size_t>(ceil_div(matrix.rows * matrix.columns * rule.bits, 8));
  Stored wanted{std::vector<uint8_t>(bytes), std::vector<float>(static_cast<size_t>(entries)),
                std::vector<uint8_t>(static_cast<size_t>(entries))};
  Stored found = wanted;
  for (int64_t line = 0; line < matrix.lines(); ++line) {
    for (int64_t block = 0; block < blocks; ++block) {
      const Block of = quantized(rule, numbers_of(matrix, line, block));
      const auto entry =
          static_cast<size_t>(matrix.down ? block * matrix.columns + line : line * blocks + block);
      wanted.scales[entry] = of.scale;
      if (!rule.symmetric) wanted.zeros[entry] = static_cast<uint8_t>(of.zero);
      for (size_t i = 0; i < of.codes.size(); ++i) {
        const int64_t at = block * matrix.block + static_cast<int64_t>(i);
        put(wanted.codes, rule.bits, matrix.down ? at * matrix.columns + line : line * matrix.columns + at,
            of.codes[i]);
      }
    }
  }
  quantize_blocks(rule, matrix, ElementTarget{found.codes.data(), found.scales.data(), found.zeros.data()});
  CHECK_IN(name,
           found.codes == wanted.codes && equal(found.scales, wanted.scales) && found.zeros == wanted.zeros);
}

void check_lines(const std::string& name, const BlockRule& rule, const BlockedNumbers& matrix, int64_t blocks,
                 int64_t first) {
  const int64_t entries = matrix.lines() * blocks;
  const int64_t block_bytes = matrix.block * rule.bits / 8;
  Stored wanted{std::vector<uint8_t>(static_cast<size_t>(entries * block_bytes)),
                std::vector<float>(static_cast<size_t>(entries)),
                std::vector<uint8_t>(static_cast<size_t>(entries))};
  Stored found = wanted;
  for (int64_t line = 0; line < matrix.lines(); ++line) {
    for (int64_t block = 0; block < matrix.line_blocks(); ++block) {
      const Block of = quantized(rule, numbers_of(matrix, line, block));
      const int64_t entry = line * blocks + first + block;
      wanted.scales[static_cast<size_t>(entry)] = of.scale;
      if (!rule.symmetric) wanted.zeros[static_cast<size_t>(entry)] = static_cast<uint8_t>(of.zero);
      for (size_t i = 0; i < of.codes.size(); ++i)
        put(wanted.codes, rule.bits, entry * matrix.block + static_cast<int64_t>(i), of.codes[i]);
    }
  }
  quantize_blocks(rule, matrix,
                  LineTarget{found.codes.data(), found.scales.data(), found.zeros.data(), blocks, first});
  CHECK_IN(name,
           found.codes == wanted.codes && equal(found.scales, wanted.scales) && found.zeros == wanted.zeros);
}

class Cases {
 public:
  void run(int round) {
    const BlockRule rule{static_cast<BlockFormula>(round % 3), 2 << below(3), below(2) == 0, below(3) == 0};
    const BlockedNumbers shape{nullptr, 1 + below(70), 1 + below(600), int64_t{16} << below(4),
                               below(2) == 0};
    std::vector<float> numbers(static_cast<size_t>(shape.rows * shape.columns));
    const int64_t kind = below(4);
    for (float& number : numbers) number = next(kind);
    const BlockedNumbers matrix{numbers.data(), shape.rows, shape.columns, shape.block, shape.down};
    const std::string name = "round " + std::to_string(round);
    check_elements(name, rule, matrix);
    const int64_t first = below(3);
    check_lines(name, rule, matrix, matrix.line_blocks() + first + below(2), first);
  }

 private:
  int64_t below(int64_t most) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(most)); }

  float next(int64_t kind) {
    if (kind == 0) return below(2) == 0 ? 0.0F : -0.0F;
    // Quotients that end in one half.
    if (kind == 1) return static_cast<float>(below(17) - 8) / 8;
    return kind == 2 ? normal_(random_) : std::ldexp(normal_(random_), static_cast<int>(below(40)) - 20);
  }

  std::mt19937_64 random_{2024};
  std::normal_distribution<float> normal_;
};

// NaN has the first code, and does not count for the scale unless it is the first of its block.
void test_nan() {
  const std::vector<float> numbers{1, std::nanf(""), -2, 0};
  const BlockedNumbers matrix{numbers.data(), 1, 4, 16, false};
  uint8_t codes[4] = {};
  float scale = 0;
  quantize_blocks({BlockFormula::kDequantizeLinear, 8, true, false}, matrix,
                  ElementTarget{codes, &scale, nullptr});
  CHECK(scale == 2.0F / 128 && codes[1] == 0x80 && codes[0] == 64 && codes[2] == 0x80 && codes[3] == 0);
}

// Every number of a code becomes that code, signed zeros and an odd count included.
void test_bnb4() {
  const float fp4[] = {0, 0.0052083333F, 0.6666667F, 1, 0.3333333F, 0.5F, 0.1666667F, 0.25F};
  std::vector<float> numbers;
  for (const float sign : {1.0F, -1.0F})
    for (const float value : fp4) numbers.push_back(3 * sign * value);
  numbers.push_back(-6);
  std::vector<uint8_t> codes(9);
  float magnitudes[2] = {};
  quantize_bnb4(Bnb4Kind::kFp4, numbers.data(), 17, 16, codes.data(), magnitudes);
  const std::vector<uint8_t> wanted{0x01, 0x23, 0x45, 0x67, 0x09, 0xAB, 0xCD, 0xEF, 0xB0};
  CHECK(codes == wanted && magnitudes[0] == 3 && magnitudes[1] == 6);
  const float nf4[] = {
      -1,         -0.6961928F, -0.52507305F, -0.3949175F, -0.28444138F, -0.18477343F, -0.091050036F, 0,
      0.0795803F, 0.1609302F,  0.2461123F,   0.33791524F, 0.44070983F,  0.562617F,    0.72295684F,   1};
  quantize_bnb4(Bnb4Kind::kNf4, nf4, 16, 16, codes.data(), magnitudes);
  for (uint8_t i = 0; i < 8; ++i) CHECK(codes[i] == ((2 * i) << 4 | (2 * i + 1)));
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  Cases cases;
  for (int round = 0; round < 1500; ++round) cases.run(round);
  test_nan();
  test_bnb4();
  return result();
}
