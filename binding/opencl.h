// OpenCL devices, and runs of a plan on one.
#pragma once

#include <napi.h>

#include <memory>

#include "reorder/plan/plan.h"

namespace tilework::binding {

// Arguments and results: lib/native/types.ts.
Napi::Value devices(const Napi::CallbackInfo& info);
Napi::Value run_on_device(const Napi::CallbackInfo& info, std::shared_ptr<const ReorderPlan> plan);
Napi::Value time_on_device(const Napi::CallbackInfo& info, std::shared_ptr<const ReorderPlan> plan);

}  // namespace tilework::binding
