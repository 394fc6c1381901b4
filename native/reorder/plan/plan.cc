#include "reorder/plan/plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cpu/cache.h"
#include "dtype/dtypes.h"
#include "error.h"
#include "io/checked_math.h"
#include "layout/loop_nest.h"
#include "policy/stores.h"
#include "reorder/cast/fused_cast.h"
#include "reorder/kernels.h"

namespace tilework {
namespace {

constexpr ReorderKernel kKernels[] = {
#define TILEWORK_REORDER_KERNEL(name, moves, isa, reason) {#name, Moves::moves, Isa::isa, &name, reason},
#include "reorder/kernels.def"
#undef TILEWORK_REORDER_KERNEL
};

// Elements of 2 bits and 6 bits are copied only.
constexpr int kElementBits[] = {2, 4, 6, 8, 16, 32, 64, 128};

int checked_bits(int bits) {
  if (std::find(std::begin(kElementBits), std::end(kElementBits), bits) == std::end(kElementBits)) {
    throw Error(ErrorCode::kArgument,
                "'elementBits' is " + std::to_string(bits) + ", not 2, 4, 6, 8, 16, 32, 64 or 128.");
  }
  return bits;
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
  const int64_t group = elements_per_group(plan.element_bits());
  if (nest.source_base % group != 0) return std::nullopt;
  return nest.source_base / group * (group * plan.element_bits() / 8);
}

double passes_of(const LoopNest& nest) {
  double passes = 1;
  for (const Node& node : nest.nodes) passes *= static_cast<double>(node.count);
  return passes;
}

// Number of the nest that does most; none where there is nothing to do.
std::optional<size_t> largest_nest(const std::vector<LoopNest>& nests) {
  const auto largest = std::max_element(nests.begin(), nests.end(), [](const LoopNest& a, const LoopNest& b) {
    return passes_of(a) < passes_of(b);
  });
  if (largest == nests.end()) return std::nullopt;
  return static_cast<size_t>(largest - nests.begin());
}

bool is_even(int64_t value) { return value % 2 == 0; }

// A nest of 4-bit elements as one of bytes, where no byte is split; else null.
std::optional<LoopNest> over_bytes(const LoopNest& nest) {
  LoopNest bytes = nest;
  Node& inner = bytes.nodes.back();
  const bool is_run = inner.source_stride == 1 && inner.destination_stride == 1 && inner.variable == kNone &&
                      inner.lookup == kNone && is_even(inner.count);
  if (!is_run || !nest.lookups.empty() || !is_even(nest.source_base) || !is_even(nest.destination_base))
    return std::nullopt;
  inner.count /= 2;
  bytes.source_base /= 2;
  bytes.destination_base /= 2;
  for (size_t i = 0; i + 1 < bytes.nodes.size(); ++i) {
    Node& node = bytes.nodes[i];
    if (!is_even(node.source_stride) || !is_even(node.destination_stride)) return std::nullopt;
    node.source_stride /= 2;
    node.destination_stride /= 2;
  }
  return finish_nest(bytes) ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace

std::span<const ReorderKernel> reorder_kernels() { return kKernels; }

const Leaves& best_leaves() {
  switch (best_isa()) {
#if defined(__x86_64__)
    case Isa::kAvx512:
    case Isa::kAvx2:
      return leaves_avx2();
#elif defined(__aarch64__)
    case Isa::kNeon:
      return leaves_neon();
#endif
    default:
      return leaves();
  }
}

bool fits(const ReorderKernel& kernel, const ReorderPlan& plan) {
  return kernel.moves == plan.moves() && can_run(kernel.isa);
}

void run_programs(const ReorderArguments& a, const Leaves& leaves) {
  for (const auto& made : a.plan.programs()) {
    if (&made->leaves() == &leaves) {
      made->run(a.source, a.destination, a.begin, a.end, a.stores, a.part);
    } else {
      made->with(leaves)->run(a.source, a.destination, a.begin, a.end, a.stores, a.part);
    }
  }
  a.plan.clear_unused_bits(a.destination, a.begin, a.end);
}

ReorderPlan::ReorderPlan(const ReorderDescription& description)
    : element_bits_(checked_bits(description.element_bits)) {
  if (!description.casts.empty()) {
    cast_ = std::make_shared<const FusedCast>(description);
    source_elements_ = cast_->moves().source_elements();
    destination_elements_ = cast_->moves().destination_elements();
    source_bytes_ = cast_->moves().source_bytes();
    destination_bytes_ = cast_->destination_bytes();
    kernel_ = cast_->moves().kernel_;
    return;
  }
  const std::vector<int64_t>& whole = description.slice ? description.slice->shape : description.shape;
  const BoundSide from = bind_side(whole, description.from, "from");
  const BoundSide to = bind_side(description.shape, description.to, "to");
  source_elements_ = from.elements;
  destination_elements_ = to.elements;
  source_bytes_ = packed_bytes(element_bits_, source_elements_);
  destination_bytes_ = packed_bytes(element_bits_, destination_elements_);
  nests_ = join(description.shape, from, to, bind_slice(description.shape, description.slice));
  copy_offset_ = copy_offset_of(*this);
  choose_kernel();
}

ReorderPlan::ReorderPlan(int element_bits, std::vector<LoopNest> nests, int64_t source_elements,
                         int64_t destination_elements)
    : element_bits_(element_bits),
      source_elements_(source_elements),
      destination_elements_(destination_elements),
      source_bytes_(packed_bytes(element_bits, source_elements)),
      destination_bytes_(packed_bytes(element_bits, destination_elements)),
      nests_(std::move(nests)) {
  choose_kernel();
}

void ReorderPlan::choose_kernel() {
  if (!copy_offset_ && !moves_elements(element_bits_)) {
    throw Error(ErrorCode::kUnsupported,
                "No reorder kernel moves elements of " + std::to_string(element_bits_) + " bits.");
  }
  if (!copy_offset_) make_programs();
  kernel_ = std::find_if(std::begin(kKernels), std::end(kKernels),
                         [this](const ReorderKernel& at) { return fits(at, *this); });
}

void ReorderPlan::make_programs() {
  for (const LoopNest& nest : nests_) {
    const std::optional<LoopNest> bytes = element_bits_ < 8 ? over_bytes(nest) : std::nullopt;
    programs_.push_back(std::make_shared<const TileProgram>(bytes ? *bytes : nest, bytes ? 8 : element_bits_,
                                                            destination_bytes_, best_leaves()));
  }
}

std::span<const std::shared_ptr<const TileProgram>> ReorderPlan::programs() const {
  return cast_ ? cast_->programs() : programs_;
}

void ReorderPlan::run(const ReorderArguments& arguments) const {
  if (cast_) {
    cast_->run(arguments);
  } else {
    kernel_->run(arguments);
  }
}

int64_t ReorderPlan::unused_bits() const {
  return element_bits_ < 8 ? destination_bytes_ * 8 - destination_elements_ * element_bits_ : 0;
}

void ReorderPlan::clear_unused_bits(uint8_t* destination, int64_t begin, int64_t end) const {
  if (unused_bits() > 0 && end == destination_bytes_ && begin < end)
    destination[end - begin - 1] &= static_cast<uint8_t>(0xFF >> unused_bits());
}

int64_t ReorderPlan::range_quantum() const {
  return cast_ ? cast_->range_quantum() : std::max(element_bits_ / 8, 1);
}

int64_t ReorderPlan::range_unit(int64_t most) const {
  if (cast_) return cast_->range_unit(most);
  const std::optional<size_t> largest = largest_nest(nests_);
  if (!largest || copy_offset_) return kLineBytes;
  const int64_t bytes = programs_[*largest]->reach_bytes();
  return bytes < kLineBytes || bytes > most ? kLineBytes : bytes;
}

Stores ReorderPlan::stores_of_whole(size_t threads, int64_t result_bytes) const {
  return choose_stores(source_bytes_ + std::max(destination_bytes_, result_bytes), threads);
}

std::string ReorderPlan::reason() const { return cast_ ? cast_->reason() : reason_of(programs_); }

std::string ReorderPlan::reason_of(std::span<const std::shared_ptr<const TileProgram>> programs) const {
  std::string reason = kernel_->reason;
  if (copy_offset_) {
    const bool is_all = source_bytes_ == destination_bytes_;
    return is_all ? "both storages are equal byte for byte"
                  : reason + ", from byte " + std::to_string(*copy_offset_) + " on";
  }
  if (const std::optional<size_t> largest = largest_nest(nests_); largest && !programs.empty()) {
    reason += "; " + programs[*largest]->summary();
  }
  const bool looks_up =
      std::any_of(nests_.begin(), nests_.end(), [](const LoopNest& nest) { return !nest.lookups.empty(); });
  if (looks_up) reason += "; extents, paddings and blocks do not divide each other, so offsets are looked up";
  if (nests_.size() > 1) {
    reason +=
        "; " + std::to_string(nests_.size()) + " nests, as a layout stores a part of the tensor differently";
  }
  return reason;
}

WayShares ReorderPlan::ways(Stores stores) const {
  if (cast_) return cast_->ways(stores);
  WayShares shares;
  for (const auto& program : programs_) program->add_ways(stores, shares);
  return shares;
}

void ReorderPlan::check_range(int64_t begin, int64_t end) const {
  if (begin < 0 || begin > end || end > destination_bytes_) {
    throw Error(ErrorCode::kArgument, "The destination range [" + std::to_string(begin) + ", " +
                                          std::to_string(end) + ") does not lie in the " +
                                          std::to_string(destination_bytes_) + " bytes of the destination.");
  }
  const int64_t unit = range_quantum();
  if (begin % unit != 0 || (end % unit != 0 && end != destination_bytes_)) {
    throw Error(ErrorCode::kArgument, "The destination range [" + std::to_string(begin) + ", " +
                                          std::to_string(end) + ") cuts an element of " +
                                          std::to_string(unit) + " bytes.");
  }
}

}  // namespace tilework
