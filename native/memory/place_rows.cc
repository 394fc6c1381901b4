#include "memory/place_rows.h"

#include <cstddef>
#include <cstring>

namespace tilework {
namespace {

// A constant size makes a store of each short row instead of a call.
template <size_t kBytes>
void place_short_rows(uint8_t* destination, int64_t stride, const uint8_t* source, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(destination + row * stride, source + row * static_cast<int64_t>(kBytes), kBytes);
  }
}

}  // namespace

void place_rows(uint8_t* destination, int64_t stride, const uint8_t* source, int64_t row_bytes,
                int64_t rows) {
  switch (row_bytes) {
    case 1:
      return place_short_rows<1>(destination, stride, source, rows);
    case 2:
      return place_short_rows<2>(destination, stride, source, rows);
    case 3:
      return place_short_rows<3>(destination, stride, source, rows);
    case 4:
      return place_short_rows<4>(destination, stride, source, rows);
    case 8:
      return place_short_rows<8>(destination, stride, source, rows);
    case 12:
      return place_short_rows<12>(destination, stride, source, rows);
    case 16:
      return place_short_rows<16>(destination, stride, source, rows);
    default:
      for (int64_t row = 0; row < rows; ++row) {
        std::memcpy(destination + row * stride, source + row * row_bytes, static_cast<size_t>(row_bytes));
      }
  }
}

}  // namespace tilework
