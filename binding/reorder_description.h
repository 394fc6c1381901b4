// The description of a plan, from JavaScript. Types are checked here, what the numbers mean by the core.
#pragma once

#include <napi.h>

#include "reorder/plan.h"

namespace tilework::binding {

// Errors: ERR_ARGUMENT, ERR_OVERFLOW; what a getter of the description throws.
ReorderDescription description_of(const Napi::Value& value);

}  // namespace tilework::binding
