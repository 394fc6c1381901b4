#include "reorder/plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "error.h"
#include "io/checked_math.h"
#include "reorder/kernels.h"

namespace tilework {
namespace {

constexpr ReorderKernel kKernels[] = {
#define TILEWORK_REORDER_KERNEL(name, bits, nest_class, reason) \
  {#name, bits, NestClass::nest_class, &name, reason},
#include "reorder/kernels.def"
#undef TILEWORK_REORDER_KERNEL
};

constexpr int kElementBits[] = {4, 8, 16, 32, 64, 128};

int checked_bits(int bits) {
  if (std::find(std::begin(kElementBits), std::end(kElementBits), bits) == std::end(kElementBits)) {
    throw Error("ERR_ARGUMENT",
                "'elementBits' is " + std::to_string(bits) + ", not 4, 8, 16, 32, 64 or 128.");
  }
  return bits;
}

int64_t bytes_of(int64_t elements, int bits) {
  if (bits == 4) return elements / 2 + elements % 2;
  return checked_mul(elements, bits / 8, "The number of storage bytes");
}

// Loops that step alike were merged, so a destination that is one range of the source is a single run.
std::optional<int64_t> copy_offset_of(const ReorderPlan& plan) {
  if (plan.destination_elements() == 0) return 0;
  if (plan.nests().size() != 1) return std::nullopt;
  const LoopNest& nest = plan.nests().front();
  const Node& node = nest.nodes.front();
  const bool is_run = nest.nodes.size() == 1 && !nest.all_zero && node.variable == kNone &&
                      node.lookup == kNone && node.source_stride == 1 && node.destination_stride == 1 &&
                      node.count == plan.destination_elements();
  if (!is_run) return std::nullopt;
  if (plan.element_bits() >= 8) return nest.source_base * (plan.element_bits() / 8);
  // The half byte behind the last element is zero in the destination and may be anything in the source.
  const bool is_whole = nest.source_base % 2 == 0 && plan.destination_elements() % 2 == 0;
  return is_whole ? std::optional(nest.source_base / 2) : std::nullopt;
}

NestClass class_of(const ReorderPlan& plan) {
  if (!plan.copy_offset()) return NestClass::kLoopNest;
  const bool is_all = plan.source_bytes() == plan.destination_bytes();
  return is_all ? NestClass::kIdentity : NestClass::kView;
}

const ReorderKernel& kernel_for(int bits, NestClass nest_class) {
  for (const ReorderKernel& kernel : kKernels) {
    const bool bits_fit = kernel.element_bits == 0 || kernel.element_bits == bits;
    if (bits_fit && kernel.nest_class == nest_class) return kernel;
  }
  throw Error("ERR_UNSUPPORTED", "No reorder kernel moves elements of " + std::to_string(bits) + " bits.");
}

}  // namespace

std::span<const ReorderKernel> reorder_kernels() { return kKernels; }

ReorderPlan::ReorderPlan(const ReorderDescription& description)
    : element_bits_(checked_bits(description.element_bits)) {
  const std::vector<int64_t>& whole = description.slice ? description.slice->shape : description.shape;
  const BoundSide from = bind_side(whole, description.from, "from");
  const BoundSide to = bind_side(description.shape, description.to, "to");
  source_elements_ = from.elements;
  destination_elements_ = to.elements;
  source_bytes_ = bytes_of(source_elements_, element_bits_);
  destination_bytes_ = bytes_of(destination_elements_, element_bits_);
  nests_ = join(description.shape, from, to, bind_slice(description.shape, description.slice));
  copy_offset_ = copy_offset_of(*this);
  nest_class_ = class_of(*this);
  kernel_ = &kernel_for(element_bits_, nest_class_);
}

ReorderPlan::ReorderPlan(int element_bits, LoopNest nest, int64_t source_elements,
                         int64_t destination_elements)
    : element_bits_(element_bits),
      source_elements_(source_elements),
      destination_elements_(destination_elements),
      source_bytes_(bytes_of(source_elements, element_bits)),
      destination_bytes_(bytes_of(destination_elements, element_bits)),
      nest_class_(NestClass::kLoopNest),
      kernel_(&kernel_for(element_bits, nest_class_)) {
  nests_.push_back(std::move(nest));
}

std::string ReorderPlan::reason() const {
  std::string reason = kernel_->reason;
  if (nest_class_ == NestClass::kView) reason += ", from byte " + std::to_string(*copy_offset_) + " on";
  bool lookup = false;
  for (const LoopNest& nest : nests_) lookup = lookup || !nest.lookups.empty();
  if (lookup) reason += "; extents, paddings and blocks do not divide each other, so offsets are looked up";
  if (nests_.size() > 1) {
    reason +=
        "; " + std::to_string(nests_.size()) + " nests, as a layout stores a part of the tensor differently";
  }
  return reason;
}

void ReorderPlan::check_range(int64_t begin, int64_t end) const {
  if (begin < 0 || begin > end || end > destination_bytes_) {
    throw Error("ERR_ARGUMENT", "The destination range [" + std::to_string(begin) + ", " +
                                    std::to_string(end) + ") does not lie in the " +
                                    std::to_string(destination_bytes_) + " bytes of the destination.");
  }
  const int64_t unit = std::max(element_bits_ / 8, 1);
  if (begin % unit != 0 || end % unit != 0) {
    throw Error("ERR_ARGUMENT", "The destination range [" + std::to_string(begin) + ", " +
                                    std::to_string(end) + ") cuts an element of " + std::to_string(unit) +
                                    " bytes.");
  }
}

}  // namespace tilework
