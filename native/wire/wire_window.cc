#include "wire/wire_window.h"

#include <algorithm>

namespace tilework {
namespace {

constexpr int64_t kVarintBytes = 10;
// Longest tag plus value, or tag plus length.
constexpr int64_t kFieldBytes = 2 * kVarintBytes;

// After a payload is skipped few fields may follow, so the first read is short; it grows while fields follow.
constexpr int64_t kFirstWindowBytes = 512;
constexpr int64_t kLastWindowBytes = 256 * 1024;

// Reads the varint at `at` and advances `at`; none if it does not end before `end` or within ten bytes.
std::optional<uint64_t> varint(const uint8_t*& at, const uint8_t* end) {
  const uint8_t* const last = std::min(end, at + std::min<int64_t>(kVarintBytes, end - at));
  uint64_t value = 0;
  for (int shift = 0; at < last; shift += 7) {
    const uint8_t byte = *at++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<WireField> WireWindow::field(int64_t position, int64_t end) {
  const int64_t held = std::min(kFieldBytes, end - position);
  const uint8_t* const first = bytes(position, position + held);
  const uint8_t* at = first;
  const auto tag = varint(at, first + held);
  if (!tag || *tag < 8 || *tag > UINT32_MAX) return std::nullopt;
  WireField found;
  found.number = static_cast<uint32_t>(*tag) >> 3;
  found.start = position;
  const uint32_t type = *tag & 7;
  if (type == static_cast<uint32_t>(WireType::kVarint))
    found.value_start = position + (at - first);
  else if (type == static_cast<uint32_t>(WireType::kLength))
    found.type = WireType::kLength;
  else
    return std::nullopt;
  const auto value = varint(at, first + held);
  if (!value) return std::nullopt;
  const int64_t behind = position + (at - first);
  if (found.type == WireType::kVarint) {
    found.value = *value;
    found.end = behind;
    return found;
  }
  if (*value > static_cast<uint64_t>(end - behind)) return std::nullopt;
  found.value_start = behind;
  found.end = behind + static_cast<int64_t>(*value);
  return found;
}

const uint8_t* WireWindow::bytes(int64_t start, int64_t end) {
  const auto size = static_cast<int64_t>(window_.size());
  if (start < start_ || end > start_ + size) move(start, end - start);
  return window_.data() + (start - start_);
}

void WireWindow::move(int64_t start, int64_t min_bytes) {
  const int64_t window_end = start_ + static_cast<int64_t>(window_.size());
  const bool goes_on = !window_.empty() && start >= start_ && start <= window_end;
  next_bytes_ = goes_on ? std::min(2 * next_bytes_, kLastWindowBytes) : kFirstWindowBytes;
  const int64_t count = std::min(std::max(min_bytes, next_bytes_), file_.size() - start);
  window_.resize(static_cast<size_t>(count));
  start_ = start;
  file_.read_at(window_.data(), start, count);
  bytes_read_ += count;
}

}  // namespace tilework
