#include "policy/stores.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "cpu/cache.h"
#include "policy/thresholds.h"

namespace tilework {
namespace {

// Streaming stores of ordinary hardware reach 0.4 of plain ones in the caches at the least.
constexpr double kSlowStreaming = 0.2;
// Beyond a second-level cache, so that a plain copy has no advantage that a larger one would not have.
constexpr int64_t kTrialBytes = int64_t{2} << 20;
constexpr int kTrialRounds = 3;

double seconds_of(void (*copy)(uint8_t*, const uint8_t*), uint8_t* to, const uint8_t* from) {
  double best = 1;
  for (int round = 0; round < kTrialRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    copy(to, from);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

// Takes one to two milliseconds; a run that asks takes more.
bool measure_is_streaming_slow() {
  const std::unique_ptr<uint8_t[]> memory(new (std::nothrow) uint8_t[2 * kTrialBytes]);
  if (memory == nullptr) return false;
  std::memset(memory.get(), 1, 2 * kTrialBytes);
  uint8_t* to = memory.get();
  const uint8_t* from = to + kTrialBytes;
  const double plain =
      seconds_of([](uint8_t* d, const uint8_t* s) { std::memcpy(d, s, kTrialBytes); }, to, from);
  const double streaming = seconds_of(
      [](uint8_t* d, const uint8_t* s) {
        copy_streaming(d, s, kTrialBytes);
        end_streaming();
      },
      to, from);
  return plain < kSlowStreaming * streaming;
}

bool is_streaming_slow() {
  static const bool is_slow = measure_is_streaming_slow();
  return is_slow;
}

// Of the cache that the system reports, what a core has.
int64_t cache_bytes(const MemoryFacts& facts) { return at_most(facts.last_level_bytes, kMostCacheBytes); }

std::string size_text(int64_t bytes) {
  char text[32];
  const bool is_small = bytes < 1 << 20;
  const double count = static_cast<double>(bytes) / (is_small ? 1 << 10 : 1 << 20);
  std::snprintf(text, sizeof(text), count < 10 ? "%.1f %s" : "%.0f %s", count, is_small ? "KiB" : "MiB");
  return text;
}

std::optional<Stores> stores_of_environment() {
  const char* value = std::getenv("TILEWORK_STORES");
  if (value == nullptr) return {};
  if (std::strcmp(value, "cached") == 0) return Stores::kCached;
  if (std::strcmp(value, "streaming") == 0) return Stores::kStreaming;
  return {};
}

}  // namespace

const MemoryFacts& memory_facts() {
  static const MemoryFacts facts{last_level_cache_bytes(), is_streaming_slow, stores_of_environment()};
  return facts;
}

int64_t streaming_bytes(const MemoryFacts& facts, size_t threads) {
  const int64_t quarter = cache_bytes(facts) / 4;
  return threads > 1 ? 3 * quarter : 2 * quarter;
}

Stores choose_stores(int64_t bytes, size_t threads, const MemoryFacts& facts) {
  if (facts.fixed) return *facts.fixed;
  const bool streams = bytes > streaming_bytes(facts, threads) && !facts.is_streaming_slow();
  return streams ? Stores::kStreaming : Stores::kCached;
}

std::string stores_reason(int64_t bytes, size_t threads, const MemoryFacts& facts) {
  if (facts.fixed) return "fixed by TILEWORK_STORES";
  const int64_t most = streaming_bytes(facts, threads);
  const int64_t cache = cache_bytes(facts);
  const std::string sizes = size_text(bytes) + " of source and destination are ";
  std::string limit = size_text(most) + ", " + (threads > 1 ? "three quarters" : "half") + " of a cache of " +
                      size_text(cache);
  if (facts.last_level_bytes > cache)
    limit += " (" + size_text(facts.last_level_bytes) + " reported, of which a core has less)";
  if (bytes <= most) return sizes + "not more than " + limit;
  if (facts.is_streaming_slow()) return "streaming stores were measured to be slow on this machine";
  return sizes + "more than " + limit;
}

}  // namespace tilework
