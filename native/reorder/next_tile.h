// Asks for the source of the tile that is moved next, while one is moved. Rows of planes are short, and each
// ends where processors stop following it; the next tile lies behind the last row, front to back.
#pragma once

#include <cstdint>

#include "reorder/tile.h"

namespace tilework {
namespace {

class NextTile {
 public:
  // Of `tile`, whose rows are of `row_bytes` each and which takes `steps` steps. Nothing is asked for within
  // the caches, nor where rows are far apart or two tiles do not fit into a second-level cache.
  NextTile(const Tile& tile, int64_t rows, int64_t row_bytes, int64_t steps)
      : next_(tile.source + rows * tile.source_row) {
    const int64_t bytes = rows * tile.source_row;
    const bool is_dense = tile.source_row >= row_bytes && tile.source_row <= row_bytes + kLineBytes;
    if (tile.stores == Stores::kStreaming && is_dense && bytes <= kMostBytes) {
      lines_ = (bytes / kLineBytes + steps - 1) / steps;
    }
  }

  // A step's share.
  void fetch() {
    for (int64_t i = 0; i < lines_; ++i, next_ += kLineBytes) __builtin_prefetch(next_, 0, kSecondLevel);
  }

 private:
  static constexpr int64_t kMostBytes = 416 << 10;

  const uint8_t* next_;
  int64_t lines_ = 0;
};

}  // namespace
}  // namespace tilework
