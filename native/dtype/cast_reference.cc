// The exact reference: casts every pair of types, one element at a time. All kernels are tested against it,
// and pairs without kernels use it.
#include <cstring>

#include "dtype/cast.h"
#include "dtype/exact_number.h"

namespace tilework {
namespace {

uint64_t load_code(const uint8_t* bytes, int bits, int64_t index) {
  if (bits < 8) {
    const int64_t at = index * bits;
    const bool is_split = at % 8 + bits > 8;
    const unsigned two = bytes[at / 8] | (is_split ? bytes[at / 8 + 1] << 8 : 0);
    return (two >> (at % 8)) & ((1u << bits) - 1);
  }
  uint64_t code = 0;
  std::memcpy(&code, bytes + index * (bits / 8), static_cast<size_t>(bits / 8));
  return code;
}

// Elements come in ascending order; the first bits of a byte clear the others.
void store_code(uint8_t* bytes, int bits, int64_t index, uint64_t code) {
  if (bits >= 8) {
    std::memcpy(bytes + index * (bits / 8), &code, static_cast<size_t>(bits / 8));
    return;
  }
  const int64_t at = index * bits;
  const auto part = static_cast<uint8_t>(code << (at % 8));
  bytes[at / 8] = at % 8 == 0 ? part : static_cast<uint8_t>(bytes[at / 8] | part);
  if (at % 8 + bits > 8) bytes[at / 8 + 1] = static_cast<uint8_t>(code >> (8 - at % 8));
}

// Type of the halves of a complex type; any other type itself.
const DtypeInfo& number_type(const DtypeInfo& type) {
  if (type.kind != DtypeKind::kComplex) return type;
  return info_of(type.bits == 64 ? Dtype::kFloat32 : Dtype::kFloat64);
}

}  // namespace

void cast_reference(const CastArguments& arguments) {
  const uint8_t* source = arguments.source;
  uint8_t* destination = arguments.destination;
  const Dtype from = arguments.from;
  const Dtype to = arguments.to;
  const DtypeInfo& from_number = number_type(info_of(from));
  const DtypeInfo& to_number = number_type(info_of(to));
  const int64_t from_halves = is_complex(from) ? 2 : 1;
  const int64_t to_halves = is_complex(to) ? 2 : 1;
  for (int64_t i = 0; i < arguments.count; ++i) {
    for (int64_t half = 0; half < to_halves; ++half) {
      uint64_t code = 0;
      // A real number has no imaginary half.
      if (half < from_halves) {
        const ExactNumber number =
            decode(from_number, load_code(source, from_number.bits, i * from_halves + half));
        code = encode(to_number, number, arguments.options);
      }
      store_code(destination, to_number.bits, i * to_halves + half, code);
    }
  }
}

}  // namespace tilework
