// The element types, from the table in lib/dtype/dtype_table.ts.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>

namespace tilework {

enum class Dtype : uint8_t {
#define TILEWORK_DTYPE(enumerator, name, bits, kind, mantissa_bits, bias, specials, dlpack_code) enumerator,
#include "facts/dtypes.def"
#undef TILEWORK_DTYPE
};

enum class DtypeKind : uint8_t { kFloat, kInt, kUint, kBool, kComplex };

// Special codes of a float. kIeee: the largest exponent holds infinities and NaN. kFn: only all ones is NaN.
// kFnuz: the code of -0 is the only NaN, so there is no -0. kFinite: none. kScale: exponent only; all ones is
// NaN; no zero and no sign.
enum class Specials : uint8_t { kNone, kIeee, kFn, kFnuz, kFinite, kScale };

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;
  int bits;
  DtypeKind kind;
  int mantissa_bits;
  int bias;
  Specials specials;
  // DLDataTypeCode of dlpack.h.
  int dlpack_code;
};

// All types, in the order of Dtype.
std::span<const DtypeInfo> dtypes();
const DtypeInfo& info_of(Dtype dtype);
// Errors: ERR_DTYPE for an unknown name and for `string`, whose elements have no fixed size.
Dtype dtype_of(std::string_view name);

inline bool is_float(Dtype dtype) { return info_of(dtype).kind == DtypeKind::kFloat; }
inline bool is_complex(Dtype dtype) { return info_of(dtype).kind == DtypeKind::kComplex; }
// True for signed and unsigned integers.
inline bool is_integer(Dtype dtype) {
  const DtypeKind kind = info_of(dtype).kind;
  return kind == DtypeKind::kInt || kind == DtypeKind::kUint;
}

// Bytes of `elements` packed elements. Sub-byte elements fill bytes from their low bits; one of 6 bits may
// lie in two bytes. Errors: ERR_OVERFLOW.
int64_t packed_bytes(int bits, int64_t elements);
inline int64_t packed_bytes(Dtype dtype, int64_t elements) {
  return packed_bytes(info_of(dtype).bits, elements);
}

// The fewest sub-byte elements that fill whole bytes: 4 of 2 bits or 6 bits, 2 of 4 bits. 1 of every other
// width.
inline int64_t elements_per_group(int bits) { return bits < 8 ? 8 / std::gcd(bits, 8) : 1; }
inline int64_t elements_per_group(Dtype dtype) { return elements_per_group(info_of(dtype).bits); }

// Whether kernels move single elements: those of 4 bits, and of 8 and more. Others are copied in runs only.
inline bool moves_elements(int bits) { return bits == 4 || bits >= 8; }

}  // namespace tilework
