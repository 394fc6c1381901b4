// TILEWORK_MAX_ISA: its parsing, and that every table of kernels respects it.
#include "cpu/isa.h"

#include <cstdlib>
#include <string>

#include "check.h"
#include "dtype/cast.h"
#include "dtype/scaling.h"
#include "reorder/plan/plan.h"

namespace tilework::test {
namespace {

void test_limits() {
  CHECK(limited_isa(Isa::kAvx2, nullptr) == Isa::kAvx2);
  CHECK(limited_isa(Isa::kNeon, "") == Isa::kNeon);
  CHECK(limited_isa(Isa::kPortable, "portable") == Isa::kPortable);
  for (const char* unknown : {"avx3", "reference", "AVX2", "portable "}) {
    CHECK_IN(unknown, code_of([&] { limited_isa(Isa::kPortable, unknown); }) == "ERR_ARGUMENT");
  }
#if defined(__x86_64__)
  CHECK(limited_isa(Isa::kAvx2, "portable") == Isa::kPortable);
  CHECK(limited_isa(Isa::kPortable, "avx2") == Isa::kPortable);
  CHECK(limited_isa(Isa::kAvx512, "avx2") == Isa::kAvx2);
  CHECK(limited_isa(Isa::kAvx2, "avx512") == Isa::kAvx2);
  CHECK(code_of([] { limited_isa(Isa::kAvx2, "neon"); }) == "ERR_ARGUMENT");
#elif defined(__aarch64__)
  CHECK(limited_isa(Isa::kNeon, "portable") == Isa::kPortable);
  CHECK(code_of([] { limited_isa(Isa::kNeon, "avx2"); }) == "ERR_ARGUMENT");
#endif
}

bool is_portable(const std::string& kernels) { return kernels.find("__") == std::string::npos; }

// Transposes 64 by 64 elements, which every instruction set has a kernel for.
std::string transpose_kernel(int element_bits) {
  const auto side = [](int outer, int inner) {
    return Side{{0, 0}, {0, 0}, {{0, 0, 64, {{{outer}, 64, 1}, {{inner}, 64, 1}}}}, 64 * 64};
  };
  return ReorderPlan(ReorderDescription{element_bits, {64, 64}, side(0, 1), side(1, 0)}).kernel().name;
}

void test_tables_without_wide_sets() {
  CHECK(best_isa() == Isa::kPortable);
  CHECK(can_run(Isa::kReference) && can_run(Isa::kPortable) && !can_run(Isa::kAvx2) && !can_run(Isa::kNeon));
  for (const DtypeInfo& from : dtypes()) {
    for (const DtypeInfo& to : dtypes()) {
      if (is_complex(from.dtype) && !is_complex(to.dtype)) continue;
      const std::string kernels = Cast(from.dtype, to.dtype, CastOptions{}).kernels();
      CHECK_IN(kernels, is_portable(kernels));
    }
  }
  ScalingDescription scaling;
  scaling.scales = {2};
  scaling.offsets = {1};
  CHECK(is_portable(Scaling(scaling, Dtype::kUint8, Dtype::kFloat32, nullptr).kernels()));
  for (const int bits : {8, 16, 32, 64, 128}) CHECK(is_portable(transpose_kernel(bits)));
}

}  // namespace
}  // namespace tilework::test

int main() {
  // Must precede the first choice of a kernel, which reads the variable.
  setenv("TILEWORK_MAX_ISA", "portable", 1);
  tilework::test::test_limits();
  tilework::test::test_tables_without_wide_sets();
  return tilework::test::result();
}
