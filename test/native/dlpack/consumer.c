/* An addon in C that knows nothing of tilework but dlpack/capsule.h: it takes tensors out of capsules, reads
 * and describes them, releases them on another thread, and makes capsules of its own. */
#include <node_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "dlpack/capsule.h"
#include "dlpack/dlpack.h"

static const napi_type_tag kTag = {DLPACK_CAPSULE_TAG_LOWER, DLPACK_CAPSULE_TAG_UPPER};
static int deleted = 0;

static DlpackCapsule* capsule_of(napi_env env, napi_value value) {
  bool tagged = false;
  void* capsule = NULL;
  if (napi_check_object_type_tag(env, value, &kTag, &tagged) != napi_ok || !tagged) return NULL;
  return napi_unwrap(env, value, &capsule) == napi_ok ? capsule : NULL;
}

static void set_number(napi_env env, napi_value object, const char* name, double number) {
  napi_value value = NULL;
  napi_create_double(env, number, &value);
  napi_set_named_property(env, object, name, value);
}

static napi_value numbers(napi_env env, const int64_t* values, int32_t count) {
  napi_value array = NULL;
  napi_create_array(env, &array);
  for (int32_t i = 0; i < count; ++i) {
    napi_value value = NULL;
    napi_create_int64(env, values[i], &value);
    napi_set_element(env, array, (uint32_t)i, value);
  }
  return array;
}

static int64_t byte_count(const DLTensor* tensor) {
  int64_t elements = 1;
  for (int32_t axis = 0; axis < tensor->ndim; ++axis) elements *= tensor->shape[axis];
  return (elements * tensor->dtype.bits + 7) / 8;
}

static void* let_go(void* tensor) {
  DLManagedTensorVersioned* managed = tensor;
  managed->deleter(managed);
  return NULL;
}

static void release(const char* name, void* tensor) {
  if (strcmp(name, DLPACK_CAPSULE_VERSIONED) == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, let_go, tensor);
    pthread_join(thread, NULL);
  } else {
    DLManagedTensor* managed = tensor;
    managed->deleter(managed);
  }
}

/* consume(capsule): what the tensor says of itself and a copy of its bytes; undefined where there is none. */
static napi_value consume(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument = NULL;
  napi_get_cb_info(env, info, &count, &argument, NULL, NULL);
  DlpackCapsule* capsule = capsule_of(env, argument);
  if (capsule == NULL || capsule->tensor == NULL) return NULL;
  void* tensor = capsule->tensor;
  capsule->tensor = NULL;
  const int versioned = strcmp(capsule->name, DLPACK_CAPSULE_VERSIONED) == 0;
  const DLTensor* found = versioned ? &((DLManagedTensorVersioned*)tensor)->dl_tensor : &((DLManagedTensor*)tensor)->dl_tensor;
  napi_value result = NULL;
  napi_value bytes = NULL;
  void* memory = NULL;
  napi_create_object(env, &result);
  set_number(env, result, "code", found->dtype.code);
  set_number(env, result, "bits", found->dtype.bits);
  set_number(env, result, "lanes", found->dtype.lanes);
  set_number(env, result, "device", found->device.device_type);
  set_number(env, result, "flags", versioned ? (double)((DLManagedTensorVersioned*)tensor)->flags : -1);
  set_number(env, result, "major", versioned ? ((DLManagedTensorVersioned*)tensor)->version.major : 0);
  napi_set_named_property(env, result, "shape", numbers(env, found->shape, found->ndim));
  napi_set_named_property(env, result, "strides", numbers(env, found->strides, found->ndim));
  const size_t size = (size_t)byte_count(found);
  napi_create_arraybuffer(env, size, &memory, &bytes);
  if (size > 0) memcpy(memory, (const char*)found->data + found->byte_offset, size);
  napi_set_named_property(env, result, "bytes", bytes);
  release(capsule->name, tensor);
  return result;
}

static int64_t produced_shape[2] = {2, 3};
static int64_t produced_strides[2] = {1, 2};
static int64_t no_strides[1] = {0};

static void delete_produced(DLManagedTensorVersioned* self) {
  free(self->dl_tensor.data);
  free(self);
  deleted += 1;
}

static void drop_capsule(napi_env env, void* data, void* hint) {
  (void)env;
  (void)hint;
  DlpackCapsule* capsule = data;
  if (capsule->tensor != NULL) release(capsule->name, capsule->tensor);
  free(capsule);
}

/* produce(strided, extent): float32 values 0, 1, 2 … of [2, 3], column by column, or of one axis in a row; of a
 * negative extent, one value repeated -extent times. */
static napi_value produce(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value arguments[2];
  bool strided = false;
  int64_t extent = 0;
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  napi_get_value_bool(env, arguments[0], &strided);
  napi_get_value_int64(env, arguments[1], &extent);
  const bool repeated = extent < 0;
  const int64_t elements = strided ? 6 : repeated ? 1 : extent;
  float* values = malloc((size_t)elements * sizeof(float));
  for (int64_t i = 0; i < elements; ++i) values[i] = (float)i;
  DLManagedTensorVersioned* managed = calloc(1, sizeof(DLManagedTensorVersioned));
  managed->version.major = DLPACK_MAJOR_VERSION;
  managed->deleter = delete_produced;
  managed->dl_tensor.data = values;
  managed->dl_tensor.device.device_type = kDLCPU;
  managed->dl_tensor.ndim = strided ? 2 : 1;
  managed->dl_tensor.dtype.code = 2;
  managed->dl_tensor.dtype.bits = 32;
  managed->dl_tensor.dtype.lanes = 1;
  if (!strided) produced_shape[0] = repeated ? -extent : extent;
  managed->dl_tensor.shape = produced_shape;
  managed->dl_tensor.strides = strided ? produced_strides : repeated ? no_strides : NULL;
  DlpackCapsule* capsule = malloc(sizeof(DlpackCapsule));
  capsule->name = DLPACK_CAPSULE_VERSIONED;
  capsule->tensor = managed;
  napi_value object = NULL;
  napi_create_object(env, &object);
  napi_wrap(env, object, capsule, drop_capsule, NULL, NULL);
  napi_type_tag_object(env, object, &kTag);
  return object;
}

static napi_value deleted_count(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value value = NULL;
  napi_create_int32(env, deleted, &value);
  return value;
}

NAPI_MODULE_INIT() {
  const struct {
    const char* name;
    napi_callback call;
  } functions[] = {{"consume", consume}, {"produce", produce}, {"deletedCount", deleted_count}};
  for (size_t i = 0; i < 3; ++i) {
    napi_value function = NULL;
    napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].call, NULL, &function);
    napi_set_named_property(env, exports, functions[i].name, function);
  }
  return exports;
}
