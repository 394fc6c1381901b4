/* The capsule that carries a DLPack tensor through JavaScript: an object with this type tag
 * (napi_check_object_type_tag) whose native pointer (napi_unwrap) is a DlpackCapsule. The consumer sets
 * `tensor` to null and calls the deleter of the tensor when it is done. If nobody takes the tensor, the
 * capsule calls the deleter when it is garbage-collected. The names are those of Python's capsules. C, so
 * that any addon can include it. */
#ifndef TILEWORK_DLPACK_CAPSULE_H_
#define TILEWORK_DLPACK_CAPSULE_H_

#include <stdint.h>

#define DLPACK_CAPSULE_TAG_LOWER UINT64_C(0x646c7061636b2d63)
#define DLPACK_CAPSULE_TAG_UPPER UINT64_C(0x617073756c652031)

/* Names of capsules with a DLManagedTensorVersioned and with a DLManagedTensor. */
#define DLPACK_CAPSULE_VERSIONED "dltensor_versioned"
#define DLPACK_CAPSULE_LEGACY "dltensor"

typedef struct {
  /* One of the two names above; valid while the capsule lives. */
  const char* name;
  /* Null once the tensor was taken. */
  void* tensor;
} DlpackCapsule;

#endif
