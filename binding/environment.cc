#include "environment.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "job.h"

namespace tilework::binding {

namespace {

Napi::FunctionReference resizable_getter(Napi::Env env) {
  const Napi::Object global = env.Global();
  const Napi::Object prototype =
      global.Get("ArrayBuffer").As<Napi::Object>().Get("prototype").As<Napi::Object>();
  const Napi::Function describe =
      global.Get("Object").As<Napi::Object>().Get("getOwnPropertyDescriptor").As<Napi::Function>();
  const Napi::Value description = describe.Call({prototype, Napi::String::New(env, "resizable")});
  if (!description.IsObject()) return {};
  return Napi::Persistent(description.As<Napi::Object>().Get("get").As<Napi::Function>());
}

}  // namespace

Environment::Environment(Napi::Env env) : env_(env), resizable_getter_(resizable_getter(env)) {
  const char* forbidden = std::getenv("TILEWORK_NO_EXTERNAL_BUFFERS");
  external_buffers = forbidden == nullptr || std::string(forbidden) != "1";
  const napi_status status =
      napi_create_threadsafe_function(env, nullptr, nullptr, Napi::String::New(env, "tilework"), 0, 1,
                                      nullptr, nullptr, this, &Environment::settle, &completions_);
  if (status != napi_ok) throw Napi::Error::New(env);
  napi_unref_threadsafe_function(env, completions_);
  // Registered after the function above: hooks run in reverse order, and a running job must never call a
  // closed function.
  napi_add_env_cleanup_hook(env, &Environment::shut_down, this);
}

bool Environment::is_resizable(const Napi::Value& buffer) const {
  if (resizable_getter_.IsEmpty() || !buffer.IsArrayBuffer()) return false;
  return resizable_getter_.Value().Call(buffer, std::initializer_list<napi_value>{}).ToBoolean().Value();
}

Napi::Value Environment::start(std::shared_ptr<AsyncJob> job, ThreadPool& pool) {
  const Napi::Value promise = job->promise();
  jobs_.push_back(job);
  if (jobs_.size() == 1) napi_ref_threadsafe_function(env_, completions_);
  {
    const std::lock_guard lock(mutex_);
    ++running_;
  }
  try {
    job->started();
    pool.submit(job);
  } catch (...) {
    job->give_up();
    jobs_.pop_back();
    if (jobs_.empty()) napi_unref_threadsafe_function(env_, completions_);
    const std::lock_guard lock(mutex_);
    --running_;
    throw;
  }
  return promise;
}

void Environment::complete(AsyncJob& job) {
  // jobs_ keeps it. Where the function is closed, nobody waits for the promise.
  napi_call_threadsafe_function(completions_, &job, napi_tsfn_nonblocking);
  const std::lock_guard lock(mutex_);
  --running_;
  job_completed_.notify_all();
}

void Environment::settle(napi_env env, napi_value, void* context, void* data) {
  // Node drains the queue without an environment on shutdown; nobody waits for the promise then.
  if (env == nullptr) return;
  const Napi::HandleScope scope(env);
  auto& environment = *static_cast<Environment*>(context);
  const auto is_completed = [data](const auto& job) { return job.get() == static_cast<AsyncJob*>(data); };
  const auto found = std::find_if(environment.jobs_.begin(), environment.jobs_.end(), is_completed);
  const std::shared_ptr<AsyncJob> job = std::move(*found);
  environment.jobs_.erase(found);
  if (environment.jobs_.empty()) napi_unref_threadsafe_function(env, environment.completions_);
  try {
    job->settle(env);
  } catch (const Napi::Error&) {
    // The worker is being terminated and settles no more promises.
  }
}

void Environment::shut_down(void* data) {
  auto& environment = *static_cast<Environment*>(data);
  for (const auto& job : environment.jobs_) job->cancel();
  std::unique_lock lock(environment.mutex_);
  environment.job_completed_.wait(lock, [&] { return environment.running_ == 0; });
  lock.unlock();
  napi_release_threadsafe_function(environment.completions_, napi_tsfn_release);
  environment.jobs_.clear();
  environment.pools_.reset();
}

}  // namespace tilework::binding
