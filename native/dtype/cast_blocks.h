// Casts block by block. Each instruction set brings a function that casts one block; the last, partial block
// goes through a buffer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "dtype/cast.h"

namespace tilework {
namespace {

template <Dtype dtype>
constexpr int64_t kElementBits = [] {
#define TILEWORK_DTYPE(enumerator, name, bits, kind, mantissa_bits, bias, specials, dlpack_code) \
  if (dtype == Dtype::enumerator) return bits;
#include "facts/dtypes.def"
#undef TILEWORK_DTYPE
}();

// Copies whole lines to an aligned address with streaming stores where the architecture has them. Loads are
// no wider than the stores that wrote the buffer: a load that spans two recent stores cannot be forwarded and
// stalls.
template <int64_t kBytes, int64_t kWritten>
void stream_lines(uint8_t* destination, const uint8_t* lines) {
#if defined(__x86_64__)
#if defined(__AVX__)
  if constexpr (kWritten >= 32) {
    for (int64_t i = 0; i < kBytes; i += 32) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(destination + i),
                          _mm256_load_si256(reinterpret_cast<const __m256i*>(lines + i)));
    }
    return;
  }
#endif
  if constexpr (kWritten >= 16) {
    for (int64_t i = 0; i < kBytes; i += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(destination + i),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(lines + i)));
    }
  } else {
    for (int64_t i = 0; i < kBytes; i += 8) {
      long long eight;
      std::memcpy(&eight, lines + i, sizeof(eight));
      _mm_stream_si64(reinterpret_cast<long long*>(destination + i), eight);
    }
  }
#else
  std::memcpy(destination, lines, kBytes);
#endif
}

// `cast_block` takes source, destination and options and casts `kBlock` elements, which fill whole bytes.
template <Dtype from, Dtype to, int64_t kBlock, class CastBlock>
class BlockCast {
 public:
  BlockCast(const CastArguments& arguments, CastBlock cast_block)
      : options_(arguments.options), cast_block_(cast_block) {
    const uint8_t* source = arguments.source;
    uint8_t* destination = arguments.destination;
    int64_t left = arguments.count;
    const int64_t head = arguments.stores == Stores::kStreaming ? elements_to_line(destination) : kNever;
    if (head < left) {
      cast_cached(source, destination, head);
      source += head * kElementBits<from> / 8;
      destination += head * kElementBits<to> / 8;
      left -= head;
      const int64_t streamed = left / kGroup * kGroup;
      cast_streaming(source, destination, streamed);
      source += streamed * kElementBits<from> / 8;
      destination += streamed * kElementBits<to> / 8;
      left -= streamed;
    }
    cast_cached(source, destination, left);
  }

 private:
  static constexpr int64_t kLine = 64;
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kSourceBytes = kBlock * kElementBits<from> / 8;
  static constexpr int64_t kDestinationBytes = kBlock * kElementBits<to> / 8;
  // Elements with results that fill whole lines.
  static constexpr int64_t kGroup = kBlock * std::max<int64_t>(kLine / kDestinationBytes, 1);

  // Elements before the first line boundary; kNever if no whole element ends on one.
  static int64_t elements_to_line(const uint8_t* destination) {
    const auto past_line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(destination) % kLine);
    const int64_t bits = (kLine - past_line) % kLine * 8;
    const int64_t elements = bits / kElementBits<to>;
    return bits % kElementBits<to> == 0 && elements * kElementBits<from> % 8 == 0 ? elements : kNever;
  }

  void cast_cached(const uint8_t* source, uint8_t* destination, int64_t count) const {
    const int64_t blocks = count / kBlock;
    cast_all(source, destination, blocks);
    if (count % kBlock == 0) return;
    cast_tail(source + blocks * kSourceBytes, destination + blocks * kDestinationBytes, count % kBlock);
  }

  // One function for everything that is not streamed: the block cast is inlined into each caller.
  [[gnu::noinline]] void cast_all(const uint8_t* source, uint8_t* destination, int64_t blocks) const {
    // A copy that no store can alias.
    const CastOptions options = options_;
    for (; blocks > 0; --blocks) {
      cast_block_(source, destination, options);
      source += kSourceBytes;
      destination += kDestinationBytes;
    }
  }

  // Casts one group at a time into an L1-sized buffer and streams whole lines from it.
  void cast_streaming(const uint8_t* source, uint8_t* destination, int64_t count) const {
    const CastOptions options = options_;
    constexpr int64_t kBlocks = kGroup / kBlock;
    alignas(kLine) uint8_t lines[kBlocks * kDestinationBytes];
    for (; count > 0; count -= kGroup) {
#pragma GCC unroll 1
      for (int64_t i = 0; i < kBlocks; ++i) {
        cast_block_(source + i * kSourceBytes, lines + i * kDestinationBytes, options);
      }
      stream_lines<kBlocks * kDestinationBytes, kDestinationBytes>(destination, lines);
      source += kBlocks * kSourceBytes;
      destination += kBlocks * kDestinationBytes;
    }
  }

  // Casts fewer elements than a block.
  void cast_tail(const uint8_t* source, uint8_t* destination, int64_t count) const {
    alignas(32) uint8_t padded[kSourceBytes] = {};
    alignas(32) uint8_t result[kDestinationBytes];
    std::memcpy(padded, source, static_cast<size_t>((count * kElementBits<from> + 7) / 8));
    cast_all(padded, result, 1);
    const int64_t bytes = (count * kElementBits<to> + 7) / 8;
    // The unused bits of the last byte.
    constexpr int kPerByte = kElementBits<to> < 8 ? 8 / kElementBits<to> : 1;
    if (count % kPerByte != 0) {
      const auto mask = static_cast<uint8_t>((1 << (count % kPerByte * kElementBits<to>)) - 1);
      result[bytes - 1] = result[bytes - 1] & mask;
    }
    std::memcpy(destination, result, static_cast<size_t>(bytes));
  }

  const CastOptions options_;
  CastBlock cast_block_;
};

template <Dtype from, Dtype to, int64_t kBlock, class CastBlock>
void cast_blocks(const CastArguments& arguments, CastBlock cast_block) {
  const BlockCast<from, to, kBlock, CastBlock> cast(arguments, cast_block);
}

}  // namespace
}  // namespace tilework
