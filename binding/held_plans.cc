#include "held_plans.h"

namespace tilework::binding {

HeldPlans::Entry HeldPlans::add(Napi::Env env, HeldPlan* object, int64_t bytes) {
  const Entry entry = objects_.insert(objects_.end(), object);
  bytes_ += bytes;
  if (bytes_ - reported_bytes_ >= kReportedBytes) report(env);
  return entry;
}

void HeldPlans::remove(Napi::Env env, Entry entry, int64_t bytes) {
  objects_.erase(entry);
  bytes_ -= bytes;
  if (reported_bytes_ - bytes_ >= kReportedBytes) report(env);
}

// V8 may collect garbage here; that runs no finalizers.
void HeldPlans::report(Napi::Env env) {
  const int64_t change = bytes_ - reported_bytes_;
  reported_bytes_ = bytes_;
  Napi::MemoryManagement::AdjustExternalMemory(env, change);
}

void HeldPlans::free_collected(Napi::Env env) {
  const Napi::HandleScope scope(env);
  if (!witness_.IsEmpty() && !witness_.Value().IsEmpty()) return;
  for (auto next = objects_.begin(); next != objects_.end();) {
    HeldPlan* object = *next++;
    if (object->is_collected()) object->free_plan();
  }
  witness_ = Napi::Weak(Napi::Object::New(env));
}

}  // namespace tilework::binding
