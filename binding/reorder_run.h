// One run of a plan from memory to memory: what is checked before it, and the job that does it.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "arguments.h"
#include "job.h"
#include "reorder/plan.h"
#include "sparse_buffer.h"

namespace tilework::binding {

// A range of a plan's destination and its memory.
struct Target {
  std::shared_ptr<const ReorderPlan> plan;
  uint8_t* destination = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
};

// Checks that the memory is the range's, and lies in no mapped file. Errors: ERR_ARGUMENT.
Target target_of(std::shared_ptr<const ReorderPlan> plan, const Bytes& destination, const Napi::Value& start,
                 const Napi::Value& end);

// A run with a source that has all of the plan's bytes and shares none with the destination.
struct Run {
  Target target;
  const uint8_t* source = nullptr;
};

// Errors: ERR_ARGUMENT if source and destination share memory.
Run run_of(Target target, const uint8_t* source);

inline void run_now(const Run& run) {
  run.target.plan->run(run.source, run.target.destination, run.target.begin, run.target.end,
                       run.target.plan->stores_of_whole());
}

class ReorderJob : public AsyncJob {
 public:
  ReorderJob(Environment& environment, Napi::Env env, Run run, int64_t tile_bytes);

  // A job that holds the destination; the caller gives it the source to hold. Errors: ERR_ARGUMENT for a
  // wrong cancel flag.
  static std::shared_ptr<ReorderJob> make(Napi::Env env, Run run, const Bytes& destination,
                                          const Napi::Value& cancel);
  // Keeps the source, and keeps it from being filled until the run has ended.
  void read_from(SharedSparseBuffer::Use source) { sparse_source_ = std::move(source); }

 protected:
  void run_tile(int64_t tile) override;
  void ended(bool) override { sparse_source_ = {}; }

 private:
  SharedSparseBuffer::Use sparse_source_;
  Run run_;
  int64_t tile_bytes_;
};

}  // namespace tilework::binding
