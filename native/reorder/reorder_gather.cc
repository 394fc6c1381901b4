#include "reorder/gather.h"
#include "reorder/kernels.h"

namespace tilework {
namespace {

// For each width of elements.
struct Instructions {
  ShuffleBytes shuffle;
  TransposeListed transpose_x8;
  TransposeListed transpose_x16;
  TransposeListed transpose_x32;
  TransposeListed transpose_x64;
};

constexpr Instructions kPortable{nullptr, transpose_listed_x8, transpose_listed_x16, transpose_listed_x32,
                                 transpose_listed_x64};
#if defined(__x86_64__)
constexpr Instructions kAvx2{shuffle_bytes__avx2, transpose_listed_x8__avx2, transpose_listed_x16__avx2,
                             transpose_listed_x32__avx2, transpose_listed_x64__avx2};
#endif

void gather_with(const Instructions& with, const ReorderArguments& a, size_t nest, int64_t begin,
                 int64_t end) {
  switch (a.plan.element_bits()) {
    case 8:
      return gather<uint8_t>(a, nest, {with.shuffle, with.transpose_x8}, begin, end);
    case 16:
      return gather<uint16_t>(a, nest, {with.shuffle, with.transpose_x16}, begin, end);
    case 32:
      return gather<uint32_t>(a, nest, {with.shuffle, with.transpose_x32}, begin, end);
    case 64:
      return gather<uint64_t>(a, nest, {with.shuffle, with.transpose_x64}, begin, end);
    default:
      return gather<Unit128>(a, nest, {nullptr, nullptr}, begin, end);
  }
}

void gather_all(const ReorderArguments& arguments, const Instructions& with) {
  const int64_t size = arguments.plan.element_bits() / 8;
  for (size_t i = 0; i < arguments.plan.nests().size(); ++i) {
    gather_with(with, arguments, i, arguments.begin / size, arguments.end / size);
  }
}

}  // namespace

void gather_nest(const ReorderArguments& arguments, size_t nest, int64_t begin, int64_t end) {
  gather_with(kPortable, arguments, nest, begin, end);
}

void reorder_x8_gather(const ReorderArguments& a) { gather_all(a, kPortable); }
void reorder_x16_gather(const ReorderArguments& a) { gather_all(a, kPortable); }
void reorder_x32_gather(const ReorderArguments& a) { gather_all(a, kPortable); }
void reorder_x64_gather(const ReorderArguments& a) { gather_all(a, kPortable); }
void reorder_x128_gather(const ReorderArguments& a) { gather_all(a, kPortable); }

#if defined(__x86_64__)
void reorder_x8_gather__avx2(const ReorderArguments& a) { gather_all(a, kAvx2); }
void reorder_x16_gather__avx2(const ReorderArguments& a) { gather_all(a, kAvx2); }
void reorder_x32_gather__avx2(const ReorderArguments& a) { gather_all(a, kAvx2); }
void reorder_x64_gather__avx2(const ReorderArguments& a) { gather_all(a, kAvx2); }
#endif

}  // namespace tilework
