// Which parameters of a scaling belong to which place of a reorder's result. The parameters are a small
// tensor of their own, with one entry for each block of the source; the nest that reorders from that tensor
// to the result's layout, every block again and again, tells it.
#pragma once

#include <memory>

#include "reorder/plan.h"

namespace tilework {

// Null where all elements have the same. Errors: ERR_ARGUMENT where there is not an entry for each block;
// what binding the sides of the description throws.
std::shared_ptr<const ParameterPlaces> parameter_places(const ReorderDescription& description,
                                                        const ScalingDescription& scaling);

}  // namespace tilework
