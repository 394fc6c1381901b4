// Plans of random layouts on the first OpenCL device against the CPU: in place and copied, in slices and
// windows, table-driven and with literals. test/opencl has the catalogued layouts; this program adds unnamed
// layouts and sanitizers. Without a device it prints that and passes.
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "opencl/device_reorder.h"
#include "opencl_device.h"
#include "reorder_case.h"

namespace tilework::test {
namespace {

// Each costs a compilation per form.
constexpr int kOwnKernels = 12;
constexpr int kCases = 400;

bool is_equal(const Storage& a, const Storage& b) {
  return std::memcmp(a.data.get(), b.data.get(), static_cast<size_t>(a.size)) == 0;
}

void check_plan(const std::shared_ptr<const ReorderPlan>& plan, const std::string& name,
                const std::vector<cl::DeviceOptions>& ways, std::mt19937_64& random) {
  const Storage source(plan->source_bytes());
  for (int64_t i = 0; i < source.size; ++i) source.data[i] = static_cast<uint8_t>(random());
  const Storage wanted(plan->destination_bytes());
  plan->run(source.data.get(), wanted.data.get(), 0, wanted.size);
  for (const cl::DeviceOptions& way : ways) {
    const Storage found(plan->destination_bytes());
    std::memset(found.data.get(), 0xA5, static_cast<size_t>(found.size));
    const cl::DeviceReorder reorder(plan, *cl::devices().front(), way, 0, found.size);
    reorder.run({source.data.get(), nullptr, 0}, {found.data.get(), nullptr, 0}, [] { return false; });
    CHECK_IN(name + (way.in_place ? " in place" : " copied") +
                 (way.own_kernel_bytes == 0 ? " own kernel " : " table ") + reorder.form(),
             is_equal(found, wanted));
  }
}

cl::DeviceOptions way(bool in_place, int64_t max_bytes, bool own_kernel) {
  cl::DeviceOptions options;
  options.in_place = in_place;
  options.max_bytes = max_bytes;
  if (own_kernel) options.own_kernel_bytes = 0;
  return options;
}

void test_random_cases() {
  std::mt19937_64 random(20261121);
  RandomLayout layouts(random);
  for (int i = 0; i < kCases && failures < 10; ++i) {
    const ReorderDescription description = random_description(layouts, i);
    if (!is_small(description)) continue;
    std::vector<cl::DeviceOptions> ways{way(true, 0, false), way(false, 0, false)};
    const auto plan = std::make_shared<const ReorderPlan>(description);
    const int64_t largest = std::max(plan->source_bytes(), plan->destination_bytes());
    // Each pair of slice and window costs a kernel run.
    ways.push_back(way(false, largest / 3, false));
    if (i < kOwnKernels) ways.push_back(way(false, largest / 2, true));
    if (i < kOwnKernels / 2) {
      // Too few elements for tiles.
      ways.push_back(way(true, 0, true));
      ways.back().max_group = 32;
    }
    check_plan(plan, describe(description), ways, random);
  }
}

}  // namespace
}  // namespace tilework::test

int main() { return tilework::test::run_on_device(tilework::test::test_random_cases); }
