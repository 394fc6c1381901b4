// The JavaScript class of a file under construction.
#pragma once

#include <napi.h>

#include <memory>
#include <utility>

#include "io/output_file.h"
#include "job.h"

namespace tilework::binding {

// A job that writes to an output file, so that a commit waits for it.
class OutputJob : public AsyncJob {
 public:
  OutputJob(Environment& environment, Napi::Env env, std::shared_ptr<OutputFile> file, int64_t tiles)
      : AsyncJob(environment, env, tiles), file_(std::move(file)) {}

  // Call last: an error before it leaves nothing to undo. Errors: ERR_CLOSED.
  Napi::Value announce_and_start(Environment& environment, ThreadPool& pool);

 protected:
  void ended(bool succeeded) override { file_->end_write(succeeded); }
  OutputFile& file() { return *file_; }

 private:
  std::shared_ptr<OutputFile> file_;
};

class OutputFileObject : public Napi::ObjectWrap<OutputFileObject> {
 public:
  static Napi::Function define(Napi::Env env);
  // createOutput(path, byteLength)
  static Napi::Value create(const Napi::CallbackInfo& info);
  // createOutputBelow(folder, name, byteLength, isNew)
  static Napi::Value create_below(const Napi::CallbackInfo& info);
  // The output of an argument. Errors: ERR_ARGUMENT for any other value.
  static std::shared_ptr<OutputFile> file_of(const Napi::Value& value, const char* name);

  explicit OutputFileObject(const Napi::CallbackInfo& info);
  // Aborts an output that was never committed.
  ~OutputFileObject() override;

 private:
  Napi::Value write(const Napi::CallbackInfo& info);
  Napi::Value copy_from(const Napi::CallbackInfo& info);
  Napi::Value sync(const Napi::CallbackInfo& info);
  Napi::Value commit(const Napi::CallbackInfo& info);
  Napi::Value identity(const Napi::CallbackInfo& info);
  Napi::Value abort(const Napi::CallbackInfo& info);

  std::shared_ptr<OutputFile> file_;
};

}  // namespace tilework::binding
