#include "policy/cost_model.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "cpu/cache.h"
#include "io/checked_math.h"
#include "policy/thresholds.h"
#include "reorder/plan/tiling.h"

namespace tilework {
namespace {

// Thresholds that are lines of a cache, or parts of one.
static_assert(kTileEdgeBytes.value == kLineBytes && kCastEdgeBytes.value == 4 * kLineBytes);
static_assert(kHalfLineBytes.value == kLineBytes / 2 && kShortColumnBytes.value == 2 * kLineBytes);

// ---- Tiles

// What the register blocks of the leaves cost, in instructions, and a unit that is moved by itself.
struct BlockCost {
  int64_t row_bytes;
  int64_t column_bytes;
  double instructions;
};
constexpr BlockCost kBlockCosts[] = {{32, 16, 100}, {16, 32, 90}, {8, 32, 60}, {32, 8, 60}};
constexpr double kInstructionsByUnit = 3;

int64_t bytes_of(const std::vector<TileLoop>& list, int64_t unit) {
  for (const TileLoop& loop : list) unit *= loop.count;
  return unit;
}

// ---- Stores

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

std::string mebibytes(int64_t bytes) {
  char text[32];
  const double count = static_cast<double>(bytes) / (1 << 20);
  std::snprintf(text, sizeof(text), count < 10 ? "%.1f MiB" : "%.0f MiB", count);
  return text;
}

}  // namespace

double instructions_per_byte(const Tiling& tiling) {
  const int64_t rows = bytes_of(tiling.rows, tiling.unit_bytes);
  const int64_t columns = bytes_of(tiling.columns, tiling.unit_bytes);
  // In double: both are a unit of any size where the unit is copied, and products of two of them overflow.
  const auto unit = static_cast<double>(tiling.unit_bytes);
  const auto units =
      static_cast<double>(rows / tiling.unit_bytes) * static_cast<double>(columns / tiling.unit_bytes);
  double best = kInstructionsByUnit * units;
  for (const BlockCost& block : kBlockCosts) {
    if (rows < block.row_bytes || columns < block.column_bytes) continue;
    const double blocks = static_cast<double>(ceil_div(rows, block.row_bytes)) *
                          static_cast<double>(ceil_div(columns, block.column_bytes));
    best = std::min(best, blocks * block.instructions / unit);
  }
  return best / (units * unit);
}

const MemoryFacts& memory_facts() {
  static const MemoryFacts facts{last_level_cache_bytes(), is_streaming_slow};
  return facts;
}

int64_t streaming_bytes(const MemoryFacts& facts, size_t threads) {
  const int64_t quarter = cache_bytes(facts) / 4;
  return threads > 1 ? 3 * quarter : 2 * quarter;
}

Stores choose_stores(int64_t bytes, size_t threads, const MemoryFacts& facts) {
  const bool streams = bytes > streaming_bytes(facts, threads) && !facts.is_streaming_slow();
  return streams ? Stores::kStreaming : Stores::kCached;
}

std::string stores_reason(int64_t bytes, size_t threads, const MemoryFacts& facts) {
  const int64_t most = streaming_bytes(facts, threads);
  const std::string sizes = mebibytes(bytes) + " of source and destination are ";
  const std::string limit = mebibytes(most) + ", " + (threads > 1 ? "three quarters" : "half") +
                            " of a cache of " + mebibytes(cache_bytes(facts));
  if (bytes <= most) return sizes + "not more than " + limit;
  if (facts.is_streaming_slow()) return "streaming stores were measured to be slow on this machine";
  return sizes + "more than " + limit;
}

}  // namespace tilework
