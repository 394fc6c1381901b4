// Makes blocks of numbers, for the types that the package gguf 0.19 quantizes, with its bits: float32
// arithmetic, each operation rounded once. Scales are divided by before they are rounded to float16.
//
// clang-format off
// | type       | scale                               | code                                            |
// |------------|-------------------------------------|-------------------------------------------------|
// | q8_0       | max |x| / 127                       | x / d, to nearest, halves away from 0           |
// | q4_0, q5_0 | e / -h, e the x of largest |x|      | min(2h - 1, trunc(x / d + h + 0.5)), h = 8, 16  |
// | q4_1, q5_1 | (max - min) / t, offset min         | min(t, trunc((x - min) / d + 0.5)), t = 15, 31  |
// | tq1_0, tq2_0 | max |x|                           | x / d, to nearest, halves away from 0           |
// | mxfp4      | 2^(floor(log2 max |x|) - 3)         | of the nearest value, the first of two          |
// clang-format on
//
// x / d is x * (1 / d), and 0 where d is 0 or so small that 1 / d is infinite.
#pragma once

#include <cstdint>

#include "blocks/block_type.h"

namespace tilework {

// Whether `quantize_to_blocks` makes blocks of the type.
bool can_quantize(BlockType type);

// Makes `count` blocks of numbers at any address. Returns the index of the first number that its block cannot
// hold, because it is not finite or makes the scale overflow float16; -1 where there is none. Blocks from
// this one on are not written. Errors: ERR_DTYPE for a type that is not quantized.
int64_t quantize_to_blocks(BlockType type, const float* numbers, int64_t count, uint8_t* blocks);

}  // namespace tilework
