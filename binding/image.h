// The JavaScript class of an image plan.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>

#include "held_plans.h"
#include "image/image_plan.h"

namespace tilework::binding {

class ImagePlanObject final : public Napi::ObjectWrap<ImagePlanObject>, public HeldPlan {
 public:
  static Napi::Function define(Napi::Env env);
  // planImage(description)
  static Napi::Value plan(const Napi::CallbackInfo& info);

  explicit ImagePlanObject(const Napi::CallbackInfo& info);
  ~ImagePlanObject() override { free_plan(); }
  ImagePlanObject(const ImagePlanObject&) = delete;
  ImagePlanObject& operator=(const ImagePlanObject&) = delete;

  bool is_collected() const override { return Value().IsEmpty(); }
  void free_plan() override;

 private:
  Napi::Value run_sync(const Napi::CallbackInfo& info);

  std::shared_ptr<const ImagePlan> plan_;
  // Shared: the environment may end before its objects are finalized.
  std::shared_ptr<HeldPlans> held_plans_;
  HeldPlans::Entry entry_;
};

}  // namespace tilework::binding
