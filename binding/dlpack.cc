#include "dlpack.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "dlpack/exchange.h"
#include "environment.h"
#include "external_buffer.h"

namespace tilework::binding {
namespace {

constexpr napi_type_tag kCapsuleTag = {DLPACK_CAPSULE_TAG_LOWER, DLPACK_CAPSULE_TAG_UPPER};

void finalize_capsule(napi_env, void* data, void*) {
  auto* capsule = static_cast<DlpackCapsule*>(data);
  release_capsule(*capsule);
  delete capsule;
}

Napi::Object object_of(Napi::Env env, DlpackCapsule content) {
  auto capsule = std::make_unique<DlpackCapsule>(content);
  Napi::Object object = Napi::Object::New(env);
  if (napi_wrap(env, object, capsule.get(), finalize_capsule, nullptr, nullptr) != napi_ok) {
    release_capsule(*capsule);
    throw Napi::Error::New(env);
  }
  capsule.release();
  if (napi_type_tag_object(env, object, &kCapsuleTag) != napi_ok) throw Napi::Error::New(env);
  object.DefineProperty(
      Napi::PropertyDescriptor::Value("name", Napi::String::New(env, content.name), napi_enumerable));
  return object;
}

DlpackCapsule& opened_capsule(const Napi::Value& value) {
  bool ours = false;
  if (value.IsObject()) napi_check_object_type_tag(value.Env(), value, &kCapsuleTag, &ours);
  void* capsule = nullptr;
  if (!ours || napi_unwrap(value.Env(), value, &capsule) != napi_ok || capsule == nullptr)
    throw Error(ErrorCode::kArgument, "'capsule' must be a DLPack capsule.");
  return *static_cast<DlpackCapsule*>(capsule);
}

std::vector<int64_t> shape_of(const Napi::Value& value) {
  if (!value.IsArray()) throw Error(ErrorCode::kArgument, "'shape' must be an array.");
  const auto array = value.As<Napi::Array>();
  std::vector<int64_t> shape;
  for (uint32_t axis = 0; axis < array.Length(); ++axis) shape.push_back(whole_number(array[axis], "shape"));
  return shape;
}

}  // namespace

Napi::Value export_dlpack(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const Bytes source = bytes_during_call(info[0], "bytes");
    const Dtype dtype = dtype_of(string(info[1], "dtype"));
    const DlpackForm form = info[3].ToBoolean() ? DlpackForm::kLegacy : DlpackForm::kVersioned;
    PackedTensor tensor =
        share_or_copy(source.data, static_cast<int64_t>(source.size), dtype, shape_of(info[2]), form);
    return object_of(info.Env(), to_capsule(std::move(tensor), form));
  });
}

Napi::Value import_dlpack(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    DlpackCapsule& capsule = opened_capsule(info[0]);
    DlpackImport taken = from_capsule(capsule, whole_number(info[1], "maxBytes"));
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
    // Last: an error before this line leaves the tensor in its capsule.
    capsule.tensor = nullptr;
    taken.take();
    return result;
  });
}

}  // namespace tilework::binding
