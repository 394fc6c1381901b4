// The JavaScript class of a mapped file.
#pragma once

#include <napi.h>

#include <memory>
#include <vector>

#include "io/mapped_file.h"

namespace tilework::binding {

class MappedFileObject : public Napi::ObjectWrap<MappedFileObject> {
 public:
  static Napi::Function define(Napi::Env env);
  // openMapped(path)
  static Napi::Value open(const Napi::CallbackInfo& info);
  // The mapping of an argument. Errors: ERR_ARGUMENT if it is no mapped file, ERR_CLOSED.
  static std::shared_ptr<MappedFile> mapping_of(const Napi::Value& value, const char* name);

  explicit MappedFileObject(const Napi::CallbackInfo& info);
  ~MappedFileObject() override;

 private:
  Napi::Value view(const Napi::CallbackInfo& info);
  Napi::Value verify_unchanged(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  const std::shared_ptr<MappedFile>& opened() const;
  void remember(const Napi::ArrayBuffer& buffer);
  void forget_collected(Napi::Env env);
  void revoke(Napi::Env env);

  std::shared_ptr<MappedFile> file_;
  // Weak references to the buffers given out, for close({ revoke: true }).
  std::vector<napi_ref> views_;
  size_t views_checked_ = 0;
};

}  // namespace tilework::binding
