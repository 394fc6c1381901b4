// The reference of all reorder kernels: walks every loop of the nests and moves one element after the other.
// It is right for every plan; faster kernels are tested against it.
#include <algorithm>
#include <cstring>

#include "reorder/kernels.h"
#include "reorder/plan/nest_walk.h"

namespace tilework {
namespace {

// 4-bit elements, two a byte, low half first.
void move_nibble(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d) {
  const unsigned value = source == nullptr ? 0 : (source[s / 2] >> (s % 2 * 4)) & 15u;
  const int shift = static_cast<int>(d % 2 * 4);
  destination[d / 2] = static_cast<uint8_t>((destination[d / 2] & ~(15u << shift)) | value << shift);
}

void move_bytes(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t size) {
  uint8_t* to = destination + d * size;
  if (source == nullptr) {
    std::memset(to, 0, static_cast<size_t>(size));
  } else {
    std::memcpy(to, source + s * size, static_cast<size_t>(size));
  }
}

}  // namespace

void copy_reference(const ReorderArguments& a) {
  const int64_t begin = *a.plan.copy_offset() + a.begin;
  std::memcpy(a.destination, a.source + begin, static_cast<size_t>(a.end - a.begin));
  a.plan.clear_unused_bits(a.destination, a.begin, a.end);
}

void reorder_reference(const ReorderArguments& a) {
  const int bits = a.plan.element_bits();
  const auto move_row = [&](const NestRow& row) {
    const uint8_t* source = row.is_hole ? nullptr : a.source;
    for (int64_t i = 0; i < row.count; ++i) {
      const int64_t s = row.source + i * row.source_stride;
      const int64_t d = row.destination + i * row.destination_stride;
      if (bits == 4) {
        move_nibble(source, s, a.destination, d);
      } else {
        move_bytes(source, s, a.destination, d, bits / 8);
      }
    }
  };
  const int64_t end = std::min(a.end * 8 / bits, a.plan.destination_elements());
  for (const LoopNest& nest : a.plan.nests()) NestWalk(nest, a.begin * 8 / bits, end, true, move_row);
  a.plan.clear_unused_bits(a.destination, a.begin, a.end);
}

}  // namespace tilework
