// The plans that the objects of one environment hold. Node-API runs the finalizer of a collected object in a
// later turn of the event loop, and a program that plans in one long loop has none: gigabytes would wait for
// it. So V8 is told what plans take, which makes it collect their objects in time, and before a plan is made
// those of collected objects are freed. JavaScript's thread only.
#pragma once

#include <napi.h>

#include <cstdint>
#include <list>

namespace tilework::binding {

class ReorderPlanObject;

class HeldPlans {
 public:
  using Place = std::list<ReorderPlanObject*>::iterator;

  // For an object whose plan takes about so many bytes.
  Place add(Napi::Env env, ReorderPlanObject* object, int64_t bytes);
  // With the bytes that were added.
  void remove(Napi::Env env, Place place, int64_t bytes);
  void free_collected(Napi::Env env);
  int64_t bytes() const { return bytes_; }

 private:
  // V8 is told when so much has changed: each time it may begin a collection of everything.
  static constexpr int64_t kToldBytes = int64_t{32} << 20;

  void tell(Napi::Env env);

  std::list<ReorderPlanObject*> objects_;
  int64_t bytes_ = 0;
  int64_t told_bytes_ = 0;
  // An object that nobody else has: while it is there, nothing was collected, and no plan need be looked at.
  Napi::ObjectReference witness_;
};

}  // namespace tilework::binding
