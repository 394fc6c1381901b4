// The vectors that codes of ggml's IQ types stand for: 8 small numbers (iq1, iq2) or 4 (iq3) per code.
#pragma once

#include <array>
#include <cstdint>

namespace tilework {

// Each vector is its components as int8, the first in the lowest byte.
struct VectorTables {
  std::array<uint64_t, 256> iq2_xxs;
  std::array<uint64_t, 512> iq2_xs;
  std::array<uint64_t, 1024> iq2_s;
  std::array<uint32_t, 256> iq3_xxs;
  std::array<uint32_t, 512> iq3_s;
  // Of iq1_s and iq1_m, whose components are -1, 0 and 1.
  std::array<uint64_t, 2048> iq1;
};

// Made by the first call; about 32 KiB.
const VectorTables& vector_tables();

}  // namespace tilework
