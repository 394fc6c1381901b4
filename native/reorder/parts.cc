#include "reorder/parts.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "cpu/cache.h"
#include "io/checked_math.h"
#include "reorder/boxes.h"

namespace tilework {
namespace {

// Parts a thread, so that threads that are held up do not hold up the rest.
constexpr int64_t kPartsPerThread = 4;

// The plan that does the work of another: over units of it, where they cover all of the destination.
const ReorderPlan* plan_to_cut(const ReorderPlan& plan) {
  if (plan.units() == nullptr) return &plan;
  const int64_t elements = plan.units()->element_bits() / plan.element_bits();
  return plan.destination_elements() % elements == 0 ? plan.units() : nullptr;
}

// Bytes of a row of the source from which on ranges of the destination may have a piece of it each.
constexpr int64_t kLongPiece = 4 * kLineBytes;

// Bytes of the destination over which the runs of one block go; 0 where runs do not stand beside others, or
// come between those of other blocks. Everywhere, where loops over blocks are the outer ones of the walk.
int64_t reach_of_runs(const ReorderPlan& plan) {
  if (plan.nests().size() != 1) return 0;
  if (plan.ordered(0) && plan.ordered(0)->is_hoisted) return plan.destination_bytes();
  if (plan.nest_class() != NestClass::kRuns) return 0;
  const std::optional<size_t> level = plan.inner_loops().front().column_level;
  if (!level) return 0;
  const Node& column = plan.nests().front().nodes[*level];
  if (column.span > column.destination_stride) return 0;
  return column.count * column.destination_stride * plan.element_bits() / 8;
}

// Whether the runs that `most` bytes of the destination have are a long piece of the source, so that ranges
// need not have all runs of a block.
bool has_near_runs(const ReorderPlan& plan, int64_t most) {
  const bool is_hoisted = plan.ordered(0) && plan.ordered(0)->is_hoisted;
  if (plan.nest_class() != NestClass::kRuns || is_hoisted) return false;
  const Node& column = plan.nests().front().nodes[*plan.inner_loops().front().column_level];
  const int64_t bytes = most / column.destination_stride;
  return bytes >= ceil_div(kLongPiece, std::max<int64_t>(column.source_stride, 1));
}

// Whether ranges of `most` bytes of the destination would have so few columns of tiles that they read a short
// piece of each row of the source, where all columns are a longer one.
bool has_far_columns(const ReorderPlan& plan, int64_t most) {
  if (plan.nests().size() != 1 || plan.nest_class() != NestClass::kTiles) return false;
  if (plan.element_bits() < 8) return false;
  const Node& column = plan.nests().front().nodes[*plan.inner_loops().front().column_level];
  const int64_t element_bytes = plan.element_bits() / 8;
  const int64_t columns = most / (column.destination_stride * element_bytes);
  return columns < column.count && columns * element_bytes < kLongPiece &&
         column.count * element_bytes > kLineBytes;
}

bool has_boxes(const ReorderPlan& plan) {
  for (size_t i = 0; i < plan.nests().size(); ++i) {
    if (plan.box(i) != nullptr) return true;
  }
  return false;
}

bool can_cut_loops(const ReorderPlan& plan) {
  if (plan.nests().size() != 1) return false;
  const bool has_rectangles = plan.nest_class() == NestClass::kTiles ||
                              plan.nest_class() == NestClass::kRuns || plan.transpose(0) != nullptr;
  if (!has_rectangles) return false;
  return plan.nests().front().lookups.empty() && plan.element_bits() >= 8;
}

}  // namespace

ReorderParts::ReorderParts(std::shared_ptr<const ReorderPlan> plan, int64_t begin, int64_t end,
                           size_t threads, PartLimits limits)
    : plan_(std::move(plan)),
      begin_(begin),
      end_(end),
      stores_(plan_->stores_of_whole(threads)),
      part_bytes_(end - begin) {
  const int64_t bytes = end - begin;
  const double read = static_cast<double>(plan_->source_bytes()) * static_cast<double>(bytes) /
                      static_cast<double>(std::max<int64_t>(plan_->destination_bytes(), 1));
  if (bytes == 0 || read + static_cast<double>(bytes) < static_cast<double>(limits.threaded)) return;
  const int64_t wanted = static_cast<int64_t>(threads) * kPartsPerThread;
  const int64_t share = std::clamp(bytes / wanted, limits.least, limits.most);
  const bool is_all = begin == 0 && end == plan_->destination_bytes();
  const ReorderPlan* to_cut = plan_to_cut(*plan_);
  const int64_t reach = to_cut == nullptr ? 0 : reach_of_runs(*to_cut);
  const bool cuts_runs =
      (reach > share || (reach > 0 && bytes / reach < wanted)) && !has_near_runs(*to_cut, share);
  if (is_all && cuts_runs && cut_between_columns(ceil_div(bytes, share))) return;
  const bool is_far = to_cut != nullptr && has_far_columns(*to_cut, limits.most);
  if (is_all && is_far && cut_innermost_loop(ceil_div(bytes, share))) return;
  const int64_t unit =
      0 < reach && reach <= limits.most ? std::lcm(reach, kLineBytes) : plan_->range_unit(limits.most);
  const bool are_few = unit > share && bytes / unit < wanted;
  if (is_all && are_few && cut_innermost_loop(ceil_div(bytes, share))) return;
  // One thread gains nothing by parts that cut rectangles; nor do several by parts that cut boxes, which are
  // then moved element by element.
  cut_at_units(are_few && threads > 1 && !has_boxes(*plan_) ? kLineBytes : unit, share);
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
  if (plan == nullptr || !can_cut_loops(*plan) || plan->nest_class() == NestClass::kRuns) return false;
  return cut_loop(*plan, plan->nests().front().nodes.size() - 1, parts);
}

// Runs of one block that go to places farther apart than a part: a range of the destination has the runs of
// some places alone, and every line of the source would be read for each of them. The loops between have all.
bool ReorderParts::cut_between_columns(int64_t parts) {
  const ReorderPlan* plan = plan_to_cut(*plan_);
  if (plan == nullptr || !can_cut_loops(*plan)) return false;
  const std::vector<Node>& nodes = plan->nests().front().nodes;
  const size_t column = *plan->inner_loops().front().column_level;
  const auto first = nodes.begin() + static_cast<std::ptrdiff_t>(column) + 1;
  const auto longest = std::max_element(first, nodes.end() - 1,
                                        [](const Node& a, const Node& b) { return a.count < b.count; });
  if (longest == nodes.end() - 1) return false;
  return cut_loop(*plan, static_cast<size_t>(longest - nodes.begin()), parts);
}

bool ReorderParts::cut_loop(const ReorderPlan& plan, size_t level, int64_t parts) {
  const LoopNest& nest = plan.nests().front();
  const int64_t passes = nest.nodes[level].count;
  // As many as end with a cache line.
  const int64_t pass_bits = nest.nodes[level].destination_stride * plan.element_bits();
  const int64_t line = kLineBytes * 8 / std::gcd(pass_bits, kLineBytes * 8);
  const int64_t share = ceil_div(ceil_div(passes, std::min(parts, kMaxLoopParts)), line) * line;
  if (share >= passes) return false;
  Box box;
  for (const Node& node : nest.nodes) box.push_back({0, node.count});
  for (int64_t begin = 0; begin < passes; begin += share) {
    box[level] = {begin, std::min(begin + share, passes)};
    std::optional<LoopNest> part = nest_of_box(nest, box);
    if (!part) continue;
    loop_parts_.emplace_back(plan.element_bits(), std::move(*part), plan.source_elements(),
                             plan.destination_elements());
  }
  cut_ = Cut::kLoop;
  count_ = static_cast<int64_t>(loop_parts_.size());
  part_bytes_ = ceil_div(plan_->destination_bytes(), std::max<int64_t>(count_, 1));
  return true;
}

void ReorderParts::run(int64_t part, const uint8_t* source, uint8_t* destination) const {
  if (cut_ == Cut::kLoop) {
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
