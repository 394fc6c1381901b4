// State of one JavaScript environment (the main thread or a worker): its classes, running jobs and switches.
// The binding has no other mutable state but the threads, which environments share.
#pragma once

#include <napi.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "differences.h"
#include "dtype/statistics.h"
#include "held_plans.h"
#include "image/image_plan.h"
#include "io/input_file.h"
#include "io/output_file.h"
#include "pools.h"
#include "reorder/plan/plan.h"
#include "sparse_buffer.h"

namespace tilework::binding {

class AsyncJob;

class Environment {
 public:
  explicit Environment(Napi::Env env);
  ~Environment() = default;

  static Environment& of(Napi::Env env) { return *env.GetInstanceData<Environment>(); }

  Pools& pools() { return *pools_; }

  // Starts a job and returns its promise. Keeps JavaScript alive until the promise is settled.
  Napi::Value start(std::shared_ptr<AsyncJob> job, ThreadPool& pool);
  // Call once per job, on any thread: settles its promise on the next iteration of the event loop.
  // Allocates nothing, since it cannot fail.
  void complete(AsyncJob& job);

  Napi::FunctionReference input_file_class;
  Napi::FunctionReference reorder_plan_class;
  Napi::FunctionReference image_plan_class;
  Napi::FunctionReference output_file_class;
  Napi::FunctionReference sparse_buffer_class;
  Napi::FunctionReference statistics_class;
  Napi::FunctionReference differences_class;
  // Constructor argument of the next instance of a class. Only this addon sets it, so JavaScript cannot
  // construct these classes itself.
  std::shared_ptr<InputFile> next_input_file;
  std::shared_ptr<const ReorderPlan> next_reorder_plan;
  std::shared_ptr<const ImagePlan> next_image_plan;
  std::shared_ptr<OutputFile> next_output_file;
  std::shared_ptr<SharedSparseBuffer> next_sparse_buffer;
  std::shared_ptr<Statistics> next_statistics;
  std::shared_ptr<Comparison> next_comparison;

  // Whether an ArrayBuffer is resizable, so that it could be shrunk under a running job. Uses the getter of
  // the class, since the buffer's own properties belong to the user.
  bool is_resizable(const Napi::Value& buffer) const;

  std::shared_ptr<HeldPlans> held_plans = std::make_shared<HeldPlans>();
  InputFile::LiveCount live_mappings = std::make_shared<std::atomic<int64_t>>(0);
  bool external_buffers = true;

 private:
  static void settle(napi_env env, napi_value, void* context, void* data);
  static void shut_down(void* environment);

  Napi::Env env_;
  // The getter ArrayBuffer.prototype.resizable; empty in runtimes without resizable buffers.
  Napi::FunctionReference resizable_getter_;
  std::shared_ptr<Pools> pools_ = share_pools();
  napi_threadsafe_function completions_ = nullptr;
  // Jobs that are not settled; accessed on JavaScript's thread only.
  std::vector<std::shared_ptr<AsyncJob>> jobs_;
  // Jobs that still run on other threads.
  std::mutex mutex_;
  std::condition_variable job_completed_;
  size_t running_ = 0;
};

}  // namespace tilework::binding
