// The numbers of quantized blocks: float32 by the formula of each block type (dequantize_reference.cc), or
// these rounded once, to nearest with ties to even, to float16 or bfloat16. Whatever bits a block has, it has
// numbers.
//
// Every product of these formulas is exact in float32 for finite scales, and only the sum of types with
// offsets rounds, so the versions differ in the order of operations and not in the result. Signs of zeros,
// infinities and NaN agree as well, but not the payloads of NaN. Source of the formulas: the package gguf
// 0.19.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "blocks/block_type.h"
#include "cpu/isa.h"
#include "dtype/dtypes.h"
#include "memory/streaming_copy.h"

namespace tilework {

// Writes the elements of `count` blocks, which may have any alignment; `numbers` has that of float.
using Dequantize = void (*)(const uint8_t* blocks, int64_t count, float* numbers);

// The kernels of one instruction set, for every block type.
struct DequantizeKernels {
  Isa isa;
  Dequantize (*of)(BlockType type);
};

// The fastest first; the reference stands last.
std::span<const DequantizeKernels> dequantize_kernels();

Dequantize dequantize_reference(BlockType type);
Dequantize dequantize_portable(BlockType type);
Dequantize dequantize_avx2(BlockType type);
Dequantize dequantize_neon(BlockType type);

// Dequantizes `count` blocks to float32, float16 or bfloat16 at any address. Errors: ERR_DTYPE for another
// type.
void dequantize_blocks(BlockType type, const uint8_t* blocks, int64_t count, Dtype to, uint8_t* numbers,
                       Stores stores = Stores::kCached);

// Name of the kernel that dequantize_blocks uses, by native/NAMING.md: "dequantize_q4_k_to_float32_avx2".
std::string dequantize_kernel_name(BlockType type);

}  // namespace tilework
