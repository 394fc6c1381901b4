#include "reorder/run/parts.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "cpu/cache.h"
#include "io/checked_math.h"
#include "policy/stores.h"
#include "policy/thresholds.h"

namespace tilework {
ReorderParts::ReorderParts(std::shared_ptr<const ReorderPlan> plan, int64_t begin, int64_t end,
                           size_t threads, PartLimits limits)
    : plan_(std::move(plan)),
      begin_(begin),
      end_(end),
      threads_(threads),
      stores_(plan_->stores_of_whole(threads)),
      part_bytes_(end - begin) {
  const int64_t bytes = end - begin;
  const double read = static_cast<double>(plan_->source_bytes()) * static_cast<double>(bytes) /
                      static_cast<double>(std::max<int64_t>(plan_->destination_bytes(), 1));
  if (bytes == 0 || static_cast<int64_t>(read + static_cast<double>(bytes)) < limits.threaded) return;
  // One thread gains nothing by parts, but that a run can be stopped.
  const auto share_of = [&](int64_t parts_a_thread) {
    if (threads == 1) return limits.most.value;
    const int64_t share = bytes / (static_cast<int64_t>(threads) * parts_a_thread);
    return at_most(at_least(share, limits.least), limits.most);
  };
  const int64_t a_thread = bytes / static_cast<int64_t>(threads);
  const bool has_several = a_thread >= limits.least_of_several.times(2);
  const int64_t few = has_several ? at_most(a_thread / limits.least_of_several.value, kPartsPerThread) : 1;
  // Of a smaller range most iterations have nothing to do.
  const bool is_most = bytes >= plan_->destination_bytes() / 2;
  if (is_most && cut_loops(ceil_div(bytes, share_of(few)))) {
    if (!has_equal_parts()) cut_loops(ceil_div(bytes, share_of(kPartsPerThread.value)));
    return;
  }
  cut_at_units(plan_->range_unit(limits.most.value), share_of(few));
}

ReorderParts::ReorderParts(std::shared_ptr<const ReorderPlan> plan, size_t threads, PartLimits limits)
    : ReorderParts(plan, 0, plan->destination_bytes(), threads, limits) {}

std::string ReorderParts::stores_reason() const {
  return tilework::stores_reason(plan_->source_bytes() + plan_->destination_bytes(), threads_);
}

void ReorderParts::cut_at_units(int64_t unit, int64_t share) {
  part_bytes_ = ceil_div(share, unit) * unit;
  // The first range may begin inside a unit.
  count_ = ceil_div(end_, part_bytes_) - begin_ / part_bytes_;
  cut_ = count_ > 1 ? Cut::kRanges : Cut::kWhole;
}

// Iterations of the outermost loops: these are in the order in which lines and pages of the source are used
// up, which ranges of the destination would break. As many loops as it takes; the last one is cut into
// pieces.
bool ReorderParts::cut_loops(int64_t parts) {
  // Iterations might share a byte of 4-bit elements.
  const bool can_cut = plan_->programs().size() == 1 && !plan_->programs().front()->shares_bytes();
  if (!can_cut || parts < 2) return false;
  const std::vector<Tiling::Outer>& outer = plan_->programs().front()->tiling().outer;
  loops_.clear();
  count_ = 1;
  for (const Tiling::Outer& each : outer) {
    if (loops_.size() == OuterRange::kMostLevels || count_ >= parts) break;
    const int64_t iterations = each.loop.count;
    // As many iterations as end with a cache line.
    const int64_t line = kLineBytes / std::gcd(each.loop.destination_stride, kLineBytes);
    const int64_t wanted = std::min(ceil_div(parts, count_), iterations);
    const int64_t step = std::min(ceil_div(iterations / wanted, line) * line, iterations);
    loops_.push_back({iterations, step, each.loop.variable != kNone});
    count_ *= ceil_div(iterations, step);
  }
  if (count_ == 1) {
    loops_.clear();
    return false;
  }
  cut_ = Cut::kLoop;
  part_bytes_ = ceil_div(plan_->destination_bytes(), count_);
  return true;
}

// As many for each thread, and as much to do in each: iterations outside the range, or outside a guard, do
// nothing.
bool ReorderParts::has_equal_parts() const {
  return end_ - begin_ == plan_->destination_bytes() && count_ % static_cast<int64_t>(threads_) == 0 &&
         std::all_of(loops_.begin(), loops_.end(), [](const CutLoop& loop) {
           return loop.step == loop.iterations || (!loop.is_guarded && loop.iterations % loop.step == 0);
         });
}

OuterRange ReorderParts::iterations_of(int64_t part) const {
  OuterRange range{loops_.size(), {}};
  for (size_t level = loops_.size(); level-- > 0;) {
    const int64_t iterations = loops_[level].iterations;
    const int64_t step = loops_[level].step;
    const int64_t pieces = ceil_div(iterations, step);
    const int64_t first = part % pieces * step;
    range.of_level[level] = {first, first + step};
    part /= pieces;
  }
  return range;
}

void ReorderParts::run(int64_t part, const uint8_t* source, uint8_t* destination, Stores stores) const {
  if (cut_ == Cut::kLoop) {
    TILEWORK_WAY("parts: iterations of loops");
    plan_->run({*plan_, source, destination, begin_, end_, stores, iterations_of(part)});
    return;
  }
  if (cut_ == Cut::kWhole) {
    plan_->run(source, destination, begin_, end_, stores);
    return;
  }
  TILEWORK_WAY("parts: ranges");
  const int64_t first = (begin_ / part_bytes_ + part) * part_bytes_;
  const int64_t from = std::max(first, begin_);
  const int64_t to = std::min(first + part_bytes_, end_);
  plan_->run(source, destination + (from - begin_), from, to, stores);
}

}  // namespace tilework
