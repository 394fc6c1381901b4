#include "reorder/parts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "io/checked_math.h"
#include "reorder/boxes.h"

namespace tilework {
namespace {

// Parts a thread, so that threads that are held up do not hold up the rest. One alone waits for nobody.
constexpr int64_t kPartsPerThread = 4;
constexpr int64_t kCacheLine = 64;

// The plan that does the work of another: over units of it, where they cover all of the destination.
const ReorderPlan* plan_to_cut(const ReorderPlan& plan) {
  if (plan.units() == nullptr) return &plan;
  const int64_t elements = plan.units()->element_bits() / plan.element_bits();
  return plan.destination_elements() % elements == 0 ? plan.units() : nullptr;
}

bool can_cut_loops(const ReorderPlan& plan) {
  if (plan.nests().size() != 1) return false;
  if (plan.nest_class() != NestClass::kTiles && plan.transpose(0) == nullptr) return false;
  return plan.nests().front().lookups.empty() && plan.element_bits() >= 8;
}

}  // namespace

ReorderParts::ReorderParts(std::shared_ptr<const ReorderPlan> plan, int64_t begin, int64_t end,
                           size_t threads, PartLimits limits)
    : plan_(std::move(plan)),
      begin_(begin),
      end_(end),
      stores_(plan_->stores_of_whole()),
      part_bytes_(end - begin) {
  const int64_t bytes = end - begin;
  const double read = static_cast<double>(plan_->source_bytes()) * static_cast<double>(bytes) /
                      static_cast<double>(std::max<int64_t>(plan_->destination_bytes(), 1));
  if (bytes == 0 || read + static_cast<double>(bytes) < static_cast<double>(limits.threaded)) return;
  const int64_t wanted = threads > 1 ? static_cast<int64_t>(threads) * kPartsPerThread : 1;
  const int64_t share = std::clamp(bytes / wanted, limits.least, limits.most);
  const int64_t unit = plan_->range_unit(limits.most);
  const bool is_all = begin == 0 && end == plan_->destination_bytes();
  const bool are_few = unit > share && bytes / unit < wanted;
  if (are_few && is_all && cut_innermost_loop(ceil_div(bytes, share))) return;
  // One thread gains nothing by parts that cut rectangles.
  cut_at_units(are_few && threads > 1 ? kCacheLine : unit, share);
}

ReorderParts::ReorderParts(std::shared_ptr<const ReorderPlan> plan, size_t threads, PartLimits limits)
    : ReorderParts(plan, 0, plan->destination_bytes(), threads, limits) {}

void ReorderParts::cut_at_units(int64_t unit, int64_t share) {
  part_bytes_ = ceil_div(share, unit) * unit;
  // The first range may begin inside a unit.
  count_ = ceil_div(end_, part_bytes_) - begin_ / part_bytes_;
  cut_ = count_ > 1 ? Cut::kRanges : Cut::kWhole;
}

bool ReorderParts::cut_innermost_loop(int64_t parts) {
  const ReorderPlan* plan = plan_to_cut(*plan_);
  if (plan == nullptr || !can_cut_loops(*plan)) return false;
  const LoopNest& nest = plan->nests().front();
  const int64_t passes = nest.nodes.back().count;
  const int64_t line = std::max<int64_t>(kCacheLine * 8 / plan->element_bits(), 1);
  const int64_t share = ceil_div(ceil_div(passes, std::min(parts, kMaxLoopParts)), line) * line;
  if (share >= passes) return false;
  Box box;
  for (const Node& node : nest.nodes) box.push_back({0, node.count});
  for (int64_t begin = 0; begin < passes; begin += share) {
    box.back() = {begin, std::min(begin + share, passes)};
    std::optional<LoopNest> part = nest_of_box(nest, box);
    if (!part) continue;
    loop_parts_.emplace_back(plan->element_bits(), std::move(*part), plan->source_elements(),
                             plan->destination_elements());
  }
  cut_ = Cut::kInnermostLoop;
  count_ = static_cast<int64_t>(loop_parts_.size());
  part_bytes_ = ceil_div(plan_->destination_bytes(), std::max<int64_t>(count_, 1));
  return true;
}

void ReorderParts::run(int64_t part, const uint8_t* source, uint8_t* destination) const {
  if (cut_ == Cut::kInnermostLoop) {
    loop_parts_[static_cast<size_t>(part)].run(source, destination, 0, plan_->destination_bytes(), stores_);
    return;
  }
  if (cut_ == Cut::kWhole) {
    plan_->run(source, destination, begin_, end_, stores_);
    return;
  }
  const int64_t first = (begin_ / part_bytes_ + part) * part_bytes_;
  const int64_t from = std::max(first, begin_);
  const int64_t to = std::min(first + part_bytes_, end_);
  plan_->run(source, destination + (from - begin_), from, to, stores_);
}

}  // namespace tilework
