// Runs of a plan that read their source from a file, and runs that write to one.
#pragma once

#include <napi.h>

#include <memory>

#include "reorder/plan/plan.h"

namespace tilework::binding {

// Arguments: lib/native/types.ts.
Napi::Value run_file(const Napi::CallbackInfo& info, std::shared_ptr<const ReorderPlan> plan);
Napi::Value run_file_sync(const Napi::CallbackInfo& info, std::shared_ptr<const ReorderPlan> plan);
Napi::Value run_to_file(const Napi::CallbackInfo& info, std::shared_ptr<const ReorderPlan> plan);

}  // namespace tilework::binding
