// A job of the thread pool that settles a promise.
#pragma once

#include <napi.h>

#include <exception>
#include <memory>
#include <vector>

#include "io/input_file.h"
#include "parallel/thread_pool.h"

namespace tilework::binding {

class Environment;
struct Bytes;

class AsyncJob : public TileJob, public std::enable_shared_from_this<AsyncJob> {
 public:
  AsyncJob(Environment& environment, Napi::Env env, int64_t tiles);
  // Releases everything if the job was never started.
  ~AsyncJob() override;

  Napi::Value promise() const { return deferred_.Promise(); }

  // Keeps a JavaScript value alive until the job is settled.
  void pin(const Napi::Value& value);
  // Keeps the array alive, and the mapping that its bytes may lie in. Such a source is checked for changes.
  void pin_source(const Bytes& bytes);
  // Keeps the file and its descriptor, so that it can be read and verified after its owner has closed it.
  // Null means no file. A job may hold several.
  void hold_file(std::shared_ptr<InputFile> file) {
    if (file == nullptr) return;
    descriptors_.push_back(file->descriptor());
    sources_.push_back(std::move(file));
  }
  // Cancels the job when the first element of an Int32Array becomes non-zero; undefined means no flag.
  // Errors: ERR_ARGUMENT, also for a resizable buffer.
  void set_cancel_flag(const Napi::Value& value);

  // Called by Environment::start: from now on settle() ends the job.
  void started() { started_ = true; }
  // Called by Environment::start if the job cannot run after all.
  void give_up() { started_ = false; }
  // Called on JavaScript's thread, after finish().
  void settle(Napi::Env env);

 protected:
  bool should_stop() const override;
  void finish(std::exception_ptr error) noexcept override;
  // Called before completion is announced; for owners that count their jobs.
  virtual void ended(bool) {}

 private:
  void unpin(Napi::Env env);

  Environment& environment_;
  bool started_ = false;
  Napi::Promise::Deferred deferred_;
  std::vector<napi_ref> pins_;
  std::vector<std::shared_ptr<InputFile>> sources_;
  std::vector<std::shared_ptr<InputFile::Descriptor>> descriptors_;
  const int32_t* cancel_flag_ = nullptr;
  mutable std::atomic<bool> stopped_{false};
  std::exception_ptr error_;
};

}  // namespace tilework::binding
