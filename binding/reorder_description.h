// Reads the description of a plan from JavaScript. Checks types; the core checks values.
#pragma once

#include <napi.h>

#include "reorder/plan/plan.h"

namespace tilework::binding {

// Errors: ERR_ARGUMENT, ERR_OVERFLOW; whatever a getter of the description throws.
ReorderDescription description_of(const Napi::Value& value);

}  // namespace tilework::binding
