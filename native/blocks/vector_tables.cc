#include "blocks/vector_tables.h"

#include <span>

#include "blocks/vector_sets.h"

namespace tilework {
namespace {

// Expands a set to its vectors in ascending order of their codes.
template <class Vector, size_t size>
void expand(std::span<const uint8_t> set, std::span<const int8_t> levels, std::array<Vector, size>& table) {
  size_t filled = 0;
  for (size_t code = 0; code < set.size() * 8; ++code) {
    if ((set[code / 8] >> code % 8 & 1) == 0 || filled == size) continue;
    Vector vector = 0;
    size_t digits = code;
    for (size_t component = 0; component < sizeof(Vector); ++component) {
      vector |= static_cast<Vector>(static_cast<uint8_t>(levels[digits % levels.size()])) << 8 * component;
      digits /= levels.size();
    }
    table[filled++] = vector;
  }
}

VectorTables expanded() {
  constexpr int8_t kIq2Levels[] = {8, 25, 43};
  constexpr int8_t kIq3XxsLevels[] = {4, 12, 20, 28, 36, 44, 52, 62};
  constexpr int8_t kIq3SLevels[] = {1, 3, 5, 7, 9, 11, 13, 15};
  constexpr int8_t kIq1Levels[] = {-1, 0, 1};
  VectorTables tables{};
  expand<uint64_t>(kIq2XxsSet, kIq2Levels, tables.iq2_xxs);
  expand<uint64_t>(kIq2XsSet, kIq2Levels, tables.iq2_xs);
  expand<uint64_t>(kIq2SSet, kIq2Levels, tables.iq2_s);
  expand<uint32_t>(kIq3XxsSet, kIq3XxsLevels, tables.iq3_xxs);
  expand<uint32_t>(kIq3SSet, kIq3SLevels, tables.iq3_s);
  expand<uint64_t>(kIq1SSet, kIq1Levels, tables.iq1);
  return tables;
}

}  // namespace

const VectorTables& vector_tables() {
  static const VectorTables tables = expanded();
  return tables;
}

}  // namespace tilework
