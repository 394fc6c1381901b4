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

// Calls the other side's deleter when it goes, if the tensor was taken by then.
struct DlpackHold {
  DlpackHold(void* tensor, void (*call_deleter)(void*)) : tensor(tensor), call_deleter(call_deleter) {}
  DlpackHold(const DlpackHold&) = delete;
  DlpackHold& operator=(const DlpackHold&) = delete;
  ~DlpackHold() {
    if (taken) call_deleter(tensor);
  }

  void* tensor;
  void (*call_deleter)(void*);
  bool taken = false;
};

// A tensor of the other side as it would be here. It is still theirs, and stays so if this goes without
// `take`.
struct DlpackImport {
  PackedTensor tensor;
  std::shared_ptr<DlpackHold> hold;

  // From here on the deleter is called when the last owner of the memory goes, at once where the values were
  // copied.
  void take() { hold->taken = true; }
};

// What is in another library's tensor. Values are copied for strides with gaps or another order, and for
// elements of less than a byte with a byte each; else the memory is the other side's. `max_repeated_bytes`
// bounds a copy that has elements more than once, as strides of 0 make them: no memory of the other side
// bounds that. Errors: ERR_UNSUPPORTED for another major version, another device, more than one lane, a type
// that has no Dtype, packed elements with strides of their own; ERR_ARGUMENT for negative extents and missing
// memory; ERR_OVERFLOW, ERR_RANK, ERR_LIMIT.
DlpackImport from_dlpack(DLManagedTensorVersioned* managed, int64_t max_repeated_bytes);
DlpackImport from_legacy_dlpack(DLManagedTensor* managed, int64_t max_repeated_bytes);

// Zeroed memory at a multiple of the 256 bytes that the standard asks for; at least one byte.
std::shared_ptr<void> dlpack_memory(int64_t bytes);

}  // namespace tilework
