// The addon's own threads. Jobs are split into tiles and scheduled round robin: a thread takes the next tile
// of the job that has waited longest. One large job uses all threads, and a small job that comes later waits
// for one tile instead of all of them, even where tiles wait for a disk.
//
// A thread that waits for its own work takes part in it and counts as a thread of the pool meanwhile. However
// many such threads there are, each completes its work alone if the pool is busy.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

namespace tilework {

class TileJob {
 public:
  explicit TileJob(int64_t tiles) : tiles_(tiles) {}
  virtual ~TileJob() = default;
  TileJob(const TileJob&) = delete;
  TileJob& operator=(const TileJob&) = delete;

  // Skips the tiles that have not begun. The job still ends with finish().
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 protected:
  // Called on any thread, for several tiles of one job at a time. An exception ends the job; finish() gets
  // the first one.
  virtual void run_tile(int64_t tile) = 0;
  // Checked before each tile.
  virtual bool should_stop() const { return cancelled(); }
  // Called once, after the last tile, on a thread of the pool.
  virtual void finish(std::exception_ptr error) noexcept = 0;

 private:
  friend class ThreadPool;
  static constexpr int64_t kNoTile = -1;
  // Takes the first tile that has not begun, or kNoTile.
  int64_t take_first();
  // Takes the last one.
  int64_t take_last();
  bool has_more() const { return taken_.load(std::memory_order_relaxed) < tiles_; }
  void run_and_catch(int64_t tile);

  const int64_t tiles_;
  // A thread that raises `taken_` to at most `tiles_` may take one tile from either end.
  std::atomic<int64_t> taken_{0};
  std::atomic<int64_t> taken_first_{0};
  std::atomic<int64_t> taken_last_{0};
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
  // At least 1. Waits for the current tiles of threads that end.
  void set_threads(size_t threads);
  // A thread of the pool also finishes a job without tiles. Errors: std::system_error if no thread can be
  // started, std::bad_alloc.
  void submit(std::shared_ptr<TileJob> job);
  // Calls body(tile) for every tile in [0, tiles), on this thread and on free threads of the pool, at most
  // threads() in total. Returns after the last call. This thread takes tiles from the first on and the others
  // from the last, so that a thread that repeats the same work finds much of it in its caches. Errors: the
  // first exception of a call.
  void run(int64_t tiles, const std::function<void(int64_t)>& body);
  // Cancels every job and waits for the threads; later jobs are cancelled at once.
  void stop();

 private:
  class CallersJob;

  // How a thread waits for work.
  enum class Waiting { kSleeping, kSpinning };

  void work(size_t number);
  bool may_work() const;
  void wait_for_work(std::unique_lock<std::mutex>& lock, size_t number, Waiting waiting);
  // Returns how to wait afterwards.
  Waiting run_next_tile(std::unique_lock<std::mutex>& lock);
  // False if the caller runs every tile itself.
  bool offer(const std::shared_ptr<CallersJob>& job);
  void withdraw(const std::shared_ptr<CallersJob>& job);
  void start_threads();
  void stop_surplus(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Lists: threads move jobs from end to end without an allocation, which could fail.
  std::list<std::shared_ptr<TileJob>> queue_;
  std::list<std::shared_ptr<TileJob>> unfinished_;
  std::list<std::thread> workers_;
  size_t wanted_;
  bool stopping_ = false;
  // Threads of the pool inside a tile, plus threads inside run().
  size_t running_ = 0;
  size_t callers_ = 0;
  // Threads of the pool without work.
  size_t sleeping_ = 0;
  size_t spinning_ = 0;
  // Whether the queue has jobs; read by spinning threads.
  std::atomic<bool> has_queue_{false};
  // Serialises resizes: joining happens without `mutex_`.
  std::mutex resize_mutex_;
};

}  // namespace tilework
