// Planes of images to blocks of channels of which 1 to 4 are there and the rest are holes, and back.
// Internal to each file, as transpose_places.h.
//
// A block transpose would move all channels of a block. Here four rows (those without a source are zeros)
// make pixels of four units in registers, each pixel is spread to 16 bytes, and the rest of its block is
// zeros: written in order, whole lines. On the way back 16 bytes of each pixel are read, of which one to four
// units count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "policy/thresholds.h"
#include "reorder/leaf/cache_lines.h"
#include "reorder/leaf/registers.h"
#include "reorder/leaf/tile.h"
#include "reorder/leaf/ways.h"

namespace tilework {
namespace {

template <class T>
class PaddedPixels {
 public:
  // kNone where the tile is of another kind.
  static Way way_of(const Tile& tile) {
    if (fills_blocks(tile)) return Way::kPaddedPixels;
    return takes_blocks_apart(tile) ? Way::kPaddedPlanes : Way::kNone;
  }

  // By one of its ways.
  static void run(Way way, const Tile& tile) {
    way == Way::kPaddedPixels ? fill_blocks(tile) : take_blocks_apart(tile);
  }

 private:
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kMostChannels = kMostPaddedChannels.value;
  // Four units, as the registers hold them.
  static constexpr int64_t kPixelBytes = kMostChannels * kSize;
  // Lanes hold pixels that are half a group apart.
  static constexpr int64_t kGroup = 32 / kSize;
  static constexpr int64_t kHalf = kGroup / 2;
  static constexpr int64_t kLine = kLineBytes / kSize;
  static constexpr int kPixelsALane = 16 / kPixelBytes;
  // Pixels at the end whose 16 bytes reach behind the last block, of 8 bytes or more.
  static constexpr int64_t kMostTail = 2;

  static bool fills_blocks(const Tile& tile) {
    const int64_t block = tile.rows * kSize;
    const bool is_dense = tile.destination_column == block && tile.columns >= kGroup;
    return is_dense && tile.rows - tile.zero_rows <= kMostPaddedChannels && with_block(block, [](auto) {});
  }

  static void fill_blocks(const Tile& tile) {
    const int64_t valid = tile.rows - tile.zero_rows;
    with_block(tile.rows * kSize, [&](auto bytes) {
      if (tile.stores == Stores::kStreaming && is_aligned(tile.destination, 16)) {
        fill_all<decltype(bytes)::value, true>(tile, valid);
      } else {
        fill_all<decltype(bytes)::value, false>(tile, valid);
      }
    });
  }

  static bool takes_blocks_apart(const Tile& tile) {
    const bool is_few =
        tile.columns <= kMostPaddedChannels && tile.zero_rows == 0 && tile.rows >= kLine + kMostTail;
    return is_few && tile.source_row > kPixelBytes && with_block(tile.source_row, [](auto) {});
  }

  // Reads 16 bytes at each pixel, or less than 16 of the hole behind it.
  static void take_blocks_apart(const Tile& tile) {
    with_block(tile.source_row, [&](auto bytes) {
      if constexpr (bytes > kPixelBytes) take_all_apart<decltype(bytes)::value>(tile);
    });
  }

  // Calls body with the size of a block of `bytes`; false where there is none.
  template <class Body>
  static bool with_block(int64_t bytes, Body body) {
    return is<4>(bytes, body) || is<8>(bytes, body) || is<16>(bytes, body) || is<32>(bytes, body) ||
           is<64>(bytes, body) || is<128>(bytes, body);
  }

  template <int64_t kBlock, class Body>
  static bool is(int64_t bytes, Body body) {
    if constexpr (kBlock >= kPixelBytes) {
      if (bytes == kBlock) body(std::integral_constant<int64_t, kBlock>{});
      return bytes == kBlock;
    }
    return false;
  }

  template <int64_t kBlock, bool kStreams>
  [[gnu::noinline]] static void fill_all(const Tile tile, int64_t valid) {
    TILEWORK_TAKES(Way::kPaddedPixels);
    if (kStreams) TILEWORK_WAY("padded pixels: streamed");
    int64_t p = 0;
    LinePrefetcher<false> prefetch_next = next_tile(tile, valid);
    for (; p + kGroup <= tile.columns; p += kGroup) {
      if constexpr (kStreams) prefetch_next();
      fill_group<kBlock, kStreams>(tile, valid, p);
    }
    // The last group overlaps the one before, at any place.
    if (p < tile.columns) fill_group<kBlock, false>(tile, valid, tile.columns - kGroup);
  }

  // Hardware prefetchers stop at the end of each plane, and planes are short. If they are contiguous, the
  // next tile starts after the last plane. Both tiles must fit into the L2 cache.
  static LinePrefetcher<false> next_tile(const Tile& tile, int64_t valid) {
    constexpr int64_t kMostBytes = 416 << 10;
    const int64_t row = tile.columns * kSize;
    const int64_t bytes = valid * tile.source_row;
    const bool is_near = tile.source_row >= row && tile.source_row <= row + kLineBytes && bytes <= kMostBytes;
    return {tile.source + bytes, is_near ? bytes : 0, tile.columns / kGroup};
  }

  template <int64_t kBlock, bool kStreams>
  TILEWORK_INLINE static void fill_group(const Tile& tile, int64_t valid, int64_t p) {
    Register rows[kMostChannels];
    for (int64_t r = 0; r < kMostChannels; ++r) {
      const uint8_t* from = tile.source + r * tile.source_row + p * kSize;
      rows[r] = r < valid ? load32(from) : zeros();
    }
    interleave<int{kSize}>(rows);
    uint8_t* to = tile.destination + p * kBlock;
    if constexpr (kBlock == kPixelBytes) {
      put_lane<16, kStreams, Side::kLow>(to, rows);
      put_lane<16, kStreams, Side::kHigh>(to + kHalf * kBlock, rows);
    } else {
      for (int64_t r = 0; r < kMostChannels; ++r, to += kPixelsALane * kBlock) {
        Register pieces[kPixelsALane * std::min<int64_t>(kBlock, 16) / 16];
        spread(rows[r], pieces);
        put_lane<kBlock, kStreams, Side::kLow>(to, pieces);
        put_lane<kBlock, kStreams, Side::kHigh>(to + kHalf * kBlock, pieces);
      }
    }
  }

  // Pixels to blocks of 16 bytes, or to as many as make 16, by zeros behind each.
  template <int kPieces>
  TILEWORK_INLINE static void spread(Register packed, Register (&pieces)[kPieces]) {
    const Register zero = zeros();
    if constexpr (kPieces == 1) {
      pieces[0] = packed;
    } else if constexpr (kPieces == 2) {
      pieces[0] = unpack_low<kPixelBytes>(packed, zero);
      pieces[1] = unpack_high<kPixelBytes>(packed, zero);
    } else {
      Register pairs[2];
      spread(packed, pairs);
      for (int i = 0; i < kPieces; i += 2) {
        pieces[i] = unpack_low<8>(pairs[i / 2], zero);
        pieces[i + 1] = unpack_high<8>(pairs[i / 2], zero);
      }
    }
  }

  enum class Side : uint8_t { kLow, kHigh };

  // The lanes of one side of two registers.
  template <Side kSide>
  TILEWORK_INLINE static Register lanes_of(Register a, Register b) {
    return kSide == Side::kLow ? low_lanes(a, b) : high_lanes(a, b);
  }

  // What is in one lane of the registers.
  template <int64_t kBlock, bool kStreams, Side kSide, int kPieces>
  TILEWORK_INLINE static void put_lane(uint8_t* to, const Register (&pieces)[kPieces]) {
    const Register zero = zeros();
    if constexpr (kBlock > 16) {
      for (int i = 0; i < kPieces; ++i, to += kBlock) {
        put32<kStreams>(to, lanes_of<kSide>(pieces[i], zero));
        for (int64_t k = 32; k < kBlock; k += 32) put32<kStreams>(to + k, zero);
      }
    } else {
      for (int i = 0; i < kPieces; i += 2, to += 32) {
        put32<kStreams>(to, lanes_of<kSide>(pieces[i], pieces[i + 1]));
      }
    }
  }

  template <bool kStreams>
  TILEWORK_INLINE static void put32(uint8_t* at, Register value) {
    if constexpr (kStreams) {
      stream32(at, value);
    } else {
      store32(at, value);
    }
  }

  // Behind the last pixel may be the end of the memory: the pixels whose 16 bytes would reach there are moved
  // alone.
  template <int64_t kBlock>
  [[gnu::noinline]] static void take_all_apart(const Tile tile) {
    TILEWORK_TAKES(Way::kPaddedPlanes);
    constexpr int64_t kTail = kBlock < 16 ? kMostTail : 1;
    const int64_t pixels = tile.rows - kTail;
    for (int64_t p = pixels; p < tile.rows; ++p) {
      for (int64_t c = 0; c < tile.columns; ++c) {
        std::memcpy(tile.destination + c * tile.destination_column + p * kSize,
                    tile.source + p * kBlock + c * kSize, kSize);
      }
    }
    // Streaming stores want lines of the destination that begin where a line of memory does.
    const int64_t first = elements_before_line(tile.destination, kSize);
    if (first > 0) take_line_apart<kBlock>(tile, 0);
    take_lines_apart<kBlock>(tile, first, (pixels - first) / kLine);
    take_line_apart<kBlock>(tile, pixels - kLine);
  }

  // Whether the pixels of a destination line are so far apart that hardware prefetchers need their reads in
  // order. Pixels that are several lines apart are not prefetched in any order.
  template <int64_t kBlock>
  static constexpr bool kIsSpread = kBlock <= kLineBytes && (kBlock == kLineBytes || kBlock * kLine >= 2048);

  // Beyond the caches reads dominate, and two read streams have more loads in flight than one; four took
  // twice as long on Zen 5.
  template <int64_t kBlock>
  TILEWORK_INLINE static void take_lines_apart(const Tile& tile, int64_t first, int64_t lines) {
    constexpr int64_t kReaders = kIsSpread<kBlock> ? 2 : 1;
    const bool has_readers = tile.stores == Stores::kStreaming && lines >= kFewestReaderLines.times(kReaders);
    const int64_t part = has_readers ? (lines + kReaders - 1) / kReaders : lines;
    for (int64_t i = 0; i < part; ++i) {
      for (int64_t line = i; line < lines; line += part) take_line_apart<kBlock>(tile, first + line * kLine);
    }
  }

  // A line of each row at once: of two halves written apart from each other, the first may leave for memory
  // alone.
  template <int64_t kBlock>
  TILEWORK_INLINE static void take_line_apart(const Tile& tile, int64_t p) {
    Register first[kMostChannels];
    Register second[kMostChannels];
    const uint8_t* from = tile.source + p * kBlock;
    constexpr bool kPacksAlways = kBlock == kLineBytes && kSize >= 2;
    if (kIsSpread<kBlock> && (kPacksAlways || tile.stores == Stores::kStreaming)) {
      alignas(kLineBytes) uint8_t pixels[kLine * kPixelBytes + 16];
      pack_pixels<kBlock>(from, pixels);
      take_group_apart<kPixelBytes>(pixels, first);
      take_group_apart<kPixelBytes>(pixels + kGroup * kPixelBytes, second);
    } else {
      take_group_apart<kBlock>(from, first);
      take_group_apart<kBlock>(from + kGroup * kBlock, second);
    }
    for (int64_t c = 0; c < kMostChannels && c < tile.columns; ++c) {
      uint8_t* to = tile.destination + c * tile.destination_column + p * kSize;
      if (tile.stores == Stores::kStreaming && is_aligned(to, kLineBytes)) {
        put32<true>(to, first[c]);
        put32<true>(to + 32, second[c]);
      } else {
        put32<false>(to, first[c]);
        put32<false>(to + 32, second[c]);
      }
    }
  }

  // Pixels side by side: what a store writes too much the next one writes again. One load, in order, is what
  // processors follow.
  template <int64_t kBlock>
  TILEWORK_INLINE static void pack_pixels(const uint8_t* from, uint8_t* pixels) {
#pragma GCC unroll 1
    for (int64_t i = 0; i < kLine; ++i) store16(pixels + i * kPixelBytes, load16(from + i * kBlock));
  }

  template <int64_t kBlock>
  TILEWORK_INLINE static void take_group_apart(const uint8_t* from, Register (&rows)[kMostChannels]) {
    for (int64_t r = 0; r < kMostChannels; ++r) {
      const uint8_t* at = from + r * kPixelsALane * kBlock;
      if constexpr (kBlock == kPixelBytes) {
        rows[r] = load_lanes(at, at + kHalf * kBlock);
      } else {
        rows[r] = gather_pixels<kBlock>(at);
      }
    }
    take_apart<int{kSize}>(rows);
  }

  // The first units of pixels side by side in each lane.
  template <int64_t kBlock>
  TILEWORK_INLINE static Register gather_pixels(const uint8_t* from) {
    const auto at = [from](int64_t pixel) {
      const uint8_t* low = from + pixel * kBlock;
      return load_lanes(low, low + kHalf * kBlock);
    };
    if constexpr (kSize == 4) {
      return at(0);
    } else if constexpr (kSize == 2) {
      return unpack_low<8>(at(0), at(1));
    } else if constexpr (kBlock == 8) {
      return even_words(at(0), at(2));
    } else {
      return unpack_low<8>(unpack_low<4>(at(0), at(1)), unpack_low<4>(at(2), at(3)));
    }
  }
};

}  // namespace
}  // namespace tilework
