// Codes of weights in blocks: a block of consecutive numbers of a matrix has one scale and one zero point.
// Every operation is rounded to float32, as in the quantizers of onnxruntime, whose results these equal bit
// for bit.
#pragma once

#include <cstdint>

namespace tilework {

// How numbers become codes, by the operator that decodes them. With n = 2^bits, lo and hi the extremes of a
// block:
//
// clang-format off
// | formula           | symmetric scale      | otherwise: scale, zero point                       | code                                    |
// |-------------------|----------------------|----------------------------------------------------|-----------------------------------------|
// | kMatMulNBits      | -extreme / (n / 2)   | (hi - lo) / (n - 1), round(-lo / scale)            | round(x * (1 / scale) + zero), 0..n-1   |
// | kDequantizeLinear | -extreme / (n / 2)   | the same                                           | round(x * (1 / scale)) + zero; signed   |
// |                   |                      |                                                    | where symmetric                         |
// | kGatherBlocks     | extreme / -(n / 2)   | the same, from the rounded scale; n / 2 for scale 0| round(x / scale + zero); signed where   |
// |                   |                      |                                                    | symmetric                               |
// clang-format on
//
// The extreme is that of lo and hi with the larger magnitude. Without symmetry lo is at most and hi at least
// 0. The first two round halves away from zero, the third to even. Codes are clamped; NaN has the first code.
enum class BlockFormula : uint8_t { kMatMulNBits, kDequantizeLinear, kGatherBlocks };

struct BlockRule {
  BlockFormula formula;
  // 2, 4 or 8.
  int bits;
  bool symmetric;
  // Whether scales are rounded to float16 before they are used.
  bool half_scales;
};

// A row-major matrix. Blocks start at the first row or column, and the last may be shorter.
struct BlockedNumbers {
  const float* numbers;
  int64_t rows;
  int64_t columns;
  // Numbers of a block, at least 1.
  int64_t block;
  // Whether blocks run down the columns, or along the rows.
  bool down;

  // Columns or rows, each cut into blocks.
  int64_t lines() const { return down ? columns : rows; }
  int64_t line_length() const { return down ? rows : columns; }
  int64_t line_blocks() const { return (line_length() + block - 1) / block; }
};

// Where codes of blocks are stored: line by line, and each block in whole bytes.
struct LineTarget {
  // [lines, blocks, block * bits / 8], the first code in the lowest bits; codes beyond the end of a line are
  // 0.
  uint8_t* codes;
  // [lines, blocks]; zero points are not written where symmetric.
  float* scales;
  uint8_t* zeros;
  // Blocks of a line, and the one that the numbers start with.
  int64_t blocks;
  int64_t first;
};

// Where codes keep the order of their numbers.
struct ElementTarget {
  // Packed without gaps between rows, the first code in the lowest bits.
  uint8_t* codes;
  // [rows, line_blocks()], or [line_blocks(), columns] where blocks run down; zero points as above.
  float* scales;
  uint8_t* zeros;
};

// `block * bits` is a multiple of 8.
void quantize_blocks(const BlockRule& rule, const BlockedNumbers& matrix, const LineTarget& target);
void quantize_blocks(const BlockRule& rule, const BlockedNumbers& matrix, const ElementTarget& target);

// The codes of bitsandbytes: 4-bit numbers relative to the greatest magnitude of a block of `block`
// consecutive numbers. kNf4: the number of thresholds below x * (1 / magnitude). kFp4: a sign and a number of
// 3 bits.
enum class Bnb4Kind : uint8_t { kFp4, kNf4 };

// Stores the greatest magnitude of each block, and two codes per byte, the first in the upper bits. `block`
// is even. The code beside an odd last one is that of 0.
void quantize_bnb4(Bnb4Kind kind, const float* numbers, int64_t count, int64_t block, uint8_t* codes,
                   float* magnitudes);

}  // namespace tilework
