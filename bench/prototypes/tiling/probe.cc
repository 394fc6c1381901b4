// Checks the prototype against the engine, on the cases that test/native/exhaustive.cc reads from standard
// input. With an argument, lines start with a label, and both are timed in interleaved rounds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>

#include "engine.h"
#include "read_description.h"
#include "reorder/kernels.h"
#include "reorder/plan.h"

using namespace tilework;

int main(int argc, char** argv) {
  static_cast<void>(argv);
  const bool timed = argc > 1;
  test::DescriptionReader reader(std::cin);
  int64_t number;
  uint64_t seed;
  bool oracle;
  int64_t cases = 0, failures = 0;
  std::map<std::string, int64_t> leaves;
  std::string label;
  while ((timed ? !!(std::cin >> label) : !!(std::cin >> number >> seed >> oracle))) {
    const ReorderDescription description = reader.read();
    if (description.element_bits < 8) continue;
    const ReorderPlan plan(description);
    const int64_t bytes = plan.destination_bytes();
    if (bytes == 0 || plan.copy_offset()) continue;
    ++cases;
    std::vector<Engine> engines;
    for (const LoopNest& nest : plan.nests()) engines.emplace_back(nest, plan.element_bits() / 8, bytes);
    auto* s = static_cast<uint8_t*>(
        std::aligned_alloc(64, (static_cast<size_t>(plan.source_bytes()) + 4095) / 64 * 64));
    auto* d = static_cast<uint8_t*>(std::aligned_alloc(64, (static_cast<size_t>(bytes) + 4095) / 64 * 64));
    auto* e = static_cast<uint8_t*>(std::aligned_alloc(64, (static_cast<size_t>(bytes) + 4095) / 64 * 64));
    std::mt19937_64 random(1);
    for (int64_t i = 0; i < plan.source_bytes(); ++i) s[i] = static_cast<uint8_t>(random());
    std::memset(d, 0xa5, bytes);
    plan.run(s, e, 0, bytes);
    const Stores stores = timed ? plan.stores_of_whole(1) : Stores::kCached;
    const auto all = [&](int64_t from, int64_t to) {
      for (const Engine& engine : engines) engine.run(s, d + from, from, to, stores);
    };
    all(0, bytes);
    bool same = std::memcmp(d, e, bytes) == 0;
    if (!timed) {
      const int64_t unit = plan.element_bits() / 8;
      const int64_t a = static_cast<int64_t>(random() % (bytes / unit)) * unit;
      const int64_t b = a + static_cast<int64_t>(1 + random() % ((bytes - a) / unit)) * unit;
      std::memset(d, 0xa5, bytes);
      all(a, b);
      same = same && std::memcmp(d + a, e + a, b - a) == 0 && (b == bytes || d[b] == 0xa5) &&
             (a == 0 || d[a - 1] == 0xa5);
    }
    for (const Engine& engine : engines) ++leaves[engine.first_leaf()];
    if (!same) {
      ++failures;
      std::printf("case %lld differs\n%s", static_cast<long long>(number),
                  describe(engines[0].tiling()).c_str());
      if (failures > 5) return 1;
    }
    if (timed) {
      double best[3] = {1e9, 1e9, 1e9};
      const auto now = [] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
      };
      const int rounds = 15;
      const int repeat = std::max<int>(1, static_cast<int>(20e6 / (bytes + plan.source_bytes())));
      for (int round = 0; round < rounds; ++round) {
        for (int which = 0; which < 3; ++which) {
          double start = 0;
          for (int k = -1; k < repeat; ++k) {
            if (k == 0) start = now();
            if (which == 0) plan.run(s, d, 0, bytes, stores);
            if (which == 1) all(0, bytes);
            if (which == 2) std::memcpy(d, s, std::min(bytes, plan.source_bytes()));
          }
          best[which] = std::min(best[which], (now() - start) / repeat);
        }
      }
      const double moved = static_cast<double>(bytes + plan.source_bytes());
      std::printf("%-46s old %6.1f new %6.1f memcpy %6.1f GB/s  new/old %.2f  %s | %s\n", label.c_str(),
                  moved / best[0] / 1e9, moved / best[1] / 1e9,
                  2.0 * std::min(bytes, plan.source_bytes()) / best[2] / 1e9, best[0] / best[1],
                  engines[0].first_leaf().c_str(), plan.kernel().name);
      if (argc > 2) std::printf("%s", describe(engines[0].tiling()).c_str());
      std::fflush(stdout);
    }
    std::free(s);
    std::free(d);
    std::free(e);
  }
  std::printf("%lld cases, %lld failures\n", static_cast<long long>(cases), static_cast<long long>(failures));
  if (!timed)
    for (const auto& [name, count] : leaves)
      std::printf("%s %lld\n", name.c_str(), static_cast<long long>(count));
  return failures > 0;
}
