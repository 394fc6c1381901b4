// Upper bound for a transpose: copies 32-byte chunks with its access pattern, without transposing them.
// Chunks are read from each row and written where the transpose writes its columns, in strips of several
// lengths; the fastest strip counts. A transpose that reaches this rate is limited by its addresses, not by
// its shuffles.
//
// Reads one case per line: channels per block, blocks, pixels, bytes per element, 1 for planes to pixels or 0
// for pixels to planes, rounds. Prints one line of JSON per case.
#include <array>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <limits>
#include <vector>

#include "interleaved_rounds.h"

namespace tilework::bench {
namespace {

constexpr int64_t kChunk = 32;
// Inlined, so that a chunk is one load and one store where the processor has 32-byte registers.
#if defined(__x86_64__)
#define TILEWORK_CHUNK_TARGET [[gnu::target("avx2")]]
#else
#define TILEWORK_CHUNK_TARGET
#endif

struct Access {
  int64_t channels;
  int64_t blocks;
  int64_t pixels;
  int64_t element_bytes;
  bool to_pixels;
  int rounds;

  int64_t bytes() const { return channels * blocks * pixels * element_bytes; }
  // Rows, and columns, of a tile whose rows are one chunk each.
  int64_t edge() const { return kChunk / element_bytes; }
};

TILEWORK_CHUNK_TARGET inline void move_tile(const uint8_t* from, int64_t from_row, uint8_t* to,
                                            int64_t to_row, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * to_row, from + r * from_row, kChunk);
}

// Moves one block in strips of `strip` pixels, each with all channels.
TILEWORK_CHUNK_TARGET void move_block(const Access& access, const uint8_t* from, uint8_t* to, int64_t strip) {
  const int64_t plane = access.pixels * access.element_bytes;
  const int64_t pixel = access.channels * access.element_bytes;
  const int64_t edge = access.edge();
  for (int64_t first = 0; first < access.pixels; first += strip) {
    const int64_t last = std::min(first + strip, access.pixels);
    for (int64_t c = 0; c < access.channels; c += edge) {
      for (int64_t p = first; p < last; p += edge) {
        const int64_t in_planes = c * plane + p * access.element_bytes;
        const int64_t in_pixels = p * pixel + c * access.element_bytes;
        if (access.to_pixels) {
          move_tile(from + in_planes, plane, to + in_pixels, pixel, edge);
        } else {
          move_tile(from + in_pixels, pixel, to + in_planes, plane, edge);
        }
      }
    }
  }
}

void measure(const Access& access) {
  constexpr std::array<int64_t, 4> kStrips = {16, 64, 128, 256};
  const auto bytes = static_cast<size_t>(access.bytes());
  Buffer from(bytes);
  Buffer to(bytes);
  std::vector<Candidate> candidates;
  for (int64_t strip : kStrips) {
    candidates.push_back({"moves", 2 * bytes, [&, strip] {
                            const int64_t block = access.bytes() / access.blocks;
                            for (int64_t b = 0; b < access.blocks; ++b) {
                              move_block(access, from.data() + b * block, to.data() + b * block, strip);
                            }
                          }});
  }
  add_copies(candidates, 1, 2 * bytes, to.data(), from.data());
  run_interleaved(candidates, access.rounds, 1);
  double best = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < kStrips.size(); ++i) best = std::min(best, candidates[i].best);
  const auto rate = [&](double seconds) { return static_cast<double>(2 * bytes) / seconds / 1e9; };
  std::printf(R"({"bytes":%zu,"moves":%.3f,"memcpy":%.3f,"streaming":%.3f})"
              "\n",
              2 * bytes, rate(best), rate(candidates[kStrips.size()].best),
              rate(candidates[kStrips.size() + 1].best));
}

}  // namespace
}  // namespace tilework::bench

int main() {
  using namespace tilework::bench;
  std::printf("{}\n");
  Access access{};
  while (std::cin >> access.channels >> access.blocks >> access.pixels >> access.element_bytes >>
         access.to_pixels >> access.rounds) {
    const int64_t edge = access.element_bytes > 0 ? access.edge() : 0;
    if (edge < 1 || access.channels % edge != 0 || access.pixels % edge != 0 || access.blocks < 1) {
      std::fprintf(
          stderr,
          "channels and pixels must be multiples of the elements in 32 bytes; blocks must be at least 1\n");
      return 2;
    }
    measure(access);
  }
  return 0;
}
