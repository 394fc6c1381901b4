// The JavaScript class of a file under construction.
#pragma once

#include <napi.h>

#include <memory>

#include "io/output_file.h"

namespace tilework::binding {

class OutputFileObject : public Napi::ObjectWrap<OutputFileObject> {
 public:
  static Napi::Function define(Napi::Env env);
  // createOutput(path, byteLength)
  static Napi::Value create(const Napi::CallbackInfo& info);

  explicit OutputFileObject(const Napi::CallbackInfo& info);
  // An output that was forgotten is taken back.
  ~OutputFileObject() override;

 private:
  Napi::Value write(const Napi::CallbackInfo& info);
  Napi::Value copy_from(const Napi::CallbackInfo& info);
  Napi::Value commit(const Napi::CallbackInfo& info);
  Napi::Value abort(const Napi::CallbackInfo& info);

  std::shared_ptr<OutputFile> file_;
};

}  // namespace tilework::binding
