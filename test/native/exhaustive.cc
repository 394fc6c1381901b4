// Compares every kernel that fits a plan, and the parts for threads, with the reference kernel, for the cases
// that test/programs/exhaustive.mjs generates from the layout catalogue; and the reference with the oracle if
// the case asks for it. Source and destination lie next to a guard page, first at their lower end, then at
// their upper end.
//
// Reads one case per line: number, seed, 1 or 0 for the oracle, and the reorder (read_description.h). Writes
// the number of runs of each kernel to standard output, and failures to standard error.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "guarded_memory.h"
#include "read_description.h"
#include "reorder/kernels.h"
#include "reorder/run/parts.h"
#include "reorder_case.h"
#include "running_case.h"

namespace tilework::test {
namespace {

void set_running(int64_t number, const char* kernel, const char* what) {
  std::snprintf(running_case, sizeof(running_case), "case %lld: %s, %s\n", static_cast<long long>(number),
                kernel, what);
}

struct Case {
  int64_t number = 0;
  uint64_t seed = 0;
  bool asks_oracle = false;
  ReorderDescription description;
};

// Memory shared by all cases: allocating it takes longer than a case.
struct Memory {
  GuardedMemory source{kMaxBytes};
  GuardedMemory destination{kMaxBytes};
  static constexpr int64_t kMaxBytes = int64_t{64} << 20;
};

class CaseCheck {
 public:
  CaseCheck(const Case& at, const Memory& memory, std::map<std::string, int64_t>& runs)
      : case_(at),
        shared_plan_(std::make_shared<const ReorderPlan>(at.description)),
        plan_(*shared_plan_),
        memory_(memory),
        runs_(runs),
        random_(at.seed) {}

  void run() {
    const bool fits_memory = std::max(plan_.source_bytes(), plan_.destination_bytes()) <= Memory::kMaxBytes;
    CHECK_IN("case " + std::to_string(case_.number), fits_memory);
    if (!fits_memory) return;
    fill_source();
    for (Against end : {Against::kLower, Against::kUpper}) {
      end_ = end;
      source_ = memory_.source.place(plan_.source_bytes(), end);
      std::copy(bytes_.begin(), bytes_.end(), source_);
      if (expected_.empty()) expect();
      check("plan", plan_, [this](uint8_t* to, int64_t begin, int64_t last) {
        plan_.run(source_, to, begin, last, stores());
      });
      check_parts();
      check_kernels(plan_);
    }
  }

 private:
  void fill_source() {
    bytes_.resize(static_cast<size_t>(plan_.source_bytes()));
    for (uint8_t& byte : bytes_) byte = static_cast<uint8_t>(random_());
  }

  // Copies have no loop-nest reference, so the oracle checks them.
  void expect() {
    const ReorderKernel& reference =
        *std::find_if(reorder_kernels().rbegin(), reorder_kernels().rend(),
                      [this](const ReorderKernel& kernel) { return fits(kernel, plan_); });
    CHECK(std::string_view(reference.name).ends_with("_reference"));
    set_running(case_.number, reference.name, "whole");
    expected_.assign(static_cast<size_t>(plan_.destination_bytes()), 0xA5);
    if (!expected_.empty()) {
      reference.run({plan_, source_, expected_.data(), 0, plan_.destination_bytes()});
    }
    if (case_.asks_oracle || plan_.copy_offset()) {
      compare("the reference against the oracle", expected_of(case_.description, plan_, source_).data(),
              expected_.data(), 0, plan_.destination_bytes());
    }
  }

  void check_kernels(const ReorderPlan& plan) {
    for (const ReorderKernel& kernel : reorder_kernels()) {
      if (!fits(kernel, plan)) continue;
      ++runs_[kernel.name];
      check(kernel.name, plan, [&](uint8_t* to, int64_t begin, int64_t last) {
        kernel.run({plan, source_, to, begin, last, stores()});
      });
    }
  }

  // A few parts, in reverse order.
  void check_parts() {
    const int64_t bytes = plan_.destination_bytes();
    const int64_t part = std::max<int64_t>(bytes / (1 + below(6)), 64);
    const auto threads = static_cast<size_t>(1 + below(8));
    const ReorderParts parts(shared_plan_, threads, {0, part, part, 1});
    if (parts.count() == 1) return;
    check_range("parts", 0, bytes, [&](uint8_t* to, int64_t, int64_t) {
      for (int64_t i = parts.count(); i-- > 0;) parts.run(i, source_, to);
    });
  }

  // The whole destination, a range of any length, and one of at most 200 units.
  template <class Run>
  void check(const char* name, const ReorderPlan& plan, Run run) {
    const int64_t unit = std::max(plan.element_bits() / 8, 1);
    const int64_t units = plan.destination_bytes() / unit;
    if (units == 0) return;
    check_range(name, 0, plan.destination_bytes(), run);
    for (int64_t most : {units, std::min<int64_t>(units, 200)}) {
      const int64_t count = 1 + below(most);
      const int64_t begin = below(units - count + 1);
      check_range(name, begin * unit, (begin + count) * unit, run);
    }
  }

  template <class Run>
  void check_range(const char* name, int64_t begin, int64_t last, Run run) {
    if (begin == last) return;
    uint8_t* to = memory_.destination.place(last - begin, end_);
    std::memset(to, 0xA5, static_cast<size_t>(last - begin));
    char range[100];
    std::snprintf(range, sizeof(range), "range %lld..%lld against the %s end", static_cast<long long>(begin),
                  static_cast<long long>(last), end_ == Against::kLower ? "lower" : "upper");
    set_running(case_.number, name, range);
    run(to, begin, last);
    compare(std::string(name) + ", " + range, expected_.data(), to, begin, last);
  }

  void compare(const std::string& what, const uint8_t* expected, const uint8_t* found, int64_t begin,
               int64_t last) {
    const uint8_t* end = expected + last;
    const uint8_t* at = std::mismatch(expected + begin, end, found).first;
    if (at == end) return;
    CHECK_IN("case " + std::to_string(case_.number) + ": " + what + ": byte " +
                 std::to_string(at - expected) + " differs; " + describe(case_.description),
             at == end);
  }

  int64_t below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }
  Stores stores() { return below(2) == 0 ? Stores::kCached : Stores::kStreaming; }

  const Case& case_;
  std::shared_ptr<const ReorderPlan> shared_plan_;
  const ReorderPlan& plan_;
  const Memory& memory_;
  std::map<std::string, int64_t>& runs_;
  std::mt19937_64 random_;
  std::vector<uint8_t> bytes_;
  std::vector<uint8_t> expected_;
  Against end_ = Against::kLower;
  uint8_t* source_ = nullptr;
};

int check_all(std::istream& input) {
  constexpr int kMostFailures = 20;
  const Memory memory;
  std::map<std::string, int64_t> runs;
  for (const ReorderKernel& kernel : reorder_kernels()) runs[kernel.name] = 0;
  DescriptionReader descriptions(input);
  for (Case next; failures < kMostFailures && input >> next.number >> next.seed >> next.asks_oracle;) {
    next.description = descriptions.read();
    CaseCheck(next, memory, runs).run();
  }
  for (const auto& [kernel, count] : runs)
    std::printf("%s %lld\n", kernel.c_str(), static_cast<long long>(count));
  return result();
}

}  // namespace
}  // namespace tilework::test

int main() {
  std::ios::sync_with_stdio(false);
  tilework::test::report_crashes();
  return tilework::test::check_all(std::cin);
}
