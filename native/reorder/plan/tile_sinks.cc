#include "reorder/plan/tile_sinks.h"

#include <cstring>

#include "policy/thresholds.h"
#include "reorder/leaf/nibbles.h"

namespace tilework {
namespace {

// More change no share by much.
constexpr int64_t kMostAsked = 4096;

}  // namespace

void ByteSink::move(Panel& panel, const Leaf& leaf) {
  panel.source = source_ + panel.source_offset;
  panel.destination = destination_ + panel.destination_offset;
  leaf.run(panel);
}

void ByteSink::copy(int64_t s, int64_t d, int64_t count) {
  std::memcpy(destination_ + d, source_ + s, static_cast<size_t>(count));
}

void ByteSink::clear(int64_t d, int64_t count) {
  std::memset(destination_ + d, 0, static_cast<size_t>(count));
}

void NibbleSink::move(Panel& panel, const Leaf& leaf) {
  panel.source = source_;
  panel.destination = destination_;
  leaf.run(panel);
}

void NibbleSink::copy(int64_t s, int64_t d, int64_t count) {
  copy_nibbles(source_, s, destination_, d, count);
}

void NibbleSink::clear(int64_t d, int64_t count) { zero_nibbles(destination_, d, count); }

void CastSink::move(Panel& panel, const Leaf&) {
  panel.source = source_;
  panel.destination = destination_;
  panel.origin = origin_;
  conversion_.run(panel, leaves_);
}

void CastSink::copy(int64_t s, int64_t d, int64_t count) {
  conversion_.move(source_, s, destination_, d, count, origin_);
}

void CastSink::clear(int64_t d, int64_t count) { conversion_.clear(destination_, d, count); }

void FootprintSink::move(Panel& panel, const Leaf&) { footprint_.add(panel); }

void FootprintSink::copy(int64_t s, int64_t d, int64_t count) {
  if (footprint_.read != nullptr) footprint_.read->add(s, count);
  clear(d, count);
}

void FootprintSink::clear(int64_t d, int64_t count) {
  if (footprint_.written != nullptr) footprint_.written->add(d, count);
}

void KeepingSink::move(Panel& panel, const Leaf& leaf) {
  if (static_cast<int64_t>(panels_.size()) >= kKeptPanels) {
    has_more_ = true;
  } else {
    panels_.push_back({panel, leaf});
  }
}

void KeepingSink::copy(int64_t, int64_t, int64_t) { has_more_ = true; }

void KeepingSink::clear(int64_t, int64_t) { has_more_ = true; }

void WaySink::move(Panel& panel, const Leaf& leaf) {
  ++panels_;
  // Leaves ask where lines begin, so a destination begins at one. Nothing is read or written.
  constexpr intptr_t kSomewhere = intptr_t{1} << 40;
  panel.source = reinterpret_cast<const uint8_t*>(kSomewhere + (has_addresses_ ? panel.source_offset : 0));
  panel.destination =
      reinterpret_cast<uint8_t*>(kSomewhere + (has_addresses_ ? panel.destination_offset : 0));
  const int64_t steps = panel.inner.count * panel.outer.count;
  shares_[conversion_ == nullptr ? leaf.way_of(panel) : conversion_->way_of(panel)] +=
      panel.rows * (panel.columns - panel.dropped) * panel.unit_bytes * steps;
}

void WaySink::copy(int64_t, int64_t, int64_t) {}

void WaySink::clear(int64_t, int64_t) {}

bool WaySink::is_full() const { return panels_ >= kMostAsked; }

}  // namespace tilework
