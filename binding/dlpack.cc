#include "dlpack.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "dlpack/capsule.h"
#include "dlpack/exchange.h"
#include "environment.h"
#include "external_buffer.h"
#include "io/checked_math.h"

namespace tilework::binding {
namespace {

constexpr napi_type_tag kCapsuleTag = {DLPACK_CAPSULE_TAG_LOWER, DLPACK_CAPSULE_TAG_UPPER};

bool is_versioned(const DlpackCapsule& capsule) {
  return std::strcmp(capsule.name, DLPACK_CAPSULE_VERSIONED) == 0;
}

template <class Managed>
void call_deleter(void* tensor) {
  auto* managed = static_cast<Managed*>(tensor);
  if (managed->deleter != nullptr) managed->deleter(managed);
}

void drop_tensor(DlpackCapsule& capsule) {
  void* tensor = std::exchange(capsule.tensor, nullptr);
  if (tensor == nullptr) return;
  if (is_versioned(capsule))
    call_deleter<DLManagedTensorVersioned>(tensor);
  else
    call_deleter<DLManagedTensor>(tensor);
}

void finalize_capsule(napi_env, void* data, void*) {
  auto* capsule = static_cast<DlpackCapsule*>(data);
  drop_tensor(*capsule);
  delete capsule;
}

Napi::Object capsule_of(Napi::Env env, const char* name, void* tensor) {
  auto capsule = std::make_unique<DlpackCapsule>(DlpackCapsule{name, tensor});
  Napi::Object object = Napi::Object::New(env);
  if (napi_wrap(env, object, capsule.get(), finalize_capsule, nullptr, nullptr) != napi_ok) {
    drop_tensor(*capsule);
    throw Napi::Error::New(env);
  }
  capsule.release();
  if (napi_type_tag_object(env, object, &kCapsuleTag) != napi_ok) throw Napi::Error::New(env);
  object.DefineProperty(
      Napi::PropertyDescriptor::Value("name", Napi::String::New(env, name), napi_enumerable));
  return object;
}

DlpackCapsule& opened_capsule(const Napi::Value& value) {
  bool ours = false;
  if (value.IsObject()) napi_check_object_type_tag(value.Env(), value, &kCapsuleTag, &ours);
  void* capsule = nullptr;
  if (!ours || napi_unwrap(value.Env(), value, &capsule) != napi_ok || capsule == nullptr)
    throw Error("ERR_ARGUMENT", "'capsule' must be a DLPack capsule.");
  return *static_cast<DlpackCapsule*>(capsule);
}

std::vector<int64_t> shape_of(const Napi::Value& value) {
  if (!value.IsArray()) throw Error("ERR_ARGUMENT", "'shape' must be an array.");
  const auto array = value.As<Napi::Array>();
  std::vector<int64_t> shape;
  for (uint32_t axis = 0; axis < array.Length(); ++axis) shape.push_back(whole_number(array[axis], "shape"));
  return shape;
}

// The file whose map the memory is of, where the elements lie as processors want them.
std::shared_ptr<InputFile> sharing_file(const Bytes& source, Dtype dtype) {
  const auto item_bytes = static_cast<uintptr_t>(std::max(info_of(dtype).bits / 8, 1));
  if (source.size == 0 || reinterpret_cast<uintptr_t>(source.data) % item_bytes != 0) return nullptr;
  return InputFile::find(source.data, source.size);
}

PackedTensor tensor_of(const Bytes& source, Dtype dtype, std::vector<int64_t> shape, bool legacy) {
  PackedTensor tensor{.dtype = dtype, .shape = std::move(shape), .bytes = static_cast<int64_t>(source.size)};
  const std::shared_ptr<InputFile> file = legacy ? nullptr : sharing_file(source, dtype);
  if (file != nullptr) {
    tensor.data = source.data;
    tensor.owner = file;
    tensor.read_only = true;
    return tensor;
  }
  tensor.owner = dlpack_memory(tensor.bytes);
  tensor.data = static_cast<uint8_t*>(tensor.owner.get());
  if (source.size > 0) std::memcpy(tensor.data, source.data, source.size);
  tensor.copied = true;
  return tensor;
}

void check_size(const PackedTensor& tensor) {
  int64_t count = 1;
  for (const int64_t extent : tensor.shape) count = checked_mul(count, extent, "The number of elements");
  const int64_t needed = packed_bytes(tensor.dtype, count);
  if (needed == tensor.bytes) return;
  throw Error("ERR_ARGUMENT", "'bytes' has " + std::to_string(tensor.bytes) + " bytes; the shape needs " +
                                  std::to_string(needed) + ".");
}

}  // namespace

Napi::Value export_dlpack(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const Bytes source = bytes_during_call(info[0], "bytes");
    const std::string name = info[1].ToString().Utf8Value();
    const std::optional<Dtype> dtype = dtype_by_name(name);
    if (!dtype) throw Error("ERR_ARGUMENT", "'" + name + "' is no element type of fixed size.");
    const bool legacy = info[3].ToBoolean().Value();
    PackedTensor tensor = tensor_of(source, *dtype, shape_of(info[2]), legacy);
    check_size(tensor);
    if (legacy) return capsule_of(info.Env(), DLPACK_CAPSULE_LEGACY, to_legacy_dlpack(std::move(tensor)));
    return capsule_of(info.Env(), DLPACK_CAPSULE_VERSIONED, to_dlpack(std::move(tensor)));
  });
}

Napi::Value import_dlpack(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    DlpackCapsule& capsule = opened_capsule(info[0]);
    if (capsule.tensor == nullptr)
      throw Error("ERR_ARGUMENT", "The tensor of the capsule was taken already.");
    const int64_t max_bytes = whole_number(info[1], "maxBytes");
    DlpackImport taken = is_versioned(capsule)
                             ? from_dlpack(static_cast<DLManagedTensorVersioned*>(capsule.tensor), max_bytes)
                             : from_legacy_dlpack(static_cast<DLManagedTensor*>(capsule.tensor), max_bytes);
    const PackedTensor& tensor = taken.tensor;
    Napi::Env env = info.Env();
    Napi::Array shape = Napi::Array::New(env);
    for (const int64_t extent : tensor.shape)
      shape.Set(shape.Length(), Napi::Number::New(env, static_cast<double>(extent)));
    Napi::ArrayBuffer memory = buffer_over(env, tensor.owner, tensor.data, tensor.bytes);
    Napi::Object result = Napi::Object::New(env);
    result.Set("bytes", Napi::Uint8Array::New(env, memory.ByteLength(), memory, 0));
    result.Set("dtype", std::string(info_of(tensor.dtype).name));
    result.Set("shape", shape);
    result.Set("readOnly", tensor.read_only);
    result.Set("copied", tensor.copied);
    // Last: whatever has thrown by then leaves the tensor in its capsule.
    capsule.tensor = nullptr;
    taken.take();
    return result;
  });
}

}  // namespace tilework::binding
