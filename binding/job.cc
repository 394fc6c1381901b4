#include "job.h"

#include <utility>

#include "arguments.h"
#include "environment.h"

namespace tilework::binding {

AsyncJob::AsyncJob(Environment& environment, Napi::Env env, int64_t tiles)
    : TileJob(tiles), environment_(environment), deferred_(Napi::Promise::Deferred::New(env)) {}

// A job that was never started is destroyed on JavaScript's thread. A started one may be destroyed on any
// thread, after settle() has released its JavaScript values.
AsyncJob::~AsyncJob() {
  if (started_) return;
  unpin(deferred_.Env());
  try {
    // Nobody has this promise, but Node-API frees its handle only when it is settled.
    deferred_.Resolve(deferred_.Env().Undefined());
  } catch (const Napi::Error&) {
    // The environment ends and frees the handle.
  }
}

void AsyncJob::unpin(Napi::Env env) {
  for (napi_ref pin : pins_) napi_delete_reference(env, pin);
  pins_.clear();
}

void AsyncJob::pin(const Napi::Value& value) {
  napi_ref reference = nullptr;
  if (napi_create_reference(value.Env(), value, 1, &reference) != napi_ok)
    throw Napi::Error::New(value.Env());
  pins_.push_back(reference);
}

void AsyncJob::pin_source(const Bytes& bytes) {
  pin(bytes.array);
  hold_file(InputFile::find(bytes.data, bytes.size));
}

void AsyncJob::set_cancel_flag(const Napi::Value& value) {
  if (value.IsUndefined()) return;
  // No JavaScript runs between this check and the job.
  cancel_flag_ = flag(value, "cancel");
  pin(value);
}

bool AsyncJob::should_stop() const {
  const bool asked = cancel_flag_ != nullptr && __atomic_load_n(cancel_flag_, __ATOMIC_RELAXED) != 0;
  if (!asked && !cancelled()) return false;
  stopped_ = true;
  return true;
}

void AsyncJob::finish(std::exception_ptr error) noexcept {
  error_ = std::move(error);
  try {
    if (error_ == nullptr && stopped_) throw Error(ErrorCode::kAborted, "The operation was cancelled.");
    // Also after another error, which may be a consequence: a system call on lost bytes fails with EFAULT.
    for (const auto& source : sources_) source->verify_unchanged();
  } catch (...) {
    error_ = std::current_exception();
  }
  ended(error_ == nullptr);
  environment_.complete(*this);
}

void AsyncJob::settle(Napi::Env env) {
  unpin(env);
  sources_.clear();
  descriptors_.clear();
  try {
    if (error_ == nullptr) {
      deferred_.Resolve(env.Undefined());
    } else {
      deferred_.Reject(to_javascript(env, error_).Value());
    }
  } catch (const Napi::Error&) {
    // A terminating worker takes no more values, and nobody waits for this promise.
  }
}

}  // namespace tilework::binding
