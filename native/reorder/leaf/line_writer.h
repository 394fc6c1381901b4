// Writes a destination front to back past the caches. What belongs at the next offset is first put into a
// buffer in the L1 cache and leaves it as whole lines: a streaming store that fills a part of a line costs as
// much as one that fills all of it, and a line that is filled in two steps is written to memory twice.
#pragma once

#include <cstdint>
#include <cstring>

#include "policy/thresholds.h"
#include "reorder/leaf/cache_lines.h"

namespace tilework {
namespace {

class LineWriter {
 public:
  // Copies whole lines with streaming stores; the destination is aligned to lines.
  using StreamLines = void (*)(uint8_t* destination, const uint8_t* source, int64_t bytes);

  explicit LineWriter(StreamLines stream_lines) : stream_lines_(stream_lines) {}
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;
  ~LineWriter() { flush(); }

  // Calls write(buffer) with room for `bytes` bytes, at most kMaxTileBytes, that belong at `destination`.
  template <class Write>
  void put(uint8_t* destination, int64_t bytes, Write write) {
    if (destination != start_ + count_) {
      flush();
      start_ = destination;
      first_ = bytes_past(destination, kLineBytes);
    }
    write(buffer_ + first_ + count_);
    count_ += bytes;
    stream_whole_lines();
  }

 private:
  void flush() {
    if (count_ > 0) std::memcpy(start_, buffer_ + first_, static_cast<size_t>(count_));
    count_ = 0;
  }

  // A line whose first bytes are not the writer's is completed with ordinary stores.
  void stream_whole_lines() {
    const int64_t end = (first_ + count_) / kLineBytes * kLineBytes;
    if (end == 0) return;
    const int64_t head = first_ > 0 ? kLineBytes - first_ : 0;
    std::memcpy(start_, buffer_ + first_, static_cast<size_t>(head));
    stream_lines_(start_ + head, buffer_ + first_ + head, end - first_ - head);
    const int64_t written = end - first_;
    std::memcpy(buffer_, buffer_ + end, kLineBytes);
    start_ += written;
    count_ -= written;
    first_ = 0;
  }

  StreamLines stream_lines_;
  // Where the buffered bytes belong; they begin at the same offset of a line in the buffer.
  uint8_t* start_ = nullptr;
  int64_t first_ = 0;
  int64_t count_ = 0;
  // A tile behind an incomplete line, and a line that is copied to the front whatever it holds.
  alignas(kLineBytes) uint8_t buffer_[kMaxTileBytes.value + 2 * kLineBytes];
};

}  // namespace
}  // namespace tilework
