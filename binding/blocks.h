// The JavaScript functions that convert between numbers and the blocks of quantized tensors, in one
// synchronous call each.
#pragma once

#include <napi.h>

namespace tilework::binding {

// decodeBlocks(type, blocks, dtype, target, resultBytes): lib/native/types.ts has the contract.
Napi::Value decode_blocks(const Napi::CallbackInfo& info);

// encodeBlocks(type, numbers, blocks)
Napi::Value encode_blocks(const Napi::CallbackInfo& info);

// blockKernel(type)
Napi::Value block_kernel(const Napi::CallbackInfo& info);

}  // namespace tilework::binding
