// What a run reads of the source and writes of the destination, as lists of ranges: found by the walk that
// would move it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "reorder/plan/panel.h"

namespace tilework {

struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const ByteRange&) const = default;
};

// `count` places, each `step` after the one before.
struct Repeat {
  int64_t count = 1;
  int64_t step = 0;
};

// Collects ranges in any order. They count what the caller counts.
class RangeSet {
 public:
  static constexpr size_t kNoLimit = std::numeric_limits<size_t>::max() / 4;

  // Ranges that are no more than `gap` apart become one. Where that leaves more than `most`, the gap grows.
  explicit RangeSet(int64_t gap, size_t most = kNoLimit) : gap_(gap), most_(most) {}

  int64_t gap() const { return gap_; }

  // [begin, begin + size), and again at each combination of the repeats. Their order does not matter: those
  // that leave no gaps make one long range, and only the others are walked.
  void add(int64_t begin, int64_t size, std::array<Repeat, 2> repeats = {});

  // Ascending. The set is empty then.
  std::vector<ByteRange> take();

 private:
  void add_range(int64_t begin, int64_t end);
  void merge();

  int64_t gap_;
  size_t most_;
  std::vector<ByteRange> ranges_;
};

// Ranges of offsets of which `per_byte` are a byte, widened to whole bytes.
std::vector<ByteRange> whole_bytes(std::vector<ByteRange> ranges, int64_t per_byte);

// Takes panels in place of their leaves. Either set may be null.
struct Footprint {
  RangeSet* read = nullptr;
  RangeSet* written = nullptr;

  void add(const Panel& panel) const;
};

}  // namespace tilework
