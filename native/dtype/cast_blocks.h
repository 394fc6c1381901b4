// Casts block by block, shared by the instruction sets: each brings what casts one block. The last elements
// go by way of a block of their own.
#pragma once

#include <cstdint>
#include <cstring>

#include "dtype/cast.h"

namespace tilework {
namespace {

template <Dtype dtype>
constexpr int64_t kElementBits = [] {
#define TILEWORK_DTYPE(enumerator, name, bits, kind, mantissa_bits, bias, specials) \
  if (dtype == Dtype::enumerator) return bits;
#include "dtype/dtypes.def"
#undef TILEWORK_DTYPE
}();

// `cast_block` takes source, destination and options, and casts `kBlock` elements, of which whole bytes are
// made.
template <Dtype from, Dtype to, int64_t kBlock, class CastBlock>
void cast_blocks(const CastArguments& arguments, CastBlock cast_block) {
  constexpr int64_t kSourceBytes = kBlock * kElementBits<from> / 8;
  constexpr int64_t kDestinationBytes = kBlock * kElementBits<to> / 8;
  // A copy, which no store can change.
  const CastOptions options = arguments.options;
  const uint8_t* source = arguments.source;
  uint8_t* destination = arguments.destination;
  int64_t left = arguments.count;
  for (; left >= kBlock; left -= kBlock) {
    cast_block(source, destination, options);
    source += kSourceBytes;
    destination += kDestinationBytes;
  }
  if (left == 0) return;
  alignas(32) uint8_t padded[kSourceBytes] = {};
  alignas(32) uint8_t result[kDestinationBytes];
  std::memcpy(padded, source, static_cast<size_t>((left * kElementBits<from> + 7) / 8));
  cast_block(padded, result, options);
  const int64_t bytes = (left * kElementBits<to> + 7) / 8;
  // The rest of the last byte belongs to no element.
  constexpr int kPerByte = kElementBits<to> < 8 ? 8 / kElementBits<to> : 1;
  if (left % kPerByte != 0) {
    const auto mask = static_cast<uint8_t>((1 << (left % kPerByte * kElementBits<to>)) - 1);
    result[bytes - 1] = result[bytes - 1] & mask;
  }
  std::memcpy(destination, result, static_cast<size_t>(bytes));
}

}  // namespace
}  // namespace tilework
