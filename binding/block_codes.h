// The JavaScript functions that quantize or clip numbers in one synchronous call.
#pragma once

#include <napi.h>

namespace tilework::binding {

// quantizeBlocks(numbers, rule, matrix, target): lib/native/types.ts has the contract.
Napi::Value quantize_blocks(const Napi::CallbackInfo& info);

// quantizeBnb4(numbers, kind, blockSize, codes, magnitudes)
Napi::Value quantize_bnb4(const Napi::CallbackInfo& info);

// clipMagnitudes(numbers, min, max): in place; the counts of what was moved.
Napi::Value clip_magnitudes(const Napi::CallbackInfo& info);

}  // namespace tilework::binding
