#include "blocks/dequantize.h"

#include <algorithm>

#include "dtype/cast.h"
#include "error.h"

namespace tilework {
namespace {

constexpr DequantizeKernels kKernels[] = {
#define TILEWORK_DEQUANTIZE_KERNELS(isa, of) {Isa::isa, of},
#include "blocks/dequantize_kernels.def"
#undef TILEWORK_DEQUANTIZE_KERNELS
};

const DequantizeKernels& chosen_kernels() {
  static const DequantizeKernels& chosen =
      *std::find_if(std::begin(kKernels), std::end(kKernels),
                    [](const DequantizeKernels& row) { return can_run(row.isa); });
  return chosen;
}

// Numbers that are dequantized and then rounded while they are in the L1 cache: 8 KiB.
constexpr int64_t kTileElements = 2048;
static_assert(kTileElements % kMaxBlockElements == 0);

void dequantize_rounded(const BlockTypeInfo& info, const uint8_t* blocks, int64_t count, Dtype to,
                        uint8_t* numbers) {
  const Dequantize run = chosen_kernels().of(info.type);
  const Cast cast(Dtype::kFloat32, to, {});
  const int64_t tile_blocks = kTileElements / info.elements;
  const int64_t number_bytes = info_of(to).bits / 8;
  float tile[kTileElements];
  for (int64_t block = 0; block < count; block += tile_blocks) {
    const int64_t here = std::min(tile_blocks, count - block);
    run(blocks + block * info.bytes, here, tile);
    cast.run(reinterpret_cast<const uint8_t*>(tile), numbers + block * info.elements * number_bytes,
             here * info.elements);
  }
}

}  // namespace

std::span<const DequantizeKernels> dequantize_kernels() { return kKernels; }

void dequantize_blocks(BlockType type, const uint8_t* blocks, int64_t count, Dtype to, uint8_t* numbers) {
  const BlockTypeInfo& info = info_of(type);
  if (to == Dtype::kFloat32 && reinterpret_cast<uintptr_t>(numbers) % alignof(float) == 0) {
    chosen_kernels().of(type)(blocks, count, reinterpret_cast<float*>(numbers));
    return;
  }
  if (to != Dtype::kFloat32 && to != Dtype::kFloat16 && to != Dtype::kBfloat16) {
    throw Error(ErrorCode::kDtype, "Blocks have numbers of float32, float16 or bfloat16, not " +
                                       std::string(info_of(to).name) + ".");
  }
  dequantize_rounded(info, blocks, count, to, numbers);
}

std::string dequantize_kernel_name(BlockType type) {
  return std::string("dequantize_") + info_of(type).name + "_to_float32" +
         kernel_suffix(chosen_kernels().isa);
}

}  // namespace tilework
