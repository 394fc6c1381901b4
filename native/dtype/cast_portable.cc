// The kernels of casts.def for any CPU.
#include "dtype/cast_numbers.h"
#include "dtype/casts.h"

namespace tilework {
namespace {

// Bits of a sub-byte type; 0 for every other type.
template <Dtype dtype>
constexpr int kPackedBits = dtype == Dtype::kInt4 || dtype == Dtype::kUint4   ? 4
                            : dtype == Dtype::kInt2 || dtype == Dtype::kUint2 ? 2
                                                                              : 0;

// Unpacks to bytes, sign-extended for signed types.
template <int kBits, bool kIsSigned>
void unpack(const CastArguments& arguments) {
  constexpr int kPerByte = 8 / kBits;
  constexpr unsigned kSign = kIsSigned ? 1u << (kBits - 1) : 0;
  const uint8_t* __restrict source = arguments.source;
  uint8_t* __restrict destination = arguments.destination;
  const int64_t count = arguments.count;
  for (int64_t i = 0; i < count; ++i) {
    const unsigned bits = (source[i / kPerByte] >> (i % kPerByte * kBits)) & ((1u << kBits) - 1);
    destination[i] = static_cast<uint8_t>((bits ^ kSign) - kSign);
  }
}

// Packs the low bits of bytes; unused bits of the last byte are zero.
template <int kBits>
void pack(const CastArguments& arguments) {
  constexpr int64_t kPerByte = 8 / kBits;
  const uint8_t* __restrict source = arguments.source;
  uint8_t* __restrict destination = arguments.destination;
  const int64_t count = arguments.count;
  for (int64_t first = 0; first < count; first += kPerByte) {
    unsigned byte = 0;
    const int64_t here = count - first < kPerByte ? count - first : kPerByte;
    for (int64_t i = 0; i < here; ++i) byte |= (source[first + i] & ((1u << kBits) - 1)) << (i * kBits);
    destination[first / kPerByte] = static_cast<uint8_t>(byte);
  }
}

}  // namespace

template <Dtype from, Dtype to, CastRounding rounding>
void cast_portable(const CastArguments& arguments) {
  if constexpr (kPackedBits < from >> 0) {
    unpack<kPackedBits<from>, to == Dtype::kInt8>(arguments);
  } else if constexpr (kPackedBits<to> > 0) {
    pack<kPackedBits<to>>(arguments);
  } else {
    cast_numbers<rounding, from, to>(arguments);
  }
}

#define TILEWORK_INSTANTIATE_kPortable(from, to, rounding) \
  template void cast_portable<Dtype::from, Dtype::to, CastRounding::rounding>(const CastArguments&);
#define TILEWORK_INSTANTIATE_kAvx2(from, to, rounding)
#define TILEWORK_INSTANTIATE_kNeon(from, to, rounding)
#define TILEWORK_CAST_KERNEL(from, to, isa, rounding) TILEWORK_INSTANTIATE_##isa(from, to, rounding)
#include "dtype/casts.def"
#undef TILEWORK_CAST_KERNEL

}  // namespace tilework
