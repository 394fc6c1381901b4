#include "reorder/plan/footprint.h"

#include <algorithm>
#include <utility>

#include "io/checked_math.h"

namespace tilework {
namespace {

// Steps towards fewer ranges.
constexpr int64_t kGapGrowth = 8;

}  // namespace

void RangeSet::add(int64_t begin, int64_t size, std::array<Repeat, 2> repeats) {
  if (size <= 0) return;
  for (Repeat& repeat : repeats) {
    if (repeat.count == 1) repeat.step = 0;
    if (repeat.step >= 0) continue;
    begin += (repeat.count - 1) * repeat.step;
    repeat.step = -repeat.step;
  }
  auto& [near, far] = repeats;
  if (near.step > far.step) std::swap(near, far);
  for (Repeat* repeat : {&near, &far}) {
    if (repeat->step - size > gap_) break;
    size += (repeat->count - 1) * repeat->step;
    *repeat = {};
  }
  for (int64_t i = 0; i < far.count; ++i) {
    for (int64_t k = 0; k < near.count; ++k) {
      const int64_t at = begin + i * far.step + k * near.step;
      add_range(at, at + size);
    }
  }
}

void RangeSet::add_range(int64_t begin, int64_t end) {
  if (!ranges_.empty() && begin >= ranges_.back().begin && begin - ranges_.back().end <= gap_) {
    ranges_.back().end = std::max(ranges_.back().end, end);
    return;
  }
  ranges_.push_back({begin, end});
  if (ranges_.size() > 2 * most_) merge();
}

void RangeSet::merge() {
  const auto is_before = [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; };
  if (!std::is_sorted(ranges_.begin(), ranges_.end(), is_before)) {
    std::sort(ranges_.begin(), ranges_.end(), is_before);
  }
  for (;;) {
    size_t count = 0;
    for (const ByteRange& range : ranges_) {
      if (count > 0 && range.begin - ranges_[count - 1].end <= gap_) {
        ranges_[count - 1].end = std::max(ranges_[count - 1].end, range.end);
      } else {
        ranges_[count++] = range;
      }
    }
    ranges_.resize(count);
    if (count <= most_) return;
    gap_ = (gap_ + 1) * kGapGrowth;
  }
}

std::vector<ByteRange> RangeSet::take() {
  merge();
  return std::exchange(ranges_, {});
}

std::vector<ByteRange> whole_bytes(std::vector<ByteRange> ranges, int64_t per_byte) {
  for (ByteRange& range : ranges) range = {range.begin / per_byte, ceil_div(range.end, per_byte)};
  return ranges;
}

namespace {

// Calls body(offset, repeat) for places of rows or columns: once, or for each of a list.
template <class Body>
void each_place(const int64_t* list, Repeat even, Body body) {
  static_assert(kNoSource == kDropped);
  if (list == nullptr) return body(0, even);
  for (int64_t i = 0; i < even.count; ++i) {
    if (list[i] != kNoSource) body(list[i], Repeat{});
  }
}

// A set of one panel, at each of its steps.
void add_steps(RangeSet one, int64_t begin, Repeat inner, Repeat outer, RangeSet& all) {
  for (const ByteRange& range : one.take()) all.add(begin + range.begin, range.size(), {inner, outer});
}

void add_read(const Panel& panel, RangeSet& read) {
  RangeSet one(read.gap());
  const int64_t valid = panel.rows - panel.zero_rows;
  each_place(panel.row_at, {valid, panel.row_stride}, [&](int64_t row, Repeat rows) {
    if (valid == 0) return;
    if (panel.dropped == 0) {
      return one.add(row, panel.unit_bytes, {rows, {panel.columns, panel.column_step}});
    }
    for (int64_t c = 0; c < panel.columns; ++c) {
      if (panel.column_at[c] != kDropped) one.add(row + c * panel.column_step, panel.unit_bytes, {rows});
    }
  });
  one.add(panel.rows * panel.row_stride, panel.rest_bytes);
  const Repeat inner{panel.inner.count, panel.inner.source};
  const Repeat outer{panel.outer.count, panel.outer.source};
  add_steps(std::move(one), panel.source_offset, inner, outer, read);
}

void add_written(const Panel& panel, RangeSet& written) {
  RangeSet one(written.gap());
  const int64_t bytes = panel.rows * panel.unit_bytes + panel.rest_bytes + panel.zero_bytes;
  each_place(panel.column_at, {panel.columns, panel.column_stride},
             [&](int64_t column, Repeat columns) { one.add(column, bytes, {columns}); });
  const Repeat inner{panel.inner.count, panel.inner.destination};
  const Repeat outer{panel.outer.count, panel.outer.destination};
  add_steps(std::move(one), panel.destination_offset, inner, outer, written);
}

}  // namespace

void Footprint::add(const Panel& panel) const {
  if (read != nullptr) add_read(panel, *read);
  if (written != nullptr) add_written(panel, *written);
}

}  // namespace tilework
