// What moving the pieces of a transpose costs if nothing is transposed: the same 32 bytes of each row are read,
// and written where the columns of the transpose are, in strips of several lengths, of which the best counts.
// A transpose that reaches this is held back by where its pieces lie, not by what is done with them.
//
// Reads a case a line: channels of a block, blocks, pixels, bytes of an element, 1 for planes to pixels or 0
// for the way back, rounds. Prints a line of JSON for each.
#include <array>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <limits>
#include <vector>

#include "turns.h"

namespace tilework::bench {
namespace {

constexpr int64_t kPiece = 32;
// Inlined, so that loops know that a piece is one load and one store where the processor has such.
#if defined(__x86_64__)
#define TILEWORK_PIECES [[gnu::target("avx2")]]
#else
#define TILEWORK_PIECES
#endif

struct Access {
  int64_t channels;
  int64_t blocks;
  int64_t pixels;
  int64_t element_bytes;
  bool to_pixels;
  int rounds;

  int64_t bytes() const { return channels * blocks * pixels * element_bytes; }
  // Rows, and columns, of a tile of which each is a piece.
  int64_t side() const { return kPiece / element_bytes; }
};

TILEWORK_PIECES inline void move_tile(const uint8_t* from, int64_t from_row, uint8_t* to, int64_t to_row, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * to_row, from + r * from_row, kPiece);
}

// One block: `strip` pixels of all channels after each other.
TILEWORK_PIECES void move_block(const Access& access, const uint8_t* from, uint8_t* to, int64_t strip) {
  const int64_t plane = access.pixels * access.element_bytes;
  const int64_t pixel = access.channels * access.element_bytes;
  const int64_t side = access.side();
  for (int64_t first = 0; first < access.pixels; first += strip) {
    const int64_t last = std::min(first + strip, access.pixels);
    for (int64_t c = 0; c < access.channels; c += side) {
      for (int64_t p = first; p < last; p += side) {
        const int64_t in_planes = c * plane + p * access.element_bytes;
        const int64_t in_pixels = p * pixel + c * access.element_bytes;
        if (access.to_pixels) {
          move_tile(from + in_planes, plane, to + in_pixels, pixel, side);
        } else {
          move_tile(from + in_pixels, pixel, to + in_planes, plane, side);
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
  take_turns(candidates, access.rounds, 1);
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
    const int64_t side = access.element_bytes > 0 ? access.side() : 0;
    if (side < 1 || access.channels % side != 0 || access.pixels % side != 0 || access.blocks < 1) {
      std::fprintf(stderr, "Channels and pixels have to be multiples of what 32 bytes hold.\n");
      return 2;
    }
    measure(access);
  }
  return 0;
}
