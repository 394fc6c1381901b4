// Bytes that are put one behind the other, or apart, arrive whole, and only whole lines are streamed.
#include "reorder/leaf/line_writer.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "check.h"

namespace tilework::test {
namespace {

int64_t streamed_bytes = 0;

void stream_lines(uint8_t* destination, const uint8_t* source, int64_t bytes) {
  CHECK(is_aligned(destination, kLineBytes));
  CHECK(bytes % kLineBytes == 0);
  std::memcpy(destination, source, static_cast<size_t>(bytes));
  streamed_bytes += bytes;
}

struct Tile {
  int64_t start;
  int64_t bytes;
};

// Tiles at these offsets of a buffer that begins `phase` bytes behind a line; returns what was streamed.
int64_t write(int64_t phase, const std::vector<Tile>& tiles) {
  int64_t end = 0;
  for (const Tile& tile : tiles) end = std::max(end, tile.start + tile.bytes);
  std::vector<uint8_t> memory(static_cast<size_t>(end + 4 * kLineBytes), 0xEE);
  uint8_t* const aligned = memory.data() + (kLineBytes - bytes_past(memory.data(), kLineBytes)) % kLineBytes;
  uint8_t* const destination = aligned + kLineBytes + phase;
  std::vector<uint8_t> wanted = memory;
  streamed_bytes = 0;
  {
    LineWriter lines(stream_lines);
    uint8_t next = 0;
    for (const Tile& tile : tiles) {
      uint8_t* const at = wanted.data() + (destination + tile.start - memory.data());
      lines.put(destination + tile.start, tile.bytes, [&](uint8_t* buffer) {
        for (int64_t i = 0; i < tile.bytes; ++i) at[i] = buffer[i] = next++ & 0x7F;
      });
    }
  }
  CHECK(memory == wanted);
  return streamed_bytes;
}

}  // namespace

void test_tiles_that_follow_each_other() {
  for (int64_t phase : {0, 1, 32, 63}) {
    for (int64_t bytes : {int64_t{1}, int64_t{63}, int64_t{64}, int64_t{100}, kMaxTileBytes.value}) {
      std::vector<Tile> tiles;
      for (int64_t i = 0; i < 9; ++i) tiles.push_back({i * bytes, bytes});
      const int64_t head = (kLineBytes - phase) % kLineBytes;
      const int64_t lines = std::max<int64_t>(9 * bytes - head, 0) / kLineBytes;
      CHECK(write(phase, tiles) == lines * kLineBytes);
    }
  }
}

void test_tiles_with_gaps() {
  CHECK(write(0, {{0, 128}, {200, 64}, {264, 120}, {1000, 10}}) == 128 + 128);
  // Also backwards: what was incomplete is written before.
  CHECK(write(5, {{640, 70}, {0, 640}, {710, 4}}) == 9 * 64);
}

}  // namespace tilework::test

int main() {
  tilework::test::test_tiles_that_follow_each_other();
  tilework::test::test_tiles_with_gaps();
  return tilework::test::result();
}
