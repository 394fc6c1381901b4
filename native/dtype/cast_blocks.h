// Casts by loops over whole blocks. Each instruction set brings a function object that casts one block. What
// surrounds the loops is compiled once for all pairs of types: where lines begin, and the last, partial
// block, which goes through a buffer.
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

// Casts `count` elements, a multiple of what the loop takes at a time.
using CastRun = void (*)(const uint8_t* source, uint8_t* destination, int64_t count,
                         const CastOptions& options);

struct CastLoop {
  CastRun run;
  // Elements that `run` takes at a time: a power of two, whose bits fill bytes on both sides.
  int64_t block;
  // To a place where a cache line begins, past the caches.
  CastRun stream;
  // Elements that `stream` takes at a time: results of whole lines.
  int64_t group;
  int64_t from_bits;
  int64_t to_bits;
};

constexpr int64_t kCastLine = 64;

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

// Loops over a function object that takes source, destination and options and casts `kBlock` elements.
template <Dtype from, Dtype to, int64_t kBlock, class CastBlock>
struct BlockLoops {
  static constexpr int64_t kSourceBytes = kBlock * kElementBits<from> / 8;
  static constexpr int64_t kDestinationBytes = kBlock * kElementBits<to> / 8;
  static constexpr int64_t kBlocks = std::max<int64_t>(kCastLine / kDestinationBytes, 1);

  static void run(const uint8_t* source, uint8_t* destination, int64_t count, const CastOptions& given) {
    // A copy that no store can alias.
    const CastOptions options = given;
    for (; count > 0; count -= kBlock) {
      CastBlock{}(source, destination, options);
      source += kSourceBytes;
      destination += kDestinationBytes;
    }
  }

  // One group at a time into a buffer of lines. With one loop for the caches and for a buffer of more lines,
  // casts past the caches took 1.2 times as long.
  static void stream(const uint8_t* source, uint8_t* destination, int64_t count, const CastOptions& given) {
    const CastOptions options = given;
    alignas(kCastLine) uint8_t lines[kBlocks * kDestinationBytes];
    for (; count > 0; count -= kBlocks * kBlock) {
#pragma GCC unroll 1
      for (int64_t i = 0; i < kBlocks; ++i) {
        CastBlock{}(source + i * kSourceBytes, lines + i * kDestinationBytes, options);
      }
      stream_lines<kBlocks * kDestinationBytes, kDestinationBytes>(destination, lines);
      source += kBlocks * kSourceBytes;
      destination += kBlocks * kDestinationBytes;
    }
  }

  static constexpr CastLoop kLoop{run, kBlock, stream, kBlocks* kBlock, kElementBits<from>, kElementBits<to>};
};

class BlockCast {
 public:
  BlockCast(const CastLoop& loop, const CastOptions& options) : loop_(loop), options_(options) {}

  [[gnu::noinline]] void run(const CastArguments& arguments) const {
    const uint8_t* source = arguments.source;
    uint8_t* destination = arguments.destination;
    int64_t left = arguments.count;
    const auto advance = [&](int64_t count) {
      source += source_bytes(count);
      destination += destination_bytes(count);
      left -= count;
    };
    const bool streams = arguments.stores == Stores::kStreaming;
    // Whole lines are streamed; in the caches the wider side counts, half of whose registers would lie in two
    // lines each (the memory that Node gives begins 16 bytes behind a line).
    const int64_t head = streams || loop_.to_bits > loop_.from_bits
                             ? elements_to_line(destination, loop_.to_bits, loop_.from_bits)
                             : elements_to_line(source, loop_.from_bits, loop_.to_bits);
    const bool begins_with_line =
        streams || source_bytes(left) + destination_bytes(left) >= kLeastAlignedBytes;
    if (begins_with_line && head < left) {
      cast_cached(source, destination, head);
      advance(head);
      const int64_t streamed = streams ? left / loop_.group * loop_.group : 0;
      if (streamed > 0) loop_.stream(source, destination, streamed, options_);
      advance(streamed);
    }
    cast_cached(source, destination, left);
  }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  // Of a block, on either side.
  static constexpr int64_t kMaxBlockBytes = 512;
  // Of both sides, from which on elements before a line are cast by themselves.
  static constexpr int64_t kLeastAlignedBytes = 64 << 10;

  int64_t source_bytes(int64_t count) const { return (count * loop_.from_bits + 7) / 8; }
  int64_t destination_bytes(int64_t count) const { return (count * loop_.to_bits + 7) / 8; }

  // Elements before the first line boundary of one side; kNever if no whole element, or on the other side no
  // whole byte, ends there.
  static int64_t elements_to_line(const uint8_t* at, int64_t bits, int64_t other_bits) {
    const auto past_line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(at) % kCastLine);
    const int64_t left = (kCastLine - past_line) % kCastLine * 8;
    const int64_t elements = left / bits;
    return left % bits == 0 && elements * other_bits % 8 == 0 ? elements : kNever;
  }

  void cast_cached(const uint8_t* source, uint8_t* destination, int64_t count) const {
    // Blocks are powers of two.
    const int64_t rest = count & (loop_.block - 1);
    const int64_t whole = count - rest;
    if (whole > 0) loop_.run(source, destination, whole, options_);
    if (rest > 0) cast_tail(source + source_bytes(whole), destination + destination_bytes(whole), rest);
  }

  // Casts fewer elements than a block.
  void cast_tail(const uint8_t* source, uint8_t* destination, int64_t count) const {
    alignas(32) uint8_t padded[kMaxBlockBytes];
    alignas(32) uint8_t result[kMaxBlockBytes];
    const int64_t valid = source_bytes(count);
    std::memcpy(padded, source, static_cast<size_t>(valid));
    std::memset(padded + valid, 0, static_cast<size_t>(source_bytes(loop_.block) - valid));
    loop_.run(padded, result, loop_.block, options_);
    const int64_t bytes = destination_bytes(count);
    // The unused bits of the last byte.
    const int64_t used = count * loop_.to_bits % 8;
    if (used != 0) result[bytes - 1] = static_cast<uint8_t>(result[bytes - 1] & ((1 << used) - 1));
    std::memcpy(destination, result, static_cast<size_t>(bytes));
  }

  const CastLoop& loop_;
  const CastOptions options_;
};

inline void run_loop(const CastArguments& arguments, const CastLoop& loop) {
  BlockCast(loop, arguments.options).run(arguments);
}

template <Dtype from, Dtype to, int64_t kBlock, class CastBlock>
void cast_blocks(const CastArguments& arguments, CastBlock) {
  run_loop(arguments, BlockLoops<from, to, kBlock, CastBlock>::kLoop);
}

}  // namespace
}  // namespace tilework
