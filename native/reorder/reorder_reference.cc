// The reference of all reorder kernels: walks every loop of the nests, moves runs and rows in the innermost
// one. It is right for every plan; faster kernels are tested against it.
#include <algorithm>
#include <cstring>

#include "reorder/kernels.h"
#include "reorder/nest_walk.h"

namespace tilework {
namespace {

// 4-bit elements, two a byte, low half first. The destination range is zeroed before the walk, so zeros need
// no work and a half is set by OR, whichever of the two comes first.
struct Nibbles {
  static constexpr bool kWritesZeros = false;
  static void copy_one(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d) {
    const unsigned value = (source[s / 2] >> (s % 2 * 4)) & 15u;
    destination[d / 2] = static_cast<uint8_t>(destination[d / 2] | (value << (d % 2 * 4)));
  }
  static void copy_run(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t count) {
    int64_t i = 0;
    if (s % 2 == d % 2) {
      if (count > 0 && d % 2 != 0) copy_one(source, s + i++, destination, d);
      const int64_t pairs = (count - i) / 2;
      if (pairs > 0) std::memcpy(destination + (d + i) / 2, source + (s + i) / 2, static_cast<size_t>(pairs));
      i += pairs * 2;
    }
    for (; i < count; ++i) copy_one(source, s + i, destination, d + i);
  }
  static void zero_run(uint8_t*, int64_t, int64_t) {}
};

void move_nibbles(const ReorderArguments& a) {
  std::memset(a.destination, 0, static_cast<size_t>(a.end - a.begin));
  walk_nests<Nibbles>(a, a.begin * 2, std::min(a.end * 2, a.plan.destination_elements()));
}

}  // namespace

void copy_reference(const ReorderArguments& a) {
  const int64_t begin = *a.plan.copy_offset() + a.begin;
  std::memcpy(a.destination, a.source + begin, static_cast<size_t>(a.end - a.begin));
}

void reorder_reference(const ReorderArguments& a) {
  switch (a.plan.element_bits()) {
    case 4:
      return move_nibbles(a);
    case 8:
      return walk_bytes<uint8_t>(a);
    case 16:
      return walk_bytes<uint16_t>(a);
    case 32:
      return walk_bytes<uint32_t>(a);
    case 64:
      return walk_bytes<uint64_t>(a);
    default:
      return walk_bytes<Unit128>(a);
  }
}

}  // namespace tilework
