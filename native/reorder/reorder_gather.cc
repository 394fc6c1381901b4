#include "reorder/gather.h"
#include "reorder/kernels.h"

namespace tilework {
namespace {

void gather_all(const ReorderArguments& arguments) {
  const int64_t size = arguments.plan.element_bits() / 8;
  for (size_t i = 0; i < arguments.plan.nests().size(); ++i) {
    gather_nest(arguments, i, arguments.begin / size, arguments.end / size);
  }
}

}  // namespace

void gather_nest(const ReorderArguments& a, size_t nest, int64_t begin, int64_t end) {
  switch (a.plan.element_bits()) {
    case 8:
      return gather<uint8_t>(a, nest, begin, end);
    case 16:
      return gather<uint16_t>(a, nest, begin, end);
    case 32:
      return gather<uint32_t>(a, nest, begin, end);
    case 64:
      return gather<uint64_t>(a, nest, begin, end);
    default:
      return gather<Unit128>(a, nest, begin, end);
  }
}

void reorder_x8_gather(const ReorderArguments& a) { gather_all(a); }
void reorder_x16_gather(const ReorderArguments& a) { gather_all(a); }
void reorder_x32_gather(const ReorderArguments& a) { gather_all(a); }
void reorder_x64_gather(const ReorderArguments& a) { gather_all(a); }
void reorder_x128_gather(const ReorderArguments& a) { gather_all(a); }

}  // namespace tilework
