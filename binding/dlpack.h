// DLPack tensors in capsules, as dlpack/capsule.h has them.
#pragma once

#include <napi.h>

namespace tilework::binding {

// exportDlpack(bytes, dtype, shape, legacy): a capsule. Bytes of a map are shared, read-only, where they are
// aligned for their type; all others are copied. Errors: ERR_ARGUMENT.
Napi::Value export_dlpack(const Napi::CallbackInfo& info);

// importDlpack(capsule): {bytes, dtype, shape, readOnly, copied}. The tensor is taken out of the capsule; its
// deleter is called when `bytes` goes. Errors: ERR_ARGUMENT for what is no capsule, or an empty one, and
// those of from_dlpack.
Napi::Value import_dlpack(const Napi::CallbackInfo& info);

}  // namespace tilework::binding
