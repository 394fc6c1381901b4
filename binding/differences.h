// The JavaScript class of a comparison of two tensors in several jobs.
#pragma once

#include <napi.h>

#include <atomic>
#include <memory>

#include "dtype/differences.h"

namespace tilework::binding {

// What the jobs of a comparison add to. One job at a time.
struct Comparison {
  explicit Comparison(Differences empty) : differences(std::move(empty)) {}

  Differences differences;
  // Set by compareBytes() where the bytes are not the same.
  std::atomic<bool> has_other_bytes{false};
  std::atomic<bool> is_busy{false};
};

class DifferencesObject : public Napi::ObjectWrap<DifferencesObject> {
 public:
  static Napi::Function define(Napi::Env env);
  // createDifferences(reference, other, absolute, relative)
  static Napi::Value create(const Napi::CallbackInfo& info);

  explicit DifferencesObject(const Napi::CallbackInfo& info);

 private:
  Napi::Value add(const Napi::CallbackInfo& info);
  Napi::Value compare_bytes(const Napi::CallbackInfo& info);
  Napi::Value result(const Napi::CallbackInfo& info);

  std::shared_ptr<Comparison> comparison_;
};

}  // namespace tilework::binding
