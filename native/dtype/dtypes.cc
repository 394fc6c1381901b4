#include "dtype/dtypes.h"

#include <string>

#include "error.h"
#include "io/checked_math.h"

namespace tilework {
namespace {

constexpr DtypeInfo kDtypes[] = {
#define TILEWORK_DTYPE(enumerator, name, bits, kind, mantissa_bits, bias, specials, dlpack_code) \
  {Dtype::enumerator, name, bits, DtypeKind::kind, mantissa_bits, bias, Specials::specials, dlpack_code},
#include "facts/dtypes.def"
#undef TILEWORK_DTYPE
};

}  // namespace

std::span<const DtypeInfo> dtypes() { return kDtypes; }

const DtypeInfo& info_of(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)]; }

Dtype dtype_of(std::string_view name) {
  for (const DtypeInfo& info : kDtypes) {
    if (info.name == name) return info.dtype;
  }
  throw Error(ErrorCode::kDtype,
              "unknown element type \"" + std::string(name) + "\"; expected a type of fixed size.");
}

int64_t packed_bytes(int bits, int64_t elements) {
  if (bits < 8) {
    const int64_t group = elements_per_group(bits);
    return elements / group * (group * bits / 8) + ceil_div(elements % group * bits, 8);
  }
  return checked_mul(elements, bits / 8, "The number of storage bytes");
}

}  // namespace tilework
