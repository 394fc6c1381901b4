// How a run of a plan is cut for threads. Parts are ranges of the destination that end where rectangles end,
// so that no two threads write a cache line and no kernel meets half a rectangle. Where such ranges are too
// few (a picture of three planes is one rectangle), parts are passes of the innermost loop: some pixels of
// every plane, so that no thread reads what another reads; and passes of another inner loop where blocks are
// taken apart to places that no range has together. What is written does not depend on the cut.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reorder/plan.h"

namespace tilework {

// Bytes of source and destination from which on a second thread gains more than it costs.
inline constexpr int64_t kThreadedBytes = int64_t{256} << 10;

struct PartLimits {
  // Bytes of source and destination from which on a run is cut at all.
  int64_t threaded;
  // Bytes of a part's destination.
  int64_t least;
  int64_t most;
};

// Against 64 KiB to start a part costs next to nothing; after 4 MiB, which take a millisecond, a run can be
// stopped.
inline constexpr PartLimits kPartLimits{kThreadedBytes, int64_t{64} << 10, int64_t{4} << 20};

class ReorderParts {
 public:
  // How the destination is cut.
  enum class Cut { kWhole, kRanges, kLoop };

  // Plans that are made and kept to cut a loop, each of about a KiB; more parts would gain nothing.
  static constexpr int64_t kMaxLoopParts = 64;
  static constexpr int64_t kMostBytes = kMaxLoopParts << 10;

  // Destination bytes [begin, end), for which `plan.check_range` holds, for so many threads. Parts are small
  // enough that a run that is to stop stops at once.
  ReorderParts(std::shared_ptr<const ReorderPlan> plan, int64_t begin, int64_t end, size_t threads,
               PartLimits limits = kPartLimits);
  // All of the destination.
  ReorderParts(std::shared_ptr<const ReorderPlan> plan, size_t threads, PartLimits limits = kPartLimits);

  const ReorderPlan& plan() const { return *plan_; }
  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }
  Cut cut() const { return cut_; }
  Stores stores() const { return stores_; }
  int64_t count() const { return count_; }
  // Bytes of the destination that most parts have.
  int64_t part_bytes() const { return part_bytes_; }

  // Parts may run in any order and at the same time. `source` has all of the plan's bytes, `destination`
  // those from begin() to end().
  void run(int64_t part, const uint8_t* source, uint8_t* destination) const;

 private:
  void cut_at_units(int64_t unit, int64_t share);
  bool cut_innermost_loop(int64_t parts);
  bool cut_between_columns(int64_t parts);
  bool cut_loop(const ReorderPlan& plan, size_t level, int64_t parts);

  std::shared_ptr<const ReorderPlan> plan_;
  int64_t begin_;
  int64_t end_;
  Stores stores_;
  Cut cut_ = Cut::kWhole;
  int64_t count_ = 1;
  int64_t part_bytes_;
  // Plans of parts of a loop.
  std::vector<ReorderPlan> loop_parts_;
};

}  // namespace tilework
