#include "dtype/dtypes.h"

#include "io/checked_math.h"

namespace tilework {
namespace {

constexpr DtypeInfo kDtypes[] = {
#define TILEWORK_DTYPE(enumerator, name, bits, kind, mantissa_bits, bias, specials) \
  {Dtype::enumerator, name, bits, DtypeKind::kind, mantissa_bits, bias, Specials::specials},
#include "dtype/dtypes.def"
#undef TILEWORK_DTYPE
};

}  // namespace

std::span<const DtypeInfo> dtypes() { return kDtypes; }

const DtypeInfo& info_of(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)]; }

std::optional<Dtype> dtype_by_name(std::string_view name) {
  for (const DtypeInfo& info : kDtypes) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

int64_t packed_bytes(Dtype dtype, int64_t elements) {
  const int bits = info_of(dtype).bits;
  if (bits < 8) return ceil_div(elements, 8 / bits);
  return checked_mul(elements, bits / 8, "The number of storage bytes");
}

}  // namespace tilework
