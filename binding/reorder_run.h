// A run of a plan from memory to memory: its checks and its job.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "arguments.h"
#include "job.h"
#include "parallel/thread_pool.h"
#include "reorder/plan/plan.h"
#include "reorder/run/parts.h"
#include "sparse_buffer.h"

namespace tilework::binding {

// A plan with the parts for the last number of threads. JavaScript's thread only.
class CutPlan {
 public:
  explicit CutPlan(std::shared_ptr<const ReorderPlan> plan) : plan_(std::move(plan)) {}
  const std::shared_ptr<const ReorderPlan>& plan() const { return plan_; }
  std::shared_ptr<const ReorderParts> parts(int64_t begin, int64_t end, size_t threads);

 private:
  std::shared_ptr<const ReorderPlan> plan_;
  std::shared_ptr<const ReorderParts> parts_;
  size_t threads_ = 0;
};

// A range of a plan's destination with its memory.
struct Target {
  const ReorderPlan* plan = nullptr;
  uint8_t* destination = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
};

// Checks that the memory has the size of the range and lies in no mapped file. Errors: ERR_ARGUMENT.
Target target_of(const ReorderPlan& plan, const Bytes& destination, const Napi::Value& start,
                 const Napi::Value& end);
// As above, for the whole destination.
Target target_of(const ReorderPlan& plan, const Bytes& destination);

// Checks the size of a source in memory. Errors: ERR_ARGUMENT.
void check_source_size(const ReorderPlan& plan, int64_t size);

// A run whose source has all bytes of the plan and does not overlap the destination.
struct Run {
  Target target;
  const uint8_t* source = nullptr;
};

// Errors: ERR_ARGUMENT if source and destination overlap.
Run run_of(const Target& target, const uint8_t* source);

// Runs on this thread, and on threads of the pool where that pays off. `result_bytes` as for
// ReorderPlan::stores_of_whole.
void run_now(const Run& run, CutPlan& plan, ThreadPool& pool, int64_t result_bytes);

class ReorderJob : public AsyncJob {
 public:
  ReorderJob(Environment& environment, Napi::Env env, std::shared_ptr<const ReorderParts> parts,
             const Run& run);

  // A job that keeps the destination alive; the caller makes it keep the source. Errors: ERR_ARGUMENT for a
  // wrong cancel flag.
  static std::shared_ptr<ReorderJob> make(Napi::Env env, const Run& run, CutPlan& plan,
                                          const Bytes& destination, const Napi::Value& cancel);
  // Keeps the source alive and prevents it from being filled until the run has ended.
  void read_from(SharedSparseBuffer::Use source) { sparse_source_ = std::move(source); }

 protected:
  void run_tile(int64_t tile) override { parts_->run(tile, source_, destination_); }
  void ended(bool) override { sparse_source_ = {}; }

 private:
  SharedSparseBuffer::Use sparse_source_;
  std::shared_ptr<const ReorderParts> parts_;
  const uint8_t* source_;
  uint8_t* destination_;
};

}  // namespace tilework::binding
