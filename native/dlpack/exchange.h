// Tensors in memory to DLPack and back. Each side keeps the memory alive for as long as the other side has
// the tensor; both may release it on any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dlpack/capsule.h"
#include "dlpack/dlpack.h"
#include "dtype/dtypes.h"

namespace tilework {

// A row-major tensor without gaps; sub-byte elements are packed.
struct PackedTensor {
  Dtype dtype = Dtype::kUint8;
  std::vector<int64_t> shape = {};
  uint8_t* data = nullptr;
  int64_t bytes = 0;
  // Keeps `data` alive.
  std::shared_ptr<void> owner = nullptr;
  bool read_only = false;
  // Nobody else has this memory.
  bool copied = false;
};

// The two structs of DLPack. The legacy one, from before version 1.0, cannot mark its memory as read-only.
enum class DlpackForm : uint8_t { kVersioned, kLegacy };

// A tensor of `shape` over `bytes` bytes at `data`, ready to be given away in `form`. Aligned memory of a
// mapped file is shared, read-only, and keeps the mapping; all other memory is copied, and so is memory for a
// legacy tensor. Errors: ERR_ARGUMENT where `bytes` is not the size of the shape, ERR_OVERFLOW.
PackedTensor share_or_copy(const uint8_t* data, int64_t bytes, Dtype dtype, std::vector<int64_t> shape,
                           DlpackForm form);

// The receiver owns the result and calls its deleter.
DLManagedTensorVersioned* to_dlpack(PackedTensor tensor);
// Errors: ERR_UNSUPPORTED for read-only memory.
DLManagedTensor* to_legacy_dlpack(PackedTensor tensor);

// The same in a capsule.
DlpackCapsule to_capsule(PackedTensor tensor, DlpackForm form);

// Calls the deleter of a tensor that nobody took out of the capsule, and empties the capsule.
void release_capsule(DlpackCapsule& capsule);

// Calls the deleter of the other side on destruction, if the tensor was taken.
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

// A view of the other side's tensor, which owns it until `take`.
struct DlpackImport {
  PackedTensor tensor;
  std::shared_ptr<DlpackHold> hold;

  // From here on the deleter runs when the last owner of the memory is gone; at once where the values were
  // copied.
  void take() { hold->taken = true; }
};

// Imports the tensor of another library. The memory is shared where the elements are row-major without gaps.
// Other strides, and sub-byte elements stored one per byte, are copied. Strides of 0 repeat elements, so the
// size of the copy is not bounded by the memory of the other side; `max_repeated_bytes` bounds it. Errors:
// ERR_UNSUPPORTED for another major version, another device, several lanes, an element type without a Dtype,
// and packed sub-byte elements with own strides; ERR_ARGUMENT for negative extents and missing memory;
// ERR_OVERFLOW, ERR_RANK, ERR_LIMIT.
DlpackImport from_dlpack(DLManagedTensorVersioned* managed, int64_t max_repeated_bytes);
DlpackImport from_legacy_dlpack(DLManagedTensor* managed, int64_t max_repeated_bytes);

// Imports the tensor of a capsule, which stays in it. Errors: as from_dlpack; ERR_ARGUMENT for an empty
// capsule.
DlpackImport from_capsule(const DlpackCapsule& capsule, int64_t max_repeated_bytes);

// At least one byte of zeroed memory, aligned to 256 bytes as the standard asks.
std::shared_ptr<void> dlpack_memory(int64_t bytes);

}  // namespace tilework
