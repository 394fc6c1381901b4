#include "blocks/dequantize_kernels.h"

namespace tilework {

Dequantize dequantize_avx2(BlockType type) { return kRuns[static_cast<uint8_t>(type)]; }

}  // namespace tilework
