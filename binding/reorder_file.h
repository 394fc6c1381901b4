// Runs of a plan on the source in a file: through its map where it has one, else by reads; and into a file.
#pragma once

#include <napi.h>

#include <memory>

#include "reorder/plan.h"

namespace tilework::binding {

// Arguments as in lib/native.ts.
Napi::Value run_file(const Napi::CallbackInfo& info, std::shared_ptr<const ReorderPlan> plan);
Napi::Value run_file_sync(const Napi::CallbackInfo& info, std::shared_ptr<const ReorderPlan> plan);
Napi::Value run_to_file(const Napi::CallbackInfo& info, std::shared_ptr<const ReorderPlan> plan);

}  // namespace tilework::binding
