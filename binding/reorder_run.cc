#include "reorder_run.h"

#include <string>
#include <utility>

#include "environment.h"
#include "error.h"
#include "io/input_file.h"

namespace tilework::binding {
namespace {

// A job keeps the mapping that it reads, but a mapping that it writes to could be revoked; views are
// read-only for callers.
Target checked(const Target& target, const Bytes& destination) {
  if (destination.size != static_cast<size_t>(target.end - target.begin)) {
    throw Error(ErrorCode::kArgument, "'destination' has " + std::to_string(destination.size) +
                                          " bytes; the range has " +
                                          std::to_string(target.end - target.begin) + ".");
  }
  if (InputFile::find(destination.data, destination.size) != nullptr) {
    throw Error(ErrorCode::kArgument,
                "The destination is a view of a mapped file; views must not be written.");
  }
  return target;
}

}  // namespace

std::shared_ptr<const ReorderParts> CutPlan::parts(int64_t begin, int64_t end, size_t threads) {
  const bool is_all = begin == 0 && end == plan_->destination_bytes();
  if (!is_all) return std::make_shared<const ReorderParts>(plan_, begin, end, threads);
  if (parts_ == nullptr || threads_ != threads) {
    parts_ = std::make_shared<const ReorderParts>(plan_, threads);
    threads_ = threads;
  }
  return parts_;
}

Target target_of(const ReorderPlan& plan, const Bytes& destination, const Napi::Value& start,
                 const Napi::Value& end) {
  const Target target{&plan, destination.data, whole_number(start, "start"), whole_number(end, "end")};
  plan.check_range(target.begin, target.end);
  return checked(target, destination);
}

Target target_of(const ReorderPlan& plan, const Bytes& destination) {
  return checked({&plan, destination.data, 0, plan.destination_bytes()}, destination);
}

void check_source_size(const ReorderPlan& plan, int64_t size) {
  if (size == plan.source_bytes()) return;
  throw Error(ErrorCode::kArgument, "'source' has " + std::to_string(size) + " bytes; the plan reads " +
                                        std::to_string(plan.source_bytes()) + ".");
}

Run run_of(const Target& target, const uint8_t* source) {
  const auto from = reinterpret_cast<uintptr_t>(source);
  const auto to = reinterpret_cast<uintptr_t>(target.destination);
  const int64_t source_bytes = target.plan->source_bytes();
  const int64_t size = target.end - target.begin;
  const bool apart =
      from + static_cast<uintptr_t>(source_bytes) <= to || to + static_cast<uintptr_t>(size) <= from;
  if (!apart && size > 0 && source_bytes > 0) {
    throw Error(ErrorCode::kArgument, "'source' and 'destination' overlap.");
  }
  return {target, source};
}

void run_now(const Run& run, CutPlan& plan, ThreadPool& pool, int64_t result_bytes) {
  const Target& target = run.target;
  const int64_t bytes = target.end - target.begin;
  const bool is_small = target.plan->source_bytes() < kThreadedBytes && bytes < kThreadedBytes &&
                        target.plan->source_bytes() + bytes < kThreadedBytes;
  if (is_small) {
    target.plan->run(run.source, target.destination, target.begin, target.end,
                     target.plan->stores_of_whole(1, result_bytes));
    return;
  }
  // Also on one thread: parts group what is read or written together.
  const std::shared_ptr<const ReorderParts> parts = plan.parts(target.begin, target.end, pool.threads());
  const Stores stores = target.plan->stores_of_whole(pool.threads(), result_bytes);
  pool.run(parts->count(), [&](int64_t part) { parts->run(part, run.source, target.destination, stores); });
}

ReorderJob::ReorderJob(Environment& environment, Napi::Env env, std::shared_ptr<const ReorderParts> parts,
                       const Run& run)
    : AsyncJob(environment, env, parts->count()),
      parts_(std::move(parts)),
      source_(run.source),
      destination_(run.target.destination) {}

std::shared_ptr<ReorderJob> ReorderJob::make(Napi::Env env, const Run& run, CutPlan& plan,
                                             const Bytes& destination, const Napi::Value& cancel) {
  Environment& environment = Environment::of(env);
  const size_t threads = environment.pools().compute.threads();
  auto parts = plan.parts(run.target.begin, run.target.end, threads);
  auto job = std::make_shared<ReorderJob>(environment, env, std::move(parts), run);
  job->set_cancel_flag(cancel);
  job->pin(destination.array);
  return job;
}

}  // namespace tilework::binding
