/* DLPack: the structs with which libraries exchange tensors in memory. They are those of header version 1.1
 * (include/dlpack/dlpack.h of the repository dmlc/dlpack, with its names), in C so that any addon can include
 * this file. dlpack/capsule.h says how they pass from addon to addon through JavaScript. */
#ifndef TILEWORK_DLPACK_DLPACK_H_
#define TILEWORK_DLPACK_DLPACK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A change of the major number changes the structs; every version has `version` and `deleter` at
 * the same offsets. */
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1

/* Bits of DLManagedTensorVersioned::flags. */
#define DLPACK_FLAG_BITMASK_READ_ONLY (UINT64_C(1) << 0)
#define DLPACK_FLAG_BITMASK_IS_COPIED (UINT64_C(1) << 1)
/* Sub-byte elements are stored one per byte; without this flag they are packed, the first in the lowest bits.
 */
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (UINT64_C(1) << 2)

/* tilework exchanges CPU memory only. */
enum { kDLCPU = 1 };

typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

typedef struct {
  int32_t device_type;
  int32_t device_id;
} DLDevice;

typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  /* In elements; null for row-major order without gaps. */
  int64_t* strides;
  /* Distance from `data` to the first element. */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  /* May be null. The last owner calls it once, on any thread. */
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#ifdef __cplusplus
}
#endif

#endif
