// The addon's own threads. Jobs are cut into tiles, and jobs take turns: a thread takes the next tile of the
// job that has waited longest. So one large job uses all threads, and a small one that comes later waits for
// a tile of it and not for all, even where those tiles wait for a disk.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tilework {

class TileJob {
 public:
  explicit TileJob(int64_t tiles) : tiles_(tiles) {}
  virtual ~TileJob() = default;
  TileJob(const TileJob&) = delete;
  TileJob& operator=(const TileJob&) = delete;

  // Makes the tiles that have not begun do nothing. The job still ends, with finish().
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 protected:
  // Any thread, tiles of one job at the same time. An exception ends the job; finish() gets the first one.
  virtual void run_tile(int64_t tile) = 0;
  // Asked before each tile.
  virtual bool should_stop() const { return cancelled(); }
  // Once, after the last tile, on one of the pool's threads.
  virtual void finish(std::exception_ptr error) noexcept = 0;

 private:
  friend class ThreadPool;
  void run_and_catch(int64_t tile);

  const int64_t tiles_;
  int64_t next_ = 0;
  std::atomic<int64_t> unfinished_{0};
  std::atomic<bool> cancelled_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

class ThreadPool {
 public:
  // Threads start with the first job that needs them.
  explicit ThreadPool(size_t threads);
  // Cancels every job and waits for the threads.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t threads() const;
  // At least 1. Waits for the current tiles of threads that are to go.
  void set_threads(size_t threads);
  // A job without tiles is finished by a thread as well. Errors: std::system_error if no thread can be
  // started.
  void submit(std::shared_ptr<TileJob> job);
  // Cancels every job, waits for the threads; later jobs are cancelled at once.
  void stop();

 private:
  void work(size_t number);
  void start_threads();
  void stop_surplus(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<TileJob>> queue_;
  std::vector<std::shared_ptr<TileJob>> unfinished_;
  std::vector<std::thread> workers_;
  size_t wanted_;
  bool stopping_ = false;
  // One resize at a time: joining happens without `mutex_`.
  std::mutex resize_mutex_;
};

}  // namespace tilework
