// Tensors in memory to DLPack and back. Memory is held by whoever owns it, for as long as the other side has
// the tensor; both sides may let go on any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dlpack/dlpack.h"
#include "dtype/dtypes.h"

namespace tilework {

// More axes than any library has.
inline constexpr int32_t kMaxDlpackAxes = 64;

// A row-major tensor without gaps; elements of less than a byte are packed.
struct PackedTensor {
  Dtype dtype = Dtype::kUint8;
  std::vector<int64_t> shape = {};
  uint8_t* data = nullptr;
  int64_t bytes = 0;
  // Keeps `data`.
  std::shared_ptr<void> owner = nullptr;
  bool read_only = false;
  // The memory is nobody else's.
  bool copied = false;
};

// Both are the receiver's, who calls the deleter.
DLManagedTensorVersioned* to_dlpack(PackedTensor tensor);
// This struct cannot say that its memory is not to be written to. Errors: ERR_UNSUPPORTED for such memory.
DLManagedTensor* to_legacy_dlpack(PackedTensor tensor);

// Takes a tensor over: its deleter is called when the owner of the result goes, at once where the values had
// to be copied, which is so for strides with gaps or another order, and for elements of less than a byte with
// a byte each. Nothing is taken where an error is thrown. Errors: ERR_UNSUPPORTED for another major version,
// another device, more than one lane, a type that has no Dtype, packed elements with strides of their own;
// ERR_ARGUMENT for negative extents and missing memory; ERR_OVERFLOW, ERR_RANK.
PackedTensor from_dlpack(DLManagedTensorVersioned* managed);
PackedTensor from_legacy_dlpack(DLManagedTensor* managed);

// Zeroed memory at a multiple of the 256 bytes that the standard asks for; at least one byte.
std::shared_ptr<void> dlpack_memory(int64_t bytes);

}  // namespace tilework
