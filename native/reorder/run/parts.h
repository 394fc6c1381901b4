// How a run of a plan is cut for threads: into iterations of a loop around its tiles, or into ranges of the
// destination that end where tiles end: plans that have not one program (copies, pixels, casts to fewer than
// 8 bits, several nests), elements of 4 bits, and less than half of a destination. No two parts write the
// same cache line but where a tile has no whole lines. What is written does not depend on the cut.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "policy/thresholds.h"
#include "reorder/plan/plan.h"

namespace tilework {

struct PartLimits {
  // Bytes of source and destination from which on a run is cut at all.
  Threshold threaded;
  // Bytes of a part's destination.
  Threshold least;
  Threshold most;
  // The same where a thread has several parts, all threads have as many, and all parts have the same size.
  Threshold least_of_several;
};

inline constexpr PartLimits kPartLimits{kThreadedBytes, kLeastPartBytes, kMostPartBytes,
                                        kLeastOfSeveralBytes};

class ReorderParts {
 public:
  // How the destination is cut.
  enum class Cut { kWhole, kRanges, kLoop };

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
  std::string stores_reason() const;
  int64_t count() const { return count_; }
  // Bytes of the destination that most parts have.
  int64_t part_bytes() const { return part_bytes_; }

  // Parts may run in any order and at the same time. `source` has all of the plan's bytes, `destination`
  // those from begin() to end().
  void run(int64_t part, const uint8_t* source, uint8_t* destination) const {
    run(part, source, destination, stores_);
  }
  // As above, with the stores of a larger result that the destination is a part of.
  void run(int64_t part, const uint8_t* source, uint8_t* destination, Stores stores) const;

 private:
  void cut_at_units(int64_t unit, int64_t share);
  bool cut_loops(int64_t parts);
  bool has_equal_parts() const;
  OuterRange iterations_of(int64_t part) const;

  std::shared_ptr<const ReorderPlan> plan_;
  int64_t begin_;
  int64_t end_;
  size_t threads_;
  Stores stores_;
  Cut cut_ = Cut::kWhole;
  int64_t count_ = 1;
  int64_t part_bytes_;
  // Of the loops that are cut, outermost first: how many of its iterations a part has.
  struct CutLoop {
    int64_t iterations;
    int64_t step;
    bool is_guarded;
  };
  std::vector<CutLoop> loops_;
};

}  // namespace tilework
