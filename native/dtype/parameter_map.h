// Maps elements of a reorder's result to the parameters of a scaling. The parameters are a small tensor with
// one entry per block of the source. A reorder from it to the layout of the result, with stride 0 within a
// block, gives the entry of each element.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "reorder/plan/plan.h"

namespace tilework {

class NestParameterMap : public ParameterMap {
 public:
  // Nests whose source is the tensor of parameters.
  explicit NestParameterMap(std::vector<LoopNest> nests) : nests_(std::move(nests)) {}

  const std::vector<LoopNest>& nests() const { return nests_; }
  void find(int64_t first, int64_t last, std::vector<ParameterRun>& runs) const override;

 private:
  std::vector<LoopNest> nests_;
};

// Null if every element uses the first entry. Errors: ERR_ARGUMENT unless there is one entry per block; the
// errors of bind_side.
std::shared_ptr<const NestParameterMap> parameter_map(const ReorderDescription& description,
                                                      const ScalingDescription& scaling);

}  // namespace tilework
