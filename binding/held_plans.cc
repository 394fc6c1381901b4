#include "held_plans.h"

#include "reorder.h"

namespace tilework::binding {

HeldPlans::Place HeldPlans::add(Napi::Env env, ReorderPlanObject* object, int64_t bytes) {
  const Place place = objects_.insert(objects_.end(), object);
  bytes_ += bytes;
  if (bytes_ - told_bytes_ >= kToldBytes) tell(env);
  return place;
}

void HeldPlans::remove(Napi::Env env, Place place, int64_t bytes) {
  objects_.erase(place);
  bytes_ -= bytes;
  if (told_bytes_ - bytes_ >= kToldBytes) tell(env);
}

// V8 may collect garbage here; that runs no finalizers.
void HeldPlans::tell(Napi::Env env) {
  const int64_t change = bytes_ - told_bytes_;
  told_bytes_ = bytes_;
  Napi::MemoryManagement::AdjustExternalMemory(env, change);
}

void HeldPlans::free_collected(Napi::Env env) {
  const Napi::HandleScope scope(env);
  if (!witness_.IsEmpty() && !witness_.Value().IsEmpty()) return;
  for (auto next = objects_.begin(); next != objects_.end();) {
    ReorderPlanObject* object = *next++;
    if (object->is_collected()) object->free_plan();
  }
  witness_ = Napi::Weak(Napi::Object::New(env));
}

}  // namespace tilework::binding
