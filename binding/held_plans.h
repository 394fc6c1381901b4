// Plans held by the JavaScript objects of one environment. Node-API runs the finalizer of a collected object
// on a later iteration of the event loop, so a program that plans in one long synchronous loop would
// accumulate gigabytes. Therefore V8 is informed of the size of plans, which makes it collect in time, and
// plans of collected objects are freed before a new plan is made. JavaScript's thread only.
#pragma once

#include <napi.h>

#include <cstdint>
#include <list>

namespace tilework::binding {

// A JavaScript object with a plan.
class HeldPlan {
 public:
  // Whether the object is unreachable from JavaScript. Its finalizer may still be pending.
  virtual bool is_collected() const = 0;
  // Call only for a collected object or in its destructor. Running jobs keep the plan.
  virtual void free_plan() = 0;

 protected:
  ~HeldPlan() = default;
};

class HeldPlans {
 public:
  using Entry = std::list<HeldPlan*>::iterator;

  // Registers an object with a plan of about `bytes` bytes.
  Entry add(Napi::Env env, HeldPlan* object, int64_t bytes);
  // `bytes` as in add().
  void remove(Napi::Env env, Entry entry, int64_t bytes);
  void free_collected(Napi::Env env);
  int64_t bytes() const { return bytes_; }

 private:
  // V8 is informed after each change of this size, since every call may start a full collection.
  static constexpr int64_t kReportedBytes = int64_t{32} << 20;

  void report(Napi::Env env);

  std::list<HeldPlan*> objects_;
  int64_t bytes_ = 0;
  int64_t reported_bytes_ = 0;
  // An object without other references: while it exists nothing was collected, so no plan needs to be
  // checked.
  Napi::ObjectReference witness_;
};

}  // namespace tilework::binding
