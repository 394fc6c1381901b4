#include "output_file.h"

#include <algorithm>
#include <string>
#include <utility>

#include "arguments.h"
#include "environment.h"
#include "error.h"
#include "folder.h"
#include "input_file.h"
#include "io/checked_math.h"
#include "job.h"

namespace tilework::binding {
namespace {

// A copy is split into tiles of this size, so that it can be cancelled between them. Smaller tiles are slower
// on file systems that share blocks between files.
constexpr int64_t kCopyTileBytes = int64_t{64} << 20;

class WriteJob : public OutputJob {
 public:
  WriteJob(Environment& environment, Napi::Env env, std::shared_ptr<OutputFile> file, const Bytes& bytes,
           int64_t position)
      : OutputJob(environment, env, std::move(file), 1),
        data_(bytes.data),
        size_(static_cast<int64_t>(bytes.size)),
        position_(position) {
    pin_source(bytes);
  }

 protected:
  void run_tile(int64_t) override { file().write(data_, size_, position_); }

 private:
  const uint8_t* data_;
  int64_t size_;
  int64_t position_;
};

class CopyJob : public OutputJob {
 public:
  CopyJob(Environment& environment, Napi::Env env, std::shared_ptr<OutputFile> file,
          std::shared_ptr<InputFile> source, int64_t start, int64_t end, int64_t position)
      : OutputJob(environment, env, std::move(file), ceil_div(end - start, kCopyTileBytes)),
        source_(*source),
        start_(start),
        end_(end),
        position_(position) {
    hold_file(std::move(source));
  }

 protected:
  void run_tile(int64_t tile) override {
    const int64_t start = start_ + tile * kCopyTileBytes;
    const int64_t end = std::min(start + kCopyTileBytes, end_);
    file().copy_from(source_, start, end, position_ + (start - start_));
  }

 private:
  const InputFile& source_;
  int64_t start_;
  int64_t end_;
  int64_t position_;
};

class SyncJob : public AsyncJob {
 public:
  SyncJob(Environment& environment, Napi::Env env, std::shared_ptr<OutputFile> file)
      : AsyncJob(environment, env, 1), file_(std::move(file)) {}

 protected:
  void run_tile(int64_t) override { file_->sync(); }
  void ended(bool) override { file_->end_sync(); }

 private:
  std::shared_ptr<OutputFile> file_;
};

class CommitJob : public AsyncJob {
 public:
  CommitJob(Environment& environment, Napi::Env env, std::shared_ptr<OutputFile> file)
      : AsyncJob(environment, env, 1), file_(std::move(file)) {}

 protected:
  void run_tile(int64_t) override { file_->commit(); }

 private:
  std::shared_ptr<OutputFile> file_;
};

tilework::Target target_of(const std::string& name) {
  if (name == "any") return tilework::Target::kAny;
  if (name == "new") return tilework::Target::kNew;
  if (name == "own") return tilework::Target::kOwn;
  throw Error(ErrorCode::kArgument, "'target' must be 'any', 'new' or 'own'.");
}

// Type tag of our instances, so that an argument can be unwrapped safely.
constexpr napi_type_tag kOutputFileTag = {0x3e8a74b1c90f4d52, 0xb05d6c29f1e8a347};

}  // namespace

Napi::Value OutputJob::announce_and_start(Environment& environment, ThreadPool& pool) {
  file_->begin_write();
  try {
    return environment.start(shared_from_this(), pool);
  } catch (...) {
    file_->end_write(false);
    throw;
  }
}

Napi::Function OutputFileObject::define(Napi::Env env) {
  return DefineClass(
      env, "NativeOutputFile",
      {InstanceMethod<&OutputFileObject::write>("write"),
       InstanceMethod<&OutputFileObject::copy_from>("copyFrom"),
       InstanceMethod<&OutputFileObject::sync>("sync"), InstanceMethod<&OutputFileObject::commit>("commit"),
       InstanceMethod<&OutputFileObject::identity>("identity"),
       InstanceMethod<&OutputFileObject::abort>("abort")});
}

Napi::Value OutputFileObject::create(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Environment& environment = Environment::of(info.Env());
    const std::string path = path_text(info[0], "path");
    environment.next_output_file = OutputFile::create(path, whole_number(info[1], "byteLength"));
    return environment.output_file_class.New({});
  });
}

Napi::Value OutputFileObject::create_below(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Environment& environment = Environment::of(info.Env());
    const FolderPlace folder = folder_place(info[0], "folder");
    const std::string name = path_text(info[1], "name");
    const int64_t byte_length = whole_number(info[2], "byteLength");
    const auto target = target_of(string(info[3], "target"));
    environment.next_output_file = OutputFile::create_below(folder, name, target, byte_length);
    return environment.output_file_class.New({});
  });
}

std::shared_ptr<OutputFile> OutputFileObject::file_of(const Napi::Value& value, const char* name) {
  bool ours = false;
  if (value.IsObject()) napi_check_object_type_tag(value.Env(), value, &kOutputFileTag, &ours);
  if (!ours)
    throw Error(ErrorCode::kArgument, std::string("'") + name + "' must be a file from createOutput().");
  return Unwrap(value.As<Napi::Object>())->file_;
}

OutputFileObject::OutputFileObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<OutputFileObject>(info),
      file_(std::exchange(Environment::of(info.Env()).next_output_file, nullptr)) {
  if (file_ == nullptr) throw Napi::TypeError::New(info.Env(), "Outputs are made by createOutput() only.");
  Napi::Object self = info.This().As<Napi::Object>();
  napi_type_tag_object(info.Env(), self, &kOutputFileTag);
}

OutputFileObject::~OutputFileObject() {
  if (file_ != nullptr) file_->abort();
}

Napi::Value OutputFileObject::write(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Environment& environment = Environment::of(info.Env());
    const int64_t position = whole_number(info[1], "position");
    const Bytes source = bytes(info[0], "bytes");
    return std::make_shared<WriteJob>(environment, info.Env(), file_, source, position)
        ->announce_and_start(environment, environment.pools().blocking);
  });
}

Napi::Value OutputFileObject::copy_from(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Environment& environment = Environment::of(info.Env());
    const std::shared_ptr<InputFile> source = InputFileObject::file_of(info[0], "file");
    const int64_t start = whole_number(info[1], "start");
    const int64_t end = whole_number(info[2], "end");
    const int64_t position = whole_number(info[3], "position");
    if (start > end || end > source->size()) {
      throw Error(ErrorCode::kRange, "The range [" + std::to_string(start) + ", " + std::to_string(end) +
                                         ") is outside the " + std::to_string(source->size()) +
                                         " bytes of the file.");
    }
    const auto job = std::make_shared<CopyJob>(environment, info.Env(), file_, source, start, end, position);
    job->set_cancel_flag(info[4]);
    return job->announce_and_start(environment, environment.pools().blocking);
  });
}

Napi::Value OutputFileObject::sync(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Environment& environment = Environment::of(info.Env());
    auto job = std::make_shared<SyncJob>(environment, info.Env(), file_);
    // As for a commit: garbage collection must not abort the file meanwhile.
    job->pin(info.This());
    file_->begin_sync();
    try {
      return environment.start(std::move(job), environment.pools().blocking);
    } catch (...) {
      file_->end_sync();
      throw;
    }
  });
}

Napi::Value OutputFileObject::commit(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Environment& environment = Environment::of(info.Env());
    auto job = std::make_shared<CommitJob>(environment, info.Env(), file_);
    // Garbage collection of this object must not abort a running commit.
    job->pin(info.This());
    file_->begin_commit();
    try {
      return environment.start(std::move(job), environment.pools().blocking);
    } catch (...) {
      file_->abort();
      throw;
    }
  });
}

Napi::Value OutputFileObject::identity(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value { return to_javascript(info.Env(), file_->identity()); });
}

Napi::Value OutputFileObject::abort(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    file_->abort();
    return info.Env().Undefined();
  });
}

}  // namespace tilework::binding
