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

// Numbers that are dequantized and then moved while they are in the L1 cache: 8 KiB.
constexpr int64_t kTileElements = 2048;
static_assert(kTileElements % kMaxBlockElements == 0);

// `count` blocks a tile at a time: numbers that are rounded, not aligned, or streamed past the caches.
void dequantize_by_tiles(const BlockTypeInfo& info, const uint8_t* blocks, int64_t count, Dtype to,
                         uint8_t* numbers, Stores stores) {
  const Dequantize run = chosen_kernels().of(info.type);
  const Cast cast(Dtype::kFloat32, to, {});
  const int64_t tile_blocks = kTileElements / info.elements;
  const int64_t number_bytes = info_of(to).bits / 8;
  alignas(float) uint8_t rounded[kTileElements * sizeof(float)];
  float tile[kTileElements];
  for (int64_t block = 0; block < count; block += tile_blocks) {
    const int64_t elements = std::min(tile_blocks, count - block) * info.elements;
    const auto* exact = reinterpret_cast<const uint8_t*>(tile);
    uint8_t* target = numbers + block * info.elements * number_bytes;
    run(blocks + block * info.bytes, elements / info.elements, tile);
    if (stores == Stores::kCached) {
      cast.run(exact, target, elements);
      continue;
    }
    if (to != Dtype::kFloat32) cast.run(exact, rounded, elements);
    copy_streaming(target, to == Dtype::kFloat32 ? exact : rounded, elements * number_bytes);
  }
  if (stores == Stores::kStreaming) end_streaming();
}

}  // namespace

std::span<const DequantizeKernels> dequantize_kernels() { return kKernels; }

void dequantize_blocks(BlockType type, const uint8_t* blocks, int64_t count, Dtype to, uint8_t* numbers,
                       Stores stores) {
  if (to != Dtype::kFloat32 && to != Dtype::kFloat16 && to != Dtype::kBfloat16) {
    throw Error(ErrorCode::kDtype, "Blocks have numbers of float32, float16 or bfloat16, not " +
                                       std::string(info_of(to).name) + ".");
  }
  const bool is_aligned = reinterpret_cast<uintptr_t>(numbers) % alignof(float) == 0;
  if (to == Dtype::kFloat32 && is_aligned && stores == Stores::kCached) {
    chosen_kernels().of(type)(blocks, count, reinterpret_cast<float*>(numbers));
  } else {
    dequantize_by_tiles(info_of(type), blocks, count, to, numbers, stores);
  }
}

std::string dequantize_kernel_name(BlockType type) {
  return std::string("dequantize_") + info_of(type).name + "_to_float32" +
         kernel_suffix(chosen_kernels().isa);
}

}  // namespace tilework
