#include "reorder/parts.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "cpu/cache.h"
#include "io/checked_math.h"

namespace tilework {
namespace {

// Parts a thread, so that threads that are held up do not hold up the rest.
constexpr int64_t kPartsPerThread = 4;

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
  // Of a smaller range most iterations have nothing to do.
  const bool is_most = bytes >= plan_->destination_bytes() / 2;
  if (is_most && cut_loop(wanted, share)) return;
  cut_at_units(plan_->range_unit(limits.most), share);
}

ReorderParts::ReorderParts(std::shared_ptr<const ReorderPlan> plan, size_t threads, PartLimits limits)
    : ReorderParts(plan, 0, plan->destination_bytes(), threads, limits) {}

void ReorderParts::cut_at_units(int64_t unit, int64_t share) {
  part_bytes_ = ceil_div(share, unit) * unit;
  // The first range may begin inside a unit.
  count_ = ceil_div(end_, part_bytes_) - begin_ / part_bytes_;
  cut_ = count_ > 1 ? Cut::kRanges : Cut::kWhole;
}

// Iterations of the outermost loop that has enough of them: loops around tiles are in the order in which
// lines and pages of the source are used up, which ranges of the destination would break.
bool ReorderParts::cut_loop(int64_t wanted, int64_t share) {
  if (plan_->programs().size() != 1) return false;
  const std::vector<Tiling::Outer>& outer = plan_->programs().front()->tiling().outer;
  const auto count = [](const Tiling::Outer& at) { return at.loop.count; };
  auto at = std::find_if(outer.begin(), outer.end(), [&](const auto& each) { return count(each) >= wanted; });
  if (at == outer.end()) at = std::ranges::max_element(outer, {}, count);
  if (at == outer.end()) return false;
  const int64_t parts = ceil_div(end_ - begin_, share);
  // As many iterations as end with a cache line.
  const int64_t line = kLineBytes / std::gcd(at->loop.destination_stride, kLineBytes);
  loop_step_ = ceil_div(ceil_div(at->loop.count, parts), line) * line;
  if (loop_step_ >= at->loop.count) return false;
  loop_level_ = static_cast<size_t>(at - outer.begin());
  cut_ = Cut::kLoop;
  count_ = ceil_div(at->loop.count, loop_step_);
  part_bytes_ = ceil_div(plan_->destination_bytes(), at->loop.count) * loop_step_;
  return true;
}

void ReorderParts::run(int64_t part, const uint8_t* source, uint8_t* destination) const {
  if (cut_ == Cut::kLoop) {
    const OuterRange iterations{loop_level_, part * loop_step_, (part + 1) * loop_step_};
    plan_->run({*plan_, source, destination, begin_, end_, stores_, iterations});
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
