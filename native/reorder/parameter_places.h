// Which parameters of a scaling belong to which place of a reorder's result. The parameters are a small
// tensor of their own, with one entry for each block of the source; the nest that reorders from that tensor
// to the result's layout, every block again and again, tells it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "reorder/plan.h"

namespace tilework {

class NestPlaces : public ParameterPlaces {
 public:
  // Nests whose source is the tensor of parameters.
  explicit NestPlaces(std::vector<LoopNest> nests) : nests_(std::move(nests)) {}

  const std::vector<LoopNest>& nests() const { return nests_; }
  void find(int64_t first, int64_t last, std::vector<ParameterRun>& runs) const override;

 private:
  std::vector<LoopNest> nests_;
};

// Null where all elements have the same. Errors: ERR_ARGUMENT where there is not an entry for each block;
// what binding the sides of the description throws.
std::shared_ptr<const NestPlaces> parameter_places(const ReorderDescription& description,
                                                   const ScalingDescription& scaling);

}  // namespace tilework
