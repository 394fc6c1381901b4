// DLPack tensors in capsules (dlpack/capsule.h).
#pragma once

#include <napi.h>

namespace tilework::binding {

// exportDlpack(bytes, dtype, shape, legacy): a capsule; share_or_copy decides about the memory. Errors:
// ERR_ARGUMENT, ERR_DTYPE, ERR_OVERFLOW.
Napi::Value export_dlpack(const Napi::CallbackInfo& info);

// importDlpack(capsule, maxBytes): {bytes, dtype, shape, readOnly, copied}. Takes the tensor out of the
// capsule; its deleter runs when `bytes` is collected. Errors: ERR_ARGUMENT for anything but a full capsule,
// and those of from_dlpack.
Napi::Value import_dlpack(const Napi::CallbackInfo& info);

}  // namespace tilework::binding
