// The JavaScript class of a reorder plan.
#pragma once

#include <napi.h>

#include <memory>

#include "reorder/plan.h"
#include "reorder_run.h"

namespace tilework::binding {

class ReorderPlanObject : public Napi::ObjectWrap<ReorderPlanObject> {
 public:
  static Napi::Function define(Napi::Env env);
  // planReorder(description)
  static Napi::Value plan(const Napi::CallbackInfo& info);

  explicit ReorderPlanObject(const Napi::CallbackInfo& info);

 private:
  Napi::Value run_sync(const Napi::CallbackInfo& info);
  Napi::Value run(const Napi::CallbackInfo& info);
  Napi::Value run_file(const Napi::CallbackInfo& info);
  Napi::Value run_file_sync(const Napi::CallbackInfo& info);
  Napi::Value run_to_file(const Napi::CallbackInfo& info);
  Napi::Value run_on_device(const Napi::CallbackInfo& info);
  Napi::Value time_on_device(const Napi::CallbackInfo& info);
  Napi::Value source_ranges(const Napi::CallbackInfo& info);
  Napi::Value explain(const Napi::CallbackInfo& info);

  std::shared_ptr<const ReorderPlan> plan_;
  CutPlan cut_plan_;
};

}  // namespace tilework::binding
