#include "parallel/thread_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace tilework {

void TileJob::run_and_catch(int64_t tile) {
  try {
    if (!should_stop()) run_tile(tile);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (error_ == nullptr) error_ = std::current_exception();
    cancel();
  }
}

ThreadPool::ThreadPool(size_t threads) : wanted_(std::max<size_t>(threads, 1)) {}

ThreadPool::~ThreadPool() { stop(); }

size_t ThreadPool::threads() const {
  const std::lock_guard lock(mutex_);
  return wanted_;
}

void ThreadPool::set_threads(size_t threads) {
  const std::lock_guard resize(resize_mutex_);
  std::unique_lock lock(mutex_);
  if (stopping_) return;
  wanted_ = std::max<size_t>(threads, 1);
  if (workers_.size() > wanted_) {
    stop_surplus(lock);
  } else if (!queue_.empty()) {
    start_threads();
  }
}

void ThreadPool::submit(std::shared_ptr<TileJob> job) {
  const std::lock_guard lock(mutex_);
  if (stopping_) {
    job->cancel();
    job->finish(nullptr);
    return;
  }
  // A job without tiles still takes one turn, so that finish() always comes from a thread of the pool.
  job->unfinished_ = std::max<int64_t>(job->tiles_, 1);
  start_threads();
  unfinished_.push_back(job);
  queue_.push_back(std::move(job));
  changed_.notify_all();
}

void ThreadPool::stop() {
  const std::lock_guard resize(resize_mutex_);
  std::unique_lock lock(mutex_);
  stopping_ = true;
  for (const auto& job : unfinished_) job->cancel();
  wanted_ = 0;
  stop_surplus(lock);
}

void ThreadPool::start_threads() {
  try {
    while (workers_.size() < wanted_) {
      const size_t number = workers_.size();
      workers_.emplace_back([this, number] { work(number); });
    }
  } catch (const std::system_error&) {
    // The system is out of threads; one is enough to get everything done.
    if (workers_.empty()) throw;
  }
}

void ThreadPool::stop_surplus(std::unique_lock<std::mutex>& lock) {
  std::vector<std::thread> surplus;
  while (workers_.size() > wanted_) {
    surplus.push_back(std::move(workers_.back()));
    workers_.pop_back();
  }
  changed_.notify_all();
  lock.unlock();
  for (std::thread& thread : surplus) thread.join();
}

void ThreadPool::work(size_t number) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !queue_.empty() || number >= wanted_; });
    // A pool that stops drains its queue first: every job must finish, if only as cancelled.
    if (number >= wanted_ && (queue_.empty() || !stopping_)) return;
    const std::shared_ptr<TileJob> job = queue_.front();
    const int64_t tile = job->next_++;
    queue_.pop_front();
    if (job->next_ < job->tiles_) queue_.push_back(job);
    lock.unlock();
    if (tile < job->tiles_) job->run_and_catch(tile);
    const bool last = job->unfinished_.fetch_sub(1) == 1;
    if (last) job->finish(job->error_);
    lock.lock();
    if (last) std::erase(unfinished_, job);
  }
}

}  // namespace tilework
