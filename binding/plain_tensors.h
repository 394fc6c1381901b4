// Plain tensors of a message (wire/plain_tensors.h).
#pragma once

#include <napi.h>

namespace tilework::binding {

// plainTensors(file, rules, start, end, maxTensors): {position, bytesRead, valueBytes, offsets, headers};
// `offsets` has kPlainTensorNumbers numbers per tensor: offset of its values, end of its message, end of its
// header. Errors: ERR_ARGUMENT, ERR_RANGE, and as plain_tensors.
Napi::Value plain_tensors(const Napi::CallbackInfo& info);

}  // namespace tilework::binding
