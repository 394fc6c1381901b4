#include "parallel/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace tilework {
namespace {

// A thread that has helped a caller spins this long for the next call before it sleeps. Waking it takes about
// as long, time in which a core copies a few MiB.
constexpr auto kSpinning = std::chrono::microseconds(50);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Spins until `is_over` or for kSpinning.
template <class Condition>
void spin_until(Condition is_over) {
  // Reading the clock costs as much as several pauses.
  constexpr int kPauses = 16;
  const auto end = std::chrono::steady_clock::now() + kSpinning;
  do {
    for (int i = 0; i < kPauses; ++i) {
      if (is_over()) return;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
}

}  // namespace

// The work of run(); its caller waits for it.
class ThreadPool::CallersJob : public TileJob {
 public:
  CallersJob(int64_t tiles, const std::function<void(int64_t)>& body) : TileJob(tiles), body_(body) {
    unfinished_ = tiles;
  }

  void run_all() {
    for (int64_t tile = take_first(); tile != kNoTile; tile = take_first()) {
      run_and_catch(tile);
      unfinished_.fetch_sub(1);
    }
  }

  // Waits for the tiles that other threads have begun.
  void wait() {
    spin_until([this] { return unfinished_.load() == 0; });
    if (unfinished_.load() > 0) {
      std::unique_lock lock(finished_mutex_);
      finished_.wait(lock, [this] { return unfinished_.load() == 0; });
    }
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 protected:
  void run_tile(int64_t tile) override { body_(tile); }
  void finish(std::exception_ptr) noexcept override {
    const std::lock_guard lock(finished_mutex_);
    finished_.notify_all();
  }

 private:
  friend class ThreadPool;
  const std::function<void(int64_t)>& body_;
  // Not std::atomic::wait: libc++ waits by private functions of macOS, which app stores refuse.
  std::mutex finished_mutex_;
  std::condition_variable finished_;
};

int64_t TileJob::take_first() { return taken_.fetch_add(1) < tiles_ ? taken_first_.fetch_add(1) : kNoTile; }

int64_t TileJob::take_last() {
  return taken_.fetch_add(1) < tiles_ ? tiles_ - 1 - taken_last_.fetch_add(1) : kNoTile;
}

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
    changed_.notify_all();
  }
}

void ThreadPool::submit(std::shared_ptr<TileJob> job) {
  const std::lock_guard lock(mutex_);
  if (stopping_) {
    job->cancel();
    job->finish(nullptr);
    return;
  }
  // All that can fail comes before the first change.
  std::list<std::shared_ptr<TileJob>> unfinished{job};
  std::list<std::shared_ptr<TileJob>> queued{job};
  start_threads();
  // A job without tiles still counts one, so that finish() always runs on a thread of the pool.
  job->unfinished_ = std::max<int64_t>(job->tiles_, 1);
  unfinished_.splice(unfinished_.end(), unfinished);
  queue_.splice(queue_.end(), queued);
  has_queue_ = true;
  changed_.notify_all();
}

void ThreadPool::run(int64_t tiles, const std::function<void(int64_t)>& body) {
  const auto job = std::make_shared<CallersJob>(tiles, body);
  const bool is_offered = tiles > 1 && offer(job);
  job->run_all();
  if (is_offered) withdraw(job);
  job->wait();
}

bool ThreadPool::offer(const std::shared_ptr<CallersJob>& job) {
  size_t woken = 0;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || wanted_ == 1) return false;
    try {
      start_threads();
      queue_.push_back(job);
    } catch (const std::exception&) {
      // Out of threads or memory.
      return false;
    }
    ++callers_;
    has_queue_ = true;
    const size_t useful = std::min(static_cast<size_t>(job->tiles_), wanted_) - 1;
    woken = std::min(sleeping_, useful - std::min(useful, spinning_));
  }
  for (; woken > 0; --woken) changed_.notify_one();
  return true;
}

void ThreadPool::withdraw(const std::shared_ptr<CallersJob>& job) {
  const std::lock_guard lock(mutex_);
  --callers_;
  std::erase(queue_, job);
  has_queue_ = !queue_.empty();
  // Room for another worker.
  if (!queue_.empty()) changed_.notify_one();
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
  } catch (const std::exception&) {
    // Out of threads or memory; one worker is enough to finish everything.
    if (workers_.empty()) throw;
  }
}

void ThreadPool::stop_surplus(std::unique_lock<std::mutex>& lock) {
  std::list<std::thread> surplus;
  while (workers_.size() > wanted_) surplus.splice(surplus.end(), workers_, std::prev(workers_.end()));
  changed_.notify_all();
  lock.unlock();
  for (std::thread& thread : surplus) thread.join();
}

// One worker may always run; otherwise callers could starve a job.
bool ThreadPool::may_work() const {
  return !queue_.empty() && (stopping_ || running_ == 0 || running_ + callers_ < wanted_);
}

void ThreadPool::wait_for_work(std::unique_lock<std::mutex>& lock, size_t number, Waiting waiting) {
  if (waiting == Waiting::kSpinning && queue_.empty() && number < wanted_) {
    ++spinning_;
    lock.unlock();
    spin_until([this] { return has_queue_.load(); });
    lock.lock();
    --spinning_;
  }
  ++sleeping_;
  changed_.wait(lock, [&] { return may_work() || number >= wanted_; });
  --sleeping_;
}

void ThreadPool::work(size_t number) {
  std::unique_lock lock(mutex_);
  for (Waiting waiting = Waiting::kSleeping;;) {
    wait_for_work(lock, number, waiting);
    // A stopping pool drains its queue first: every job must finish, if only as cancelled.
    if (number >= wanted_ && (queue_.empty() || !stopping_)) {
      // Another thread may sleep because this one was running; nobody else would wake it.
      changed_.notify_one();
      return;
    }
    waiting = run_next_tile(lock);
  }
}

ThreadPool::Waiting ThreadPool::run_next_tile(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<TileJob> job = queue_.front();
  const bool is_callers = dynamic_cast<CallersJob*>(job.get()) != nullptr;
  const int64_t tile = is_callers ? job->take_last() : job->take_first();
  if (job->has_more())
    queue_.splice(queue_.end(), queue_, queue_.begin());
  else
    queue_.pop_front();
  has_queue_ = !queue_.empty();
  ++running_;
  lock.unlock();
  if (tile != TileJob::kNoTile) job->run_and_catch(tile);
  // All tiles of a caller's job may have begun on other threads.
  const bool is_counted = tile != TileJob::kNoTile || !is_callers;
  const bool last = is_counted && job->unfinished_.fetch_sub(1) == 1;
  if (last) job->finish(job->error_);
  lock.lock();
  --running_;
  if (last) std::erase(unfinished_, job);
  return is_callers ? Waiting::kSpinning : Waiting::kSleeping;
}

}  // namespace tilework
