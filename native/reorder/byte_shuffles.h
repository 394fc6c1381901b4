// Short steps and short permutations of small elements: reversed rows, channels in another order, every other
// byte. 16 bytes of the destination come from a few windows of 16 bytes of the source each, in which an
// instruction finds any byte by its place; a table of places takes as long to read as the elements it moves.
#pragma once

#include <cstdint>
#include <vector>

namespace tilework {

// Groups of 16 bytes of the destination, with as many windows each.
struct ShuffleGroups {
  int64_t count;
  int64_t windows;
  // Bytes from the box's first element to each group, and to each window of each group.
  const int32_t* destination;
  const int32_t* source;
  // Of each window, 16 places; above 127: the byte comes from another window.
  const uint8_t* places;
};

struct ByteShuffles {
  int64_t windows = 0;
  std::vector<int32_t> destination;
  std::vector<int32_t> source;
  std::vector<uint8_t> places;

  ShuffleGroups groups() const {
    return {static_cast<int64_t>(destination.size()), windows, destination.data(), source.data(),
            places.data()};
  }
};

// The same moves as shuffles: element `source[i]` to `destination[i]`, of `element_bytes` each, in ascending
// order of the destination. None where a run of the destination is shorter than a group, or where a group
// would have too many windows to gain. Windows lie between the first and the last element of the source.
ByteShuffles shuffles_of(const std::vector<int32_t>& destination, const std::vector<int32_t>& source,
                         int64_t element_bytes);

// Moves all groups.
using ShuffleBytes = void (*)(const ShuffleGroups& groups, const uint8_t* source, uint8_t* destination);

#if defined(__x86_64__)
void shuffle_bytes__avx2(const ShuffleGroups& groups, const uint8_t* source, uint8_t* destination);
#endif

}  // namespace tilework
