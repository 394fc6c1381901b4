// The JavaScript class of a reorder plan.
#pragma once

#include <napi.h>

#include <memory>

#include "held_plans.h"
#include "reorder/plan/plan.h"
#include "reorder_run.h"

namespace tilework::binding {

class ReorderPlanObject final : public Napi::ObjectWrap<ReorderPlanObject>, public HeldPlan {
 public:
  static Napi::Function define(Napi::Env env);
  // planReorder(description)
  static Napi::Value plan(const Napi::CallbackInfo& info);

  explicit ReorderPlanObject(const Napi::CallbackInfo& info);
  ~ReorderPlanObject() override { free_plan(); }
  ReorderPlanObject(const ReorderPlanObject&) = delete;
  ReorderPlanObject& operator=(const ReorderPlanObject&) = delete;

  bool is_collected() const override { return Value().IsEmpty(); }
  void free_plan() override;

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
  // Shared: the environment may end before its objects are finalized.
  std::shared_ptr<HeldPlans> held_plans_;
  HeldPlans::Entry entry_;
  int64_t footprint_ = 0;
};

}  // namespace tilework::binding
