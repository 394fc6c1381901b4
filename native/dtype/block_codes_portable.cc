// Block quantizers for any CPU, written for compilers to vectorise. Compiled without fused multiply-add.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "dtype/block_codes.h"
#include "dtype/cast.h"
#include "dtype/scaling_numbers.h"

namespace tilework {
namespace {

// Columns that are quantized at a time: the extremes of a strip stay in the first cache, and its rows in the
// second.
constexpr int64_t kStrip = 256;
// Bytes per line that are packed at a time, so that 8 lines are one transposition of 8 x 8 bytes.
constexpr int64_t kPackedBytes = 8;
constexpr int64_t kMaxPackedCodes = kPackedBytes * 8 / 2;

// The comparisons are false for NaN, which keeps what was there.
void extend(float value, float& low, float& high) {
  low = value < low ? value : low;
  high = value > high ? value : high;
}

// What is not positive, NaN included, becomes 0.
float clamp_zero(float value, float most) {
  const float at_least_0 = value > 0 ? value : 0;
  return at_least_0 < most ? at_least_0 : most;
}

// Least and last code.
struct CodeRange {
  float least;
  float last;
};

CodeRange codes_of(const BlockRule& rule) {
  const float count = static_cast<float>(1 << rule.bits);
  const bool is_signed = rule.symmetric && rule.formula != BlockFormula::kMatMulNBits;
  return is_signed ? CodeRange{-count / 2, count / 2 - 1} : CodeRange{0, count - 1};
}

// What the loops over numbers take, one for each line of a strip.
struct StripParameters {
  float factors[kStrip];
  float zeros[kStrip];
};

// Scales of extremes, not yet rounded to the type of the weight.
float scale_of(const BlockRule& rule, float low, float high) {
  const float half = static_cast<float>(1 << (rule.bits - 1));
  if (!rule.symmetric) return ((high > 0 ? high : 0) - (low < 0 ? low : 0)) / (2 * half - 1);
  const float extreme = std::fabs(high) > std::fabs(low) ? high : low;
  return rule.formula == BlockFormula::kGatherBlocks ? extreme / -half : -extreme / half;
}

// The zero point of an asymmetric block from its scale before and after rounding.
float zero_of(const BlockRule& rule, float low, float exact_scale, float scale) {
  const float half = static_cast<float>(1 << (rule.bits - 1));
  const float least = low < 0 ? low : 0;
  if (rule.formula != BlockFormula::kGatherBlocks)
    return clamp_zero(std::round(exact_scale == 0 ? least : -(least / exact_scale)), 2 * half - 1);
  return scale == 0 ? half : clamp_zero(std::nearbyint(-least / scale), 2 * half - 1);
}

void round_to_half(float* scales, int64_t count) {
  static const Cast to_half(Dtype::kFloat32, Dtype::kFloat16, {});
  static const Cast to_float(Dtype::kFloat16, Dtype::kFloat32, {});
  uint16_t halves[kStrip];
  to_half.run(reinterpret_cast<const uint8_t*>(scales), reinterpret_cast<uint8_t*>(halves), count);
  to_float.run(reinterpret_cast<const uint8_t*>(halves), reinterpret_cast<uint8_t*>(scales), count);
}

// Extremes of up to kStrip blocks.
struct StripExtremes {
  float low[kStrip];
  float high[kStrip];
};

// Stores scales and zero points of `count` blocks, `stride` entries apart.
void store_parameters(const BlockRule& rule, const StripExtremes& extremes, int64_t count, float* scales,
                      uint8_t* zeros, int64_t stride, StripParameters& result) {
  float exact[kStrip];
  float rounded[kStrip];
  for (int64_t i = 0; i < count; ++i) exact[i] = scale_of(rule, extremes.low[i], extremes.high[i]);
  std::copy_n(exact, count, rounded);
  if (rule.half_scales) round_to_half(rounded, count);
  const bool is_gather = rule.formula == BlockFormula::kGatherBlocks;
  const float middle =
      rule.formula == BlockFormula::kMatMulNBits ? static_cast<float>(1 << (rule.bits - 1)) : 0;
  for (int64_t i = 0; i < count; ++i) {
    const float scale = rounded[i];
    scales[i * stride] = scale;
    result.zeros[i] = rule.symmetric ? middle : zero_of(rule, extremes.low[i], exact[i], scale);
    if (!rule.symmetric) zeros[i * stride] = static_cast<uint8_t>(result.zeros[i]);
    // Quotients and products of a block of scale 0 are 0.
    if (is_gather)
      result.factors[i] = scale == 0 ? std::numeric_limits<float>::infinity() : scale;
    else
      result.factors[i] = scale == 0 ? 0 : 1 / scale;
  }
}

// Adding 0.5 itself would round the number before 0.5 to 1.
constexpr float kBeforeHalf = 0x1.FFFFFEp-2F;

// To the nearest whole number, halves away from zero.
int32_t round_away(float value) { return static_cast<int32_t>(value + std::copysign(kBeforeHalf, value)); }

int32_t round_away_positive(float value) { return static_cast<int32_t>(value + kBeforeHalf); }

// The code of a number. Written without branches, so that compilers vectorise the loops around it.
template <BlockFormula formula>
uint8_t code_of(float value, float factor, float zero, CodeRange codes) {
  if constexpr (formula == BlockFormula::kMatMulNBits) {
    const float product = value * factor;
    return static_cast<uint8_t>(round_away_positive(clamp_zero(product + zero, codes.last)));
  } else if constexpr (formula == BlockFormula::kDequantizeLinear) {
    // Beyond these bounds no zero point leads back to a code between the ends.
    constexpr float kBeyond = 512;
    const float product = value * factor;
    const float raised = product > -kBeyond ? product : -kBeyond;
    const float bounded = raised < kBeyond ? raised : kBeyond;
    const int32_t code = round_away(bounded) + static_cast<int32_t>(zero);
    const auto least = static_cast<int32_t>(codes.least);
    const auto last = static_cast<int32_t>(codes.last);
    return static_cast<uint8_t>(code < least ? least : code > last ? last : code);
  } else {
    const float sum = value / factor + zero;
    const float raised = sum > codes.least ? sum : codes.least;
    const float bounded = raised < codes.last ? raised : codes.last;
    return static_cast<uint8_t>(static_cast<int32_t>(nearest_even(bounded)));
  }
}

// Codes of `count` numbers, one byte each. Factors and zero points are those of each number, or one for all.
template <BlockFormula formula, int stride>
void store_codes(const float* numbers, int64_t count, const float* factors, const float* zeros,
                 CodeRange codes, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = code_of<formula>(numbers[i], factors[i * stride], zeros[i * stride], codes);
}

template <int stride>
void store_codes(BlockFormula formula, const float* numbers, int64_t count, const float* factors,
                 const float* zeros, CodeRange codes, uint8_t* to) {
  switch (formula) {
    case BlockFormula::kMatMulNBits:
      return store_codes<BlockFormula::kMatMulNBits, stride>(numbers, count, factors, zeros, codes, to);
    case BlockFormula::kDequantizeLinear:
      return store_codes<BlockFormula::kDequantizeLinear, stride>(numbers, count, factors, zeros, codes, to);
    case BlockFormula::kGatherBlocks:
      return store_codes<BlockFormula::kGatherBlocks, stride>(numbers, count, factors, zeros, codes, to);
  }
}

// Packs codes without gaps. Slots of the last byte that no code fills are 0.
void pack(const uint8_t* codes, int64_t count, int bits, uint8_t* to) {
  if (bits == 8) {
    std::copy_n(codes, count, to);
    return;
  }
  const int64_t per_byte = 8 / bits;
  const int mask = (1 << bits) - 1;
  const int64_t whole = count / per_byte;
  if (bits == 4) {
    for (int64_t i = 0; i < whole; ++i)
      to[i] = static_cast<uint8_t>((codes[2 * i] & mask) | (codes[2 * i + 1] << 4));
  } else {
    for (int64_t i = 0; i < whole; ++i) {
      const uint8_t* four = codes + 4 * i;
      to[i] = static_cast<uint8_t>((four[0] & mask) | ((four[1] & mask) << 2) | ((four[2] & mask) << 4) |
                                   (four[3] << 6));
    }
  }
  int last = 0;
  for (int64_t i = whole * per_byte; i < count; ++i)
    last |= (codes[i] & mask) << ((i - whole * per_byte) * bits);
  if (whole * per_byte < count) to[whole] = static_cast<uint8_t>(last);
}

// Extremes of one block along a row. The lanes start with the first number, so that the first of -0 and +0
// stays where all numbers are 0; otherwise the sign of a zero has no effect.
void extremes_along(const float* numbers, int64_t count, float& least, float& most) {
  constexpr int kLanes = 8;
  float low[kLanes];
  float high[kLanes];
  std::fill_n(low, kLanes, numbers[0]);
  std::fill_n(high, kLanes, numbers[0]);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) extend(numbers[i + lane], low[lane], high[lane]);
  for (; i < count; ++i) extend(numbers[i], low[0], high[0]);
  for (int lane = 1; lane < kLanes; ++lane) {
    low[0] = low[lane] < low[0] ? low[lane] : low[0];
    high[0] = high[lane] > high[0] ? high[lane] : high[0];
  }
  least = low[0];
  most = high[0];
}

// The blocks of a strip of columns: `rows` rows of `count` columns.
struct Strip {
  const float* numbers;
  int64_t rows;
  int64_t count;
  int64_t row_stride;
};

void extremes_down(const Strip& strip, StripExtremes& extremes) {
  std::copy_n(strip.numbers, strip.count, extremes.low);
  std::copy_n(strip.numbers, strip.count, extremes.high);
  for (int64_t row = 1; row < strip.rows; ++row) {
    const float* numbers = strip.numbers + row * strip.row_stride;
    for (int64_t i = 0; i < strip.count; ++i) extend(numbers[i], extremes.low[i], extremes.high[i]);
  }
}

// Calls visit(row, strip, column) for the strips of all blocks that run down.
template <class Visit>
void for_each_strip(const BlockedNumbers& matrix, Visit visit) {
  for (int64_t row = 0; row < matrix.rows; row += matrix.block) {
    const int64_t rows = std::min(matrix.block, matrix.rows - row);
    for (int64_t column = 0; column < matrix.columns; column += kStrip) {
      visit(row,
            Strip{matrix.numbers + row * matrix.columns + column, rows,
                  std::min(kStrip, matrix.columns - column), matrix.columns},
            column);
    }
  }
}

// Calls visit(row, block, numbers, count) for all blocks that run along rows.
template <class Visit>
void for_each_block(const BlockedNumbers& matrix, Visit visit) {
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t start = 0; start < matrix.columns; start += matrix.block) {
      visit(row, start / matrix.block, matrix.numbers + row * matrix.columns + start,
            std::min(matrix.block, matrix.columns - start));
    }
  }
}

// Transposes 8 x 8 bytes: byte i of word j becomes byte j of word i.
void transpose_bytes(uint64_t (&words)[8]) {
  const auto exchange = [&](int distance, int shift, uint64_t mask) {
    for (int i = 0; i < 8; ++i) {
      if ((i & distance) != 0) continue;
      const uint64_t differ = ((words[i] >> shift) ^ words[i + distance]) & mask;
      words[i] ^= differ << shift;
      words[i + distance] ^= differ;
    }
  };
  exchange(4, 32, 0x00000000FFFFFFFF);
  exchange(2, 16, 0x0000FFFF0000FFFF);
  exchange(1, 8, 0x00FF00FF00FF00FF);
}

// The codes of up to kPackedBytes bytes of each line of a strip: [code][line].
struct CodeRows {
  uint8_t codes[kMaxPackedCodes][kStrip];
  uint8_t packed[kPackedBytes][kStrip];
};

// Packs `per_byte` rows of codes into one row of bytes.
void pack_rows(const uint8_t (*codes)[kStrip], int bits, uint8_t* to) {
  if (bits == 4) {
    for (int64_t i = 0; i < kStrip; ++i)
      to[i] = static_cast<uint8_t>((codes[0][i] & 15) | (codes[1][i] << 4));
  } else if (bits == 2) {
    for (int64_t i = 0; i < kStrip; ++i)
      to[i] = static_cast<uint8_t>((codes[0][i] & 3) | ((codes[1][i] & 3) << 2) | ((codes[2][i] & 3) << 4) |
                                   (codes[3][i] << 6));
  } else {
    std::copy_n(codes[0], kStrip, to);
  }
}

// Packs the codes of each line and stores them, `bytes` bytes a line.
void store_lines(CodeRows& rows, int bits, int64_t bytes, int64_t lines, uint8_t* to, int64_t line_bytes) {
  const int64_t per_byte = 8 / bits;
  for (int64_t byte = 0; byte < bytes; ++byte)
    pack_rows(rows.codes + byte * per_byte, bits, rows.packed[byte]);
  for (int64_t first = 0; first < lines; first += 8) {
    uint64_t words[8] = {};
    for (int64_t byte = 0; byte < bytes; ++byte) std::memcpy(&words[byte], rows.packed[byte] + first, 8);
    transpose_bytes(words);
    const int64_t count = std::min<int64_t>(8, lines - first);
    uint8_t* place = to + first * line_bytes;
    for (int64_t line = 0; line < count; ++line) {
      if (bytes == kPackedBytes)
        std::memcpy(place + line * line_bytes, &words[line], kPackedBytes);
      else
        std::memcpy(place + line * line_bytes, &words[line], static_cast<size_t>(bytes));
    }
  }
}

// Codes of one strip of blocks that run down, transposed to lines.
void store_strip(const BlockRule& rule, const Strip& strip, const StripParameters& parameters,
                 int64_t block_bytes, uint8_t* to, int64_t line_bytes) {
  static_assert(std::endian::native == std::endian::little, "bytes of a word are stored in order");
  const CodeRange codes = codes_of(rule);
  const int64_t in_chunk = kPackedBytes * 8 / rule.bits;
  CodeRows rows;
  for (int64_t byte = 0; byte < block_bytes; byte += kPackedBytes) {
    const int64_t first = byte / kPackedBytes * in_chunk;
    for (int64_t i = 0; i < in_chunk; ++i) {
      if (first + i < strip.rows) {
        store_codes<1>(rule.formula, strip.numbers + (first + i) * strip.row_stride, strip.count,
                       parameters.factors, parameters.zeros, codes, rows.codes[i]);
      } else {
        std::fill_n(rows.codes[i], kStrip, uint8_t{0});
      }
    }
    store_lines(rows, rule.bits, std::min(kPackedBytes, block_bytes - byte), strip.count, to + byte,
                line_bytes);
  }
}

constexpr float kNf4Thresholds[] = {-0.8480964004993439F,   -0.6106329262256622F,  -0.4599952697753906F,
                                    -0.33967943489551544F,  -0.23460740596055984F, -0.13791173323988914F,
                                    -0.045525018125772476F, 0.03979014977812767F,  0.1202552504837513F,
                                    0.2035212516784668F,    0.2920137718319893F,   0.3893125355243683F,
                                    0.5016634166240692F,    0.6427869200706482F,   0.8614784181118011F};
constexpr float kFp4Thresholds[] = {0.00260417F, 0.0859375F, 0.20833333F, 0.29166667F,
                                    0.4166667F,  0.583333F,  0.8333333F};
// The number of thresholds below a magnitude as the code of the number that stands for it.
constexpr uint8_t kFp4Codes[] = {0, 1, 6, 7, 4, 5, 2, 3};
constexpr uint8_t kFp4Sign = 8;

// Numbers whose codes are computed at a time.
constexpr int64_t kBnb4Chunk = 256;

template <size_t count>
int32_t thresholds_below(const float (&thresholds)[count], float value) {
  int32_t below = 0;
  for (const float threshold : thresholds) below += value > threshold ? 1 : 0;
  return below;
}

// One code per byte.
void bnb4_codes(Bnb4Kind kind, const float* numbers, int64_t count, float factor, uint8_t* codes) {
  if (kind == Bnb4Kind::kNf4) {
    for (int64_t i = 0; i < count; ++i)
      codes[i] = static_cast<uint8_t>(thresholds_below(kNf4Thresholds, numbers[i] * factor));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const float value = numbers[i] * factor;
    codes[i] =
        static_cast<uint8_t>(thresholds_below(kFp4Thresholds, std::fabs(value)) | (value < 0 ? kFp4Sign : 0));
  }
  for (int64_t i = 0; i < count; ++i)
    codes[i] = static_cast<uint8_t>(kFp4Codes[codes[i] % kFp4Sign] | (codes[i] & kFp4Sign));
}

float greatest_magnitude(const float* numbers, int64_t count) {
  constexpr int kLanes = 8;
  float most[kLanes] = {};
  int64_t i = 0;
  const auto extend_lane = [](float value, float& lane) {
    const float magnitude = std::fabs(value);
    lane = magnitude > lane ? magnitude : lane;
  };
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) extend_lane(numbers[i + lane], most[lane]);
  for (; i < count; ++i) extend_lane(numbers[i], most[0]);
  return *std::max_element(most, most + kLanes);
}

}  // namespace

void quantize_blocks(const BlockRule& rule, const BlockedNumbers& matrix, const LineTarget& target) {
  const int64_t block_bytes = matrix.block * rule.bits / 8;
  const int64_t line_bytes = target.blocks * block_bytes;
  StripExtremes extremes;
  StripParameters parameters;
  if (matrix.down) {
    for_each_strip(matrix, [&](int64_t row, const Strip& strip, int64_t column) {
      const int64_t block = target.first + row / matrix.block;
      const int64_t entry = column * target.blocks + block;
      extremes_down(strip, extremes);
      store_parameters(rule, extremes, strip.count, target.scales + entry, target.zeros + entry,
                       target.blocks, parameters);
      store_strip(rule, strip, parameters, block_bytes,
                  target.codes + column * line_bytes + block * block_bytes, line_bytes);
    });
    return;
  }
  const CodeRange range = codes_of(rule);
  std::vector<uint8_t> codes(static_cast<size_t>(matrix.block));
  for_each_block(matrix, [&](int64_t row, int64_t block, const float* numbers, int64_t count) {
    const int64_t entry = row * target.blocks + target.first + block;
    extremes_along(numbers, count, extremes.low[0], extremes.high[0]);
    store_parameters(rule, extremes, 1, target.scales + entry, target.zeros + entry, 1, parameters);
    store_codes<0>(rule.formula, numbers, count, parameters.factors, parameters.zeros, range, codes.data());
    std::fill(codes.begin() + count, codes.end(), uint8_t{0});
    pack(codes.data(), matrix.block, rule.bits, target.codes + entry * block_bytes);
  });
}

void quantize_blocks(const BlockRule& rule, const BlockedNumbers& matrix, const ElementTarget& target) {
  const CodeRange range = codes_of(rule);
  std::vector<uint8_t> codes(static_cast<size_t>(matrix.rows * matrix.columns));
  StripExtremes extremes;
  StripParameters parameters;
  if (matrix.down) {
    for_each_strip(matrix, [&](int64_t row, const Strip& strip, int64_t column) {
      const int64_t entry = row / matrix.block * matrix.columns + column;
      extremes_down(strip, extremes);
      store_parameters(rule, extremes, strip.count, target.scales + entry, target.zeros + entry, 1,
                       parameters);
      for (int64_t i = 0; i < strip.rows; ++i) {
        store_codes<1>(rule.formula, strip.numbers + i * strip.row_stride, strip.count, parameters.factors,
                       parameters.zeros, range, codes.data() + (row + i) * matrix.columns + column);
      }
    });
  } else {
    for_each_block(matrix, [&](int64_t row, int64_t block, const float* numbers, int64_t count) {
      const int64_t entry = row * matrix.line_blocks() + block;
      extremes_along(numbers, count, extremes.low[0], extremes.high[0]);
      store_parameters(rule, extremes, 1, target.scales + entry, target.zeros + entry, 1, parameters);
      store_codes<0>(rule.formula, numbers, count, parameters.factors, parameters.zeros, range,
                     codes.data() + (numbers - matrix.numbers));
    });
  }
  pack(codes.data(), static_cast<int64_t>(codes.size()), rule.bits, target.codes);
}

void quantize_bnb4(Bnb4Kind kind, const float* numbers, int64_t count, int64_t block, uint8_t* codes,
                   float* magnitudes) {
  for (int64_t start = 0; start < count; start += block) {
    const int64_t end = std::min(start + block, count);
    const float greatest = greatest_magnitude(numbers + start, end - start);
    magnitudes[start / block] = greatest;
    const float factor = greatest == 0 ? 0 : 1 / greatest;
    for (int64_t first = start; first < end; first += kBnb4Chunk) {
      uint8_t chunk[kBnb4Chunk + 1];
      const int64_t length = std::min(kBnb4Chunk, end - first);
      bnb4_codes(kind, numbers + first, length, factor, chunk);
      if (length % 2 == 1) {
        constexpr float kZero = 0;
        bnb4_codes(kind, &kZero, 1, 1, chunk + length);
      }
      for (int64_t i = 0; i < length; i += 2)
        codes[(first + i) / 2] = static_cast<uint8_t>(chunk[i] << 4 | chunk[i + 1]);
    }
  }
}

}  // namespace tilework
