#include "reorder_run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "environment.h"
#include "error.h"
#include "io/checked_math.h"
#include "io/input_file.h"

namespace tilework::binding {
namespace {

// Tiles are small enough that cancelling is felt at once, and large enough that starting one costs nothing.
constexpr int64_t kMinTileBytes = int64_t{64} << 10;
constexpr int64_t kMaxTileBytes = int64_t{4} << 20;
// Tiles a thread, so that threads that are held up do not hold up the rest.
constexpr int64_t kTilesPerThread = 4;
// Tiles end at whole cache lines, where no two threads write.
constexpr int64_t kCacheLine = 64;

int64_t tile_bytes_of(const Target& target, size_t threads) {
  const int64_t share = (target.end - target.begin) / (static_cast<int64_t>(threads) * kTilesPerThread);
  const int64_t bytes = std::clamp(share / kCacheLine * kCacheLine, kMinTileBytes, kMaxTileBytes);
  const int64_t unit = target.plan->range_unit(kMaxTileBytes);
  return ceil_div(bytes, unit) * unit;
}

}  // namespace

Target target_of(std::shared_ptr<const ReorderPlan> plan, const Bytes& destination, const Napi::Value& start,
                 const Napi::Value& end) {
  Target target{std::move(plan), destination.data, whole_number(start, "start"), whole_number(end, "end")};
  target.plan->check_range(target.begin, target.end);
  if (destination.size != static_cast<size_t>(target.end - target.begin)) {
    throw Error("ERR_ARGUMENT", "'destination' has " + std::to_string(destination.size) +
                                    " bytes, the range has " + std::to_string(target.end - target.begin) +
                                    ".");
  }
  // A job holds the map it reads; one it wrote to could be revoked under it, and nobody may write to views.
  if (InputFile::find(destination.data, destination.size) != nullptr) {
    throw Error("ERR_ARGUMENT",
                "The destination lies in a mapped file, whose views are not to be written to.");
  }
  return target;
}

Run run_of(Target target, const uint8_t* source) {
  const auto from = reinterpret_cast<uintptr_t>(source);
  const auto to = reinterpret_cast<uintptr_t>(target.destination);
  const int64_t source_bytes = target.plan->source_bytes();
  const int64_t size = target.end - target.begin;
  const bool apart =
      from + static_cast<uintptr_t>(source_bytes) <= to || to + static_cast<uintptr_t>(size) <= from;
  if (!apart && size > 0 && source_bytes > 0) {
    throw Error("ERR_ARGUMENT", "'source' and 'destination' share memory.");
  }
  return {std::move(target), source};
}

ReorderJob::ReorderJob(Environment& environment, Napi::Env env, Run run, int64_t tile_bytes)
    : AsyncJob(environment, env, ceil_div(run.target.end - run.target.begin, tile_bytes)),
      run_(std::move(run)),
      tile_bytes_(tile_bytes) {}

std::shared_ptr<ReorderJob> ReorderJob::make(Napi::Env env, Run run, const Bytes& destination,
                                             const Napi::Value& cancel) {
  Environment& environment = Environment::of(env);
  const int64_t tile_bytes = tile_bytes_of(run.target, environment.pools().compute.threads());
  auto job = std::make_shared<ReorderJob>(environment, env, std::move(run), tile_bytes);
  job->set_cancel_flag(cancel);
  job->pin(destination.array);
  return job;
}

void ReorderJob::run_tile(int64_t tile) {
  const Target& target = run_.target;
  const int64_t begin = target.begin + tile * tile_bytes_;
  const int64_t end = std::min(begin + tile_bytes_, target.end);
  target.plan->run(run_.source, target.destination + (begin - target.begin), begin, end,
                   target.plan->stores_of_whole());
}

}  // namespace tilework::binding
