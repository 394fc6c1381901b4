// The JavaScript class of an input file.
#pragma once

#include <napi.h>

#include <memory>
#include <vector>

#include "io/input_file.h"

namespace tilework::binding {

// Errors: ERR_RANGE unless [start, end) lies inside the file.
void check_range(const InputFile& file, int64_t start, int64_t end);

// The argument 'offset' of a call that reads `size` bytes there. Errors: ERR_ARGUMENT, ERR_OVERFLOW,
// ERR_RANGE, ERR_FILE_CHANGED.
int64_t read_offset(const InputFile& file, int64_t size, const Napi::Value& value);

class InputFileObject : public Napi::ObjectWrap<InputFileObject> {
 public:
  static Napi::Function define(Napi::Env env);
  // openInput(path, { mapped, guard })
  static Napi::Value open(const Napi::CallbackInfo& info);
  // openInputBelow(folder, name, { mapped, guard, isSole })
  static Napi::Value open_below(const Napi::CallbackInfo& info);
  // The open file of an argument. Errors: ERR_ARGUMENT for any other value, ERR_CLOSED.
  static std::shared_ptr<InputFile> file_of(const Napi::Value& value, const char* name);

  explicit InputFileObject(const Napi::CallbackInfo& info);
  ~InputFileObject() override;

 private:
  Napi::Value view(const Napi::CallbackInfo& info);
  Napi::Value read(const Napi::CallbackInfo& info);
  Napi::Value read_sync(const Napi::CallbackInfo& info);
  Napi::Value verify_unchanged(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  const std::shared_ptr<InputFile>& opened() const;
  void remember(const Napi::ArrayBuffer& buffer);
  void forget_collected(Napi::Env env);
  void revoke(Napi::Env env);

  std::shared_ptr<InputFile> file_;
  // Weak references to the buffers given out, for close({ revoke: true }).
  std::vector<napi_ref> views_;
  size_t views_checked_ = 0;
};

}  // namespace tilework::binding
