#include "mapped_file.h"

#include <string>
#include <utility>

#include "arguments.h"
#include "environment.h"
#include "external_buffer.h"

namespace tilework::binding {
namespace {

// Tells our instances from every other object, so that an argument can be unwrapped safely.
constexpr napi_type_tag kTypeTag = {0x6d1c5f0a9be84c27, 0xa3f2e1d47c80b596};

// Collected views are looked for when this many, or twice the last rest, have come together.
constexpr size_t kViewsBeforeSweep = 64;

}  // namespace

Napi::Function MappedFileObject::define(Napi::Env env) {
  return DefineClass(env, "NativeMappedFile",
                     {InstanceMethod<&MappedFileObject::view>("view"),
                      InstanceMethod<&MappedFileObject::verify_unchanged>("verifyUnchanged"),
                      InstanceMethod<&MappedFileObject::close>("close")});
}

Napi::Value MappedFileObject::open(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Environment& environment = Environment::of(info.Env());
    environment.next_mapped_file = MappedFile::open(path_text(info[0], "path"), environment.live_mappings);
    return environment.mapped_file_class.New({});
  });
}

std::shared_ptr<MappedFile> MappedFileObject::mapping_of(const Napi::Value& value, const char* name) {
  bool ours = false;
  if (value.IsObject()) napi_check_object_type_tag(value.Env(), value, &kTypeTag, &ours);
  if (!ours) throw Error("ERR_ARGUMENT", std::string("'") + name + "' must be a file from openMapped().");
  return Unwrap(value.As<Napi::Object>())->opened();
}

MappedFileObject::MappedFileObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<MappedFileObject>(info),
      file_(std::exchange(Environment::of(info.Env()).next_mapped_file, nullptr)) {
  if (file_ == nullptr) throw Napi::TypeError::New(info.Env(), "Files are mapped by openMapped() only.");
  Napi::Object self = info.This().As<Napi::Object>();
  napi_type_tag_object(info.Env(), self, &kTypeTag);
  self.DefineProperty(Napi::PropertyDescriptor::Value(
      "byteLength", Napi::Number::New(info.Env(), static_cast<double>(file_->size())), napi_enumerable));
}

MappedFileObject::~MappedFileObject() {
  for (napi_ref view : views_) napi_delete_reference(Env(), view);
}

const std::shared_ptr<MappedFile>& MappedFileObject::opened() const {
  if (file_ == nullptr) throw Error("ERR_CLOSED", "The file was used after close().");
  return file_;
}

Napi::Value MappedFileObject::view(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const std::shared_ptr<MappedFile> file = opened();
    const int64_t start = whole_number(info[0], "start");
    const int64_t end = whole_number(info[1], "end");
    if (start > end || end > file->size()) {
      throw Error("ERR_RANGE", "The range [" + std::to_string(start) + ", " + std::to_string(end) +
                                   ") does not lie in the " + std::to_string(file->size()) +
                                   " bytes of the file.");
    }
    file->verify_unchanged();
    BufferView view = view_of(info.Env(), file, start, end);
    if (view.external) remember(view.buffer);
    return Napi::Uint8Array::New(info.Env(), view.buffer.ByteLength(), view.buffer, 0);
  });
}

Napi::Value MappedFileObject::verify_unchanged(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    opened()->verify_unchanged();
    return info.Env().Undefined();
  });
}

Napi::Value MappedFileObject::close(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    if (file_ != nullptr) file_->release_descriptor();
    file_.reset();
    if (info[0].ToBoolean().Value()) revoke(info.Env());
    return info.Env().Undefined();
  });
}

void MappedFileObject::remember(const Napi::ArrayBuffer& buffer) {
  if (views_.size() >= kViewsBeforeSweep + 2 * views_checked_) forget_collected(buffer.Env());
  napi_ref reference = nullptr;
  if (napi_create_reference(buffer.Env(), buffer, 0, &reference) != napi_ok)
    throw Napi::Error::New(buffer.Env());
  views_.push_back(reference);
}

void MappedFileObject::forget_collected(Napi::Env env) {
  std::erase_if(views_, [env](napi_ref reference) {
    napi_value value = nullptr;
    if (napi_get_reference_value(env, reference, &value) == napi_ok && value != nullptr) return false;
    napi_delete_reference(env, reference);
    return true;
  });
  views_checked_ = views_.size();
}

void MappedFileObject::revoke(Napi::Env env) {
  for (napi_ref reference : views_) {
    napi_value value = nullptr;
    if (napi_get_reference_value(env, reference, &value) == napi_ok && value != nullptr) {
      napi_detach_arraybuffer(env, value);
    }
    napi_delete_reference(env, reference);
  }
  views_.clear();
}

}  // namespace tilework::binding
