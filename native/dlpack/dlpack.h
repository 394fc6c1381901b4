/* DLPack: how libraries hand each other tensors in memory. The structs are those of header version 1.1
 * (include/dlpack/dlpack.h in the repository dmlc/dlpack, whose names these are), in C so that any addon can
 * include this file. What crosses from addon to addon in JavaScript stands in dlpack/capsule.h. */
#ifndef TILEWORK_DLPACK_DLPACK_H_
#define TILEWORK_DLPACK_DLPACK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A change of the major number changes the structs; every version has `version` and `deleter` in their
 * places. */
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1

/* Bits of DLManagedTensorVersioned::flags. */
#define DLPACK_FLAG_BITMASK_READ_ONLY (UINT64_C(1) << 0)
#define DLPACK_FLAG_BITMASK_IS_COPIED (UINT64_C(1) << 1)
/* Elements of less than a byte have a byte each; without it they are packed, the first in the lowest bits. */
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (UINT64_C(1) << 2)

/* Of the devices only the memory of the process is of use here. */
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
  /* From `data` to the first element. */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  /* May be null. Called once, on any thread, by whoever has the tensor last. */
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
