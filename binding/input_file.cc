#include "input_file.h"

#include <algorithm>
#include <string>
#include <utility>

#include "arguments.h"
#include "environment.h"
#include "external_buffer.h"
#include "folder.h"
#include "io/checked_math.h"
#include "job.h"

namespace tilework::binding {
namespace {

// Type tag of our instances, so that an argument can be unwrapped safely.
constexpr napi_type_tag kInputFileTag = {0x6d1c5f0a9be84c27, 0xa3f2e1d47c80b596};

// Collected views are removed when the list has this many, or twice as many as the last sweep left.
constexpr size_t kViewsBeforeSweep = 64;

// A read is split into tiles of this size, so that it can be cancelled between them and large reads use
// several threads.
constexpr int64_t kReadTileBytes = int64_t{64} << 20;

// Target memory of a read from `start` on.
Bytes target_bytes(const InputFile& file, int64_t start, const Napi::Value& value) {
  const Bytes target = bytes(value, "target");
  check_range(file, start, checked_add(start, static_cast<int64_t>(target.size), "The end of a read"));
  // A job keeps the mapping that it reads, but a mapping that it writes to could be revoked; views are
  // read-only for callers.
  if (InputFile::find(target.data, target.size) != nullptr) {
    throw Error(ErrorCode::kArgument, "The target is a view of a mapped file; views must not be written.");
  }
  return target;
}

class ReadJob : public AsyncJob {
 public:
  ReadJob(Environment& environment, Napi::Env env, std::shared_ptr<InputFile> file, int64_t start,
          const Bytes& target)
      : AsyncJob(environment, env, ceil_div(static_cast<int64_t>(target.size), kReadTileBytes)),
        file_(*file),
        start_(start),
        data_(target.data),
        size_(static_cast<int64_t>(target.size)) {
    pin(target.array);
    hold_file(std::move(file));
  }

 protected:
  void run_tile(int64_t tile) override {
    const int64_t done = tile * kReadTileBytes;
    file_.read_at(data_ + done, start_ + done, std::min(kReadTileBytes, size_ - done));
  }

 private:
  const InputFile& file_;
  int64_t start_;
  uint8_t* data_;
  int64_t size_;
};

}  // namespace

void check_range(const InputFile& file, int64_t start, int64_t end) {
  if (start <= end && end <= file.size()) return;
  throw Error(ErrorCode::kRange, "The range [" + std::to_string(start) + ", " + std::to_string(end) +
                                     ") is outside the " + std::to_string(file.size()) +
                                     " bytes of the file.");
}

int64_t read_offset(const InputFile& file, int64_t size, const Napi::Value& value) {
  const int64_t offset = whole_number(value, "offset");
  if (offset > file.size() || size > file.size() - offset) {
    throw Error(ErrorCode::kRange, "The " + std::to_string(size) + " bytes at " + std::to_string(offset) +
                                       " are outside the " + std::to_string(file.size()) +
                                       " bytes of the file.");
  }
  file.verify_unchanged();
  return offset;
}

Napi::Function InputFileObject::define(Napi::Env env) {
  return DefineClass(
      env, "NativeInputFile",
      {InstanceMethod<&InputFileObject::view>("view"), InstanceMethod<&InputFileObject::read>("read"),
       InstanceMethod<&InputFileObject::read_sync>("readSync"),
       InstanceMethod<&InputFileObject::verify_unchanged>("verifyUnchanged"),
       InstanceMethod<&InputFileObject::close>("close")});
}

Napi::Value InputFileObject::open(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Environment& environment = Environment::of(info.Env());
    const Napi::Object options = object(info[1], "options");
    const InputOptions chosen{options.Get("mapped").ToBoolean(), options.Get("guard").ToBoolean()};
    environment.next_input_file =
        InputFile::open(path_text(info[0], "path"), chosen, environment.live_mappings);
    return environment.input_file_class.New({});
  });
}

Napi::Value InputFileObject::open_below(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Environment& environment = Environment::of(info.Env());
    const Napi::Object options = object(info[2], "options");
    const InputOptions chosen{options.Get("mapped").ToBoolean(), options.Get("guard").ToBoolean()};
    const HardLinks hard_links = options.Get("isSole").ToBoolean() ? HardLinks::kRefuse : HardLinks::kAllow;
    environment.next_input_file =
        InputFile::open_below(folder_place(info[0], "folder"), path_text(info[1], "name"), hard_links, chosen,
                              environment.live_mappings);
    return environment.input_file_class.New({});
  });
}

std::shared_ptr<InputFile> InputFileObject::file_of(const Napi::Value& value, const char* name) {
  bool ours = false;
  if (value.IsObject()) napi_check_object_type_tag(value.Env(), value, &kInputFileTag, &ours);
  if (!ours)
    throw Error(ErrorCode::kArgument, std::string("'") + name + "' must be a file from openInput().");
  return Unwrap(value.As<Napi::Object>())->opened();
}

InputFileObject::InputFileObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<InputFileObject>(info),
      file_(std::exchange(Environment::of(info.Env()).next_input_file, nullptr)) {
  if (file_ == nullptr) throw Napi::TypeError::New(info.Env(), "Files are opened by openInput() only.");
  Napi::Object self = info.This().As<Napi::Object>();
  napi_type_tag_object(info.Env(), self, &kInputFileTag);
  self.DefineProperty(Napi::PropertyDescriptor::Value(
      "isMapped", Napi::Boolean::New(info.Env(), file_->is_mapped()), napi_enumerable));
  self.DefineProperty(Napi::PropertyDescriptor::Value(
      "byteLength", Napi::Number::New(info.Env(), static_cast<double>(file_->size())), napi_enumerable));
}

InputFileObject::~InputFileObject() {
  for (napi_ref view : views_) napi_delete_reference(Env(), view);
}

const std::shared_ptr<InputFile>& InputFileObject::opened() const {
  if (file_ == nullptr) throw Error(ErrorCode::kClosed, "The file was used after close().");
  return file_;
}

Napi::Value InputFileObject::view(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const std::shared_ptr<InputFile> file = opened();
    const int64_t start = whole_number(info[0], "start");
    const int64_t end = whole_number(info[1], "end");
    check_range(*file, start, end);
    if (!file->is_mapped())
      throw Error(ErrorCode::kArgument, "The file is not mapped; only mapped files have views.");
    BufferView view = view_of(info.Env(), file, start, end);
    if (view.external) remember(view.buffer);
    return Napi::Uint8Array::New(info.Env(), view.buffer.ByteLength(), view.buffer, 0);
  });
}

Napi::Value InputFileObject::read(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Environment& environment = Environment::of(info.Env());
    const int64_t start = whole_number(info[0], "start");
    const Bytes target = target_bytes(*opened(), start, info[1]);
    const auto job = std::make_shared<ReadJob>(environment, info.Env(), opened(), start, target);
    return environment.start(job, environment.pools().blocking);
  });
}

Napi::Value InputFileObject::read_sync(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const int64_t start = whole_number(info[0], "start");
    const Bytes target = target_bytes(*opened(), start, info[1]);
    opened()->read_at(target.data, start, static_cast<int64_t>(target.size));
    opened()->verify_unchanged();
    return info.Env().Undefined();
  });
}

Napi::Value InputFileObject::verify_unchanged(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    opened()->verify_unchanged();
    return info.Env().Undefined();
  });
}

Napi::Value InputFileObject::close(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    if (file_ != nullptr) file_->release_descriptor();
    file_.reset();
    if (info[0].ToBoolean().Value()) revoke(info.Env());
    return info.Env().Undefined();
  });
}

void InputFileObject::remember(const Napi::ArrayBuffer& buffer) {
  if (views_.size() >= kViewsBeforeSweep + 2 * views_checked_) forget_collected(buffer.Env());
  napi_ref reference = nullptr;
  if (napi_create_reference(buffer.Env(), buffer, 0, &reference) != napi_ok)
    throw Napi::Error::New(buffer.Env());
  views_.push_back(reference);
}

void InputFileObject::forget_collected(Napi::Env env) {
  std::erase_if(views_, [env](napi_ref reference) {
    napi_value value = nullptr;
    if (napi_get_reference_value(env, reference, &value) == napi_ok && value != nullptr) return false;
    napi_delete_reference(env, reference);
    return true;
  });
  views_checked_ = views_.size();
}

void InputFileObject::revoke(Napi::Env env) {
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
