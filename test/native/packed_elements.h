// Elements of less than 8 bits, one at a time; one of six bits may lie in two bytes.
#pragma once

#include <cstdint>

namespace tilework::test {

inline uint8_t packed_element(const uint8_t* bytes, int bits, int64_t index) {
  const int64_t at = index * bits;
  unsigned both = bytes[at / 8];
  if (at % 8 + bits > 8) both |= static_cast<unsigned>(bytes[at / 8 + 1]) << 8;
  return static_cast<uint8_t>((both >> (at % 8)) & ((1u << bits) - 1));
}

// Stores an element whose bits are zero until then.
inline void store_packed_element(uint8_t* bytes, int bits, int64_t index, uint8_t code) {
  const int64_t at = index * bits;
  const unsigned both = static_cast<unsigned>(code) << (at % 8);
  bytes[at / 8] = static_cast<uint8_t>(bytes[at / 8] | both);
  if (both > 0xFF) bytes[at / 8 + 1] = static_cast<uint8_t>(bytes[at / 8 + 1] | both >> 8);
}

}  // namespace tilework::test
