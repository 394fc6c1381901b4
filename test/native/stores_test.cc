// Which stores a run uses, as a table.
#include "policy/stores.h"

#include <string>

#include "check.h"
#include "cpu/cache.h"
#include "reorder_case.h"

namespace tilework::test {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

struct StoreCase {
  int64_t cache;
  bool is_slow;
  int64_t bytes;
  size_t threads;
  Stores wanted;
};

constexpr StoreCase kStoreCases[] = {
    // Half of the cache on one thread, three quarters on more.
    {32 * kMiB, false, 16 * kMiB, 1, Stores::kCached},
    {32 * kMiB, false, 16 * kMiB + 1, 1, Stores::kStreaming},
    {32 * kMiB, false, 24 * kMiB, 2, Stores::kCached},
    {32 * kMiB, false, 24 * kMiB + 1, 2, Stores::kStreaming},
    {32 * kMiB, false, 24 * kMiB + 1, 64, Stores::kStreaming},
    // A virtual machine reports the caches of its host.
    {480 * kMiB, false, 32 * kMiB, 1, Stores::kCached},
    {480 * kMiB, false, 32 * kMiB + 1, 1, Stores::kStreaming},
    {480 * kMiB, false, 48 * kMiB + 1, 2, Stores::kStreaming},
    // The calibration vetoes streaming.
    {32 * kMiB, true, 1024 * kMiB, 1, Stores::kCached},
    {32 * kMiB, true, 1024 * kMiB, 2, Stores::kCached},
};

void test_stores() {
  for (const StoreCase& each : kStoreCases) {
    const MemoryFacts facts{each.cache, each.is_slow ? [] { return true; } : [] { return false; }};
    const std::string text = stores_reason(each.bytes, each.threads, facts);
    CHECK_IN(text, choose_stores(each.bytes, each.threads, facts) == each.wanted);
    const bool is_more = text.find("are more than") != std::string::npos;
    CHECK_IN(text, is_more == (each.wanted == Stores::kStreaming));
  }
}

// Small runs do not pay for the calibration.
void test_calibration_is_lazy() {
  static int asked = 0;
  const MemoryFacts facts{32 * kMiB, [] { return ++asked > 1000; }};
  CHECK(choose_stores(1000, 1, facts) == Stores::kCached);
  CHECK(asked == 0);
  CHECK(choose_stores(64 * kMiB, 1, facts) == Stores::kStreaming);
  CHECK(asked == 1);
}

void test_fixed_by_the_environment() {
  for (const Stores fixed : {Stores::kCached, Stores::kStreaming}) {
    const MemoryFacts facts{32 * kMiB, [] { return true; }, fixed};
    for (const int64_t bytes : {int64_t{1}, 1024 * kMiB}) CHECK(choose_stores(bytes, 1, facts) == fixed);
    CHECK(stores_reason(1, 1, facts) == "fixed by TILEWORK_STORES");
  }
}

void test_explanation() {
  const MemoryFacts facts{32 * kMiB, [] { return false; }};
  CHECK(stores_reason(3 * kMiB / 2, 1, facts) ==
        "1.5 MiB of source and destination are not more than 16 MiB, half of a cache of 32 MiB");
  CHECK(stores_reason(36000, 1, facts) ==
        "35 KiB of source and destination are not more than 16 MiB, half of a cache of 32 MiB");
  const MemoryFacts host{260 * kMiB, [] { return false; }};
  CHECK(
      stores_reason(100 * kMiB, 2, host) ==
      "100 MiB of source and destination are more than 48 MiB, three quarters of a cache of 64 MiB (260 MiB "
      "reported, of which a core has less)");
}

// What this machine reports and measures can be true of one.
void test_this_machine() {
  CHECK(last_level_cache_bytes() >= 64 << 10);
  CHECK(memory_facts().last_level_bytes == last_level_cache_bytes());
  const bool is_slow = memory_facts().is_streaming_slow();
  CHECK(memory_facts().is_streaming_slow() == is_slow);
}

void test_plans_ask() {
  const int64_t bytes = streaming_bytes(memory_facts(), 1);
  const auto stores_of = [](int64_t half) {
    return ReorderPlan({8, {half}, row_major({half}), row_major({half})}).stores_of_whole(1);
  };
  CHECK(stores_of(bytes / 2) == choose_stores(bytes / 2 * 2, 1));
  CHECK(stores_of(bytes / 2 + 1) == choose_stores(bytes + 2, 1));
  // A part of a result is written as the whole result is.
  const ReorderPlan part({8, {1000}, row_major({1000}), row_major({1000})});
  CHECK(part.stores_of_whole(1, bytes) == choose_stores(bytes + 1000, 1));
  CHECK(part.stores_of_whole(1, 10) == choose_stores(2000, 1));
}

}  // namespace
}  // namespace tilework::test

int main() {
  tilework::test::test_stores();
  tilework::test::test_calibration_is_lazy();
  tilework::test::test_fixed_by_the_environment();
  tilework::test::test_explanation();
  tilework::test::test_this_machine();
  tilework::test::test_plans_ask();
  return tilework::test::result();
}
