// Plain tensors of a message, as wire/plain_tensors.h finds them.
#pragma once

#include <napi.h>

namespace tilework::binding {

// plainTensors(file, rules, start, end, most): {position, bytesRead, valueBytes, places, headers}; `places`
// has three numbers a tensor: offset of its values, end of its message, end of its header. Errors:
// ERR_ARGUMENT, ERR_RANGE, those of plain_tensors.
Napi::Value plain_tensors(const Napi::CallbackInfo& info);

}  // namespace tilework::binding
