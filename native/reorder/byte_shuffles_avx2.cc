// Shuffles of byte_shuffles.h. Compiled for AVX2, as reorder_avx2.cc, whose rules hold here too.
#include "reorder/byte_shuffles.h"
#include "reorder/registers_avx2.h"

namespace tilework {
namespace {

template <int kWindows>
void shuffle_groups(const ShuffleGroups groups, const uint8_t* source, uint8_t* destination) {
  const int32_t* from = groups.source;
  const uint8_t* places = groups.places;
  for (int64_t i = 0; i < groups.count; ++i) {
    __m128i made = _mm_shuffle_epi8(load16(source + from[0]), load16(places));
    for (int k = 1; k < kWindows; ++k) {
      made = _mm_or_si128(made, _mm_shuffle_epi8(load16(source + from[k]), load16(places + 16 * k)));
    }
    store16(destination + groups.destination[i], made);
    from += kWindows;
    places += 16 * kWindows;
  }
}

}  // namespace

void shuffle_bytes__avx2(const ShuffleGroups& groups, const uint8_t* source, uint8_t* destination) {
  switch (groups.windows) {
    case 1:
      return shuffle_groups<1>(groups, source, destination);
    case 2:
      return shuffle_groups<2>(groups, source, destination);
    case 3:
      return shuffle_groups<3>(groups, source, destination);
    default:
      return shuffle_groups<4>(groups, source, destination);
  }
}

}  // namespace tilework
