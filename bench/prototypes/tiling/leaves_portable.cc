// The leaf that fits every tile: element by element.
#include <cstring>

#include "engine.h"
#include "leaves.h"

namespace tilework {

namespace {

template <int64_t kUnit>
void move_elements(const TileArguments& a) {
  const int64_t unit = kUnit == 0 ? a.unit_bytes : kUnit;
  const EdgeList& rows = a.state.rows;
  const EdgeList& columns = a.state.columns;
  for (int64_t i = 0; i < a.repeat; ++i)
  for (int64_t c = 0; c < columns.count; ++c) {
    for (int64_t r = 0; r < rows.count; ++r) {
      uint8_t* to = a.destination + i * a.destination_step + columns.destination[c] + rows.destination[r];
      if (rows.valid[r] && columns.valid[c]) {
        std::memcpy(to, a.source + i * a.source_step + columns.source[c] + rows.source[r], static_cast<size_t>(unit));
      } else {
        std::memset(to, 0, static_cast<size_t>(unit));
      }
    }
  }
}

constexpr Leaf kPortable[] = {
    {"elements_x8", 1, 1 << 20, 1 << 20, move_elements<1>},
    {"elements_x16", 2, 1 << 20, 1 << 20, move_elements<2>},
    {"elements_x32", 4, 1 << 20, 1 << 20, move_elements<4>},
    {"elements_x64", 8, 1 << 20, 1 << 20, move_elements<8>},
    {"runs", 0, 1 << 20, 1 << 20, move_elements<0>},
};

}  // namespace

std::span<const Leaf> portable_leaves() { return kPortable; }

}  // namespace tilework
