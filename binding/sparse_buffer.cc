#include "sparse_buffer.h"

#include <cstring>
#include <utility>

#include "arguments.h"
#include "environment.h"

namespace tilework::binding {
namespace {

// Type tag of our instances, so that an argument can be unwrapped safely.
constexpr napi_type_tag kSparseBufferTag = {0x51a7c2e8d4036bf9, 0x8e1f9b46027ac5d3};

}  // namespace

Napi::Function SparseBufferObject::define(Napi::Env env) {
  return DefineClass(env, "NativeSparseBuffer",
                     {InstanceMethod<&SparseBufferObject::fill>("fill"),
                      InstanceMethod<&SparseBufferObject::clear>("clear")});
}

Napi::Value SparseBufferObject::create(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Environment& environment = Environment::of(info.Env());
    environment.next_sparse_buffer =
        std::make_shared<SharedSparseBuffer>(whole_number(info[0], "byteLength"));
    return environment.sparse_buffer_class.New({});
  });
}

std::shared_ptr<SharedSparseBuffer> SparseBufferObject::buffer_of(const Napi::Value& value) {
  bool ours = false;
  if (value.IsObject()) napi_check_object_type_tag(value.Env(), value, &kSparseBufferTag, &ours);
  return ours ? Unwrap(value.As<Napi::Object>())->shared_ : nullptr;
}

SparseBufferObject::SparseBufferObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<SparseBufferObject>(info),
      shared_(std::exchange(Environment::of(info.Env()).next_sparse_buffer, nullptr)) {
  if (shared_ == nullptr) {
    throw Napi::TypeError::New(info.Env(), "Sparse buffers are made by createSparseBuffer() only.");
  }
  Napi::Object self = info.This().As<Napi::Object>();
  napi_type_tag_object(info.Env(), self, &kSparseBufferTag);
  self.DefineProperty(Napi::PropertyDescriptor::Value(
      "byteLength", Napi::Number::New(info.Env(), static_cast<double>(shared_->buffer.size())),
      napi_enumerable));
}

SparseBuffer& SparseBufferObject::unread() const {
  if (shared_->readers > 0)
    throw Error(ErrorCode::kArgument, "The sparse buffer is in use by a pending run.");
  return shared_->buffer;
}

Napi::Value SparseBufferObject::fill(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const int64_t offset = whole_number(info[1], "offset");
    const Bytes source = bytes(info[0], "bytes");
    uint8_t* target = unread().fill(offset, static_cast<int64_t>(source.size));
    if (source.size > 0) std::memcpy(target, source.data, source.size);
    return info.Env().Undefined();
  });
}

Napi::Value SparseBufferObject::clear(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    unread().clear();
    return info.Env().Undefined();
  });
}

}  // namespace tilework::binding
