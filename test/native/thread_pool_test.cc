#include "parallel/thread_pool.h"

#include <chrono>
#include <future>

#include "check.h"

namespace tilework::test {
namespace {

class CountingJob : public TileJob {
 public:
  CountingJob(int64_t tiles, int64_t failing_tile = -1, int microseconds = 0)
      : TileJob(tiles), failing_tile_(failing_tile), microseconds_(microseconds) {}

  std::future<void> ended() { return promise_.get_future(); }
  std::atomic<int64_t> sum{0};
  std::atomic<int64_t> ran{0};
  std::atomic<int> finishes{0};

 protected:
  void run_tile(int64_t tile) override {
    if (tile == failing_tile_) throw Error(ErrorCode::kIo, "tile");
    if (microseconds_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(microseconds_));
    sum += tile;
    ++ran;
  }
  void finish(std::exception_ptr error) noexcept override {
    ++finishes;
    if (error != nullptr) {
      promise_.set_exception(error);
    } else {
      promise_.set_value();
    }
  }

 private:
  int64_t failing_tile_;
  int microseconds_;
  std::promise<void> promise_;
};

void test_all_tiles_run_once() {
  ThreadPool pool(4);
  std::vector<std::shared_ptr<CountingJob>> jobs;
  std::vector<std::future<void>> ends;
  for (int64_t tiles : {0, 1, 2, 100, 1000}) {
    jobs.push_back(std::make_shared<CountingJob>(tiles));
    ends.push_back(jobs.back()->ended());
    pool.submit(jobs.back());
  }
  for (auto& end : ends) end.get();
  const int64_t tiles[] = {0, 1, 2, 100, 1000};
  for (size_t i = 0; i < jobs.size(); ++i) {
    CHECK(jobs[i]->ran == tiles[i]);
    CHECK(jobs[i]->sum == tiles[i] * (tiles[i] - 1) / 2);
    CHECK(jobs[i]->finishes == 1);
  }
}

// A small job does not wait for an earlier large one.
void test_jobs_take_turns() {
  ThreadPool pool(1);
  const auto large = std::make_shared<CountingJob>(2000, -1, 100);
  const auto small = std::make_shared<CountingJob>(5);
  auto large_end = large->ended();
  auto small_end = small->ended();
  pool.submit(large);
  pool.submit(small);
  small_end.get();
  CHECK(large->finishes == 0);
  large_end.get();
  CHECK(large->ran == 2000 && small->ran == 5);
}

void test_errors_end_a_job() {
  ThreadPool pool(3);
  const auto job = std::make_shared<CountingJob>(1000, 3, 100);
  auto end = job->ended();
  pool.submit(job);
  CHECK(code_of([&] { end.get(); }) == "ERR_IO");
  CHECK(job->ran < 999);
}

void test_resizing() {
  ThreadPool pool(1);
  for (size_t threads : {4, 2, 7, 1, 3}) {
    pool.set_threads(threads);
    CHECK(pool.threads() == threads);
    const auto job = std::make_shared<CountingJob>(50, -1, 20);
    auto end = job->ended();
    pool.submit(job);
    pool.set_threads(threads + 1);
    pool.set_threads(threads);
    end.get();
    CHECK(job->ran == 50);
  }
  pool.set_threads(0);
  CHECK(pool.threads() == 1);
}

// The thread that exits finishes its tile last, while the remaining one already sleeps. Which thread has
// which tile is random, so there are many rounds.
void test_shrinking_wakes_who_stays() {
  class HeldJob : public CountingJob {
   public:
    HeldJob() : CountingJob(3) {}
    std::promise<void> releases[2];
    std::atomic<int> begun{0};

   protected:
    void run_tile(int64_t tile) override {
      const int order = begun++;
      if (order < 2) releases[order].get_future().wait();
      CountingJob::run_tile(tile);
    }
  };
  for (int round = 0; round < 20 && failures == 0; ++round) {
    ThreadPool pool(2);
    const auto job = std::make_shared<HeldJob>();
    auto end = job->ended();
    pool.submit(job);
    while (job->begun < 2) std::this_thread::yield();
    std::thread shrinking([&pool] { pool.set_threads(1); });
    while (pool.threads() > 1) std::this_thread::yield();
    job->releases[0].set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    job->releases[1].set_value();
    shrinking.join();
    // Without a timeout a failure would hang the test.
    CHECK(end.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    CHECK(job->ran == 3);
  }
}

// A destroyed pool cancels its jobs, and each still finishes once.
void test_stopping() {
  std::vector<std::shared_ptr<CountingJob>> jobs;
  {
    ThreadPool pool(2);
    for (int i = 0; i < 5; ++i) {
      jobs.push_back(std::make_shared<CountingJob>(100000, -1, 100));
      pool.submit(jobs.back());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.stop();
    jobs.push_back(std::make_shared<CountingJob>(5));
    pool.submit(jobs.back());
  }
  for (const auto& job : jobs) {
    CHECK(job->finishes == 1);
    CHECK(job->ran < 100000);
    CHECK(job->cancelled());
  }
}

// Runs every tile once, for concurrent callers on several threads beside jobs of the pool.
void test_callers_share_the_pool() {
  ThreadPool pool(3);
  const auto job = std::make_shared<CountingJob>(300, -1, 20);
  auto end = job->ended();
  pool.submit(job);
  std::vector<std::thread> callers;
  std::atomic<int64_t> wrong{0};
  for (int64_t caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int64_t tiles = 0; tiles < 60; ++tiles) {
        std::vector<std::atomic<int>> ran(static_cast<size_t>(tiles));
        pool.run(tiles, [&](int64_t tile) {
          if (caller == 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
          ++ran[static_cast<size_t>(tile)];
        });
        for (const auto& count : ran) wrong += count != 1;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  end.get();
  CHECK(wrong == 0);
  CHECK(job->ran == 300);
}

// The caller does all work while every thread of the pool is blocked.
void test_caller_of_a_busy_pool() {
  ThreadPool pool(2);
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  class HeldJob : public CountingJob {
   public:
    HeldJob(int64_t tiles, std::shared_future<void> released) : CountingJob(tiles), released_(released) {}
    std::atomic<int> begun{0};

   protected:
    void run_tile(int64_t tile) override {
      ++begun;
      released_.wait();
      CountingJob::run_tile(tile);
    }

   private:
    std::shared_future<void> released_;
  };
  const auto held = std::make_shared<HeldJob>(2, released);
  auto end = held->ended();
  pool.submit(held);
  while (held->begun < 2) std::this_thread::yield();
  const std::thread::id self = std::this_thread::get_id();
  int own = 0;
  pool.run(10, [&](int64_t) { own += std::this_thread::get_id() == self; });
  CHECK(own == 10);
  CHECK(held->ran == 0);
  release.set_value();
  end.get();
}

// A caller counts as one of the threads.
void test_callers_count() {
  ThreadPool pool(3);
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  for (int round = 0; round < 20; ++round) {
    pool.run(40, [&](int64_t) {
      const int now = ++running;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      --running;
    });
  }
  CHECK(most >= 1 && most <= 3);
}

void test_errors_reach_the_caller() {
  ThreadPool pool(3);
  std::atomic<int> ran{0};
  const auto fail = [&](int64_t tile) {
    if (tile == 5) throw Error(ErrorCode::kIo, "tile");
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    ++ran;
  };
  CHECK(code_of([&] { pool.run(1000, fail); }) == "ERR_IO");
  CHECK(ran < 999);
  // A stopped pool leaves all work to the caller.
  pool.stop();
  int64_t sum = 0;
  pool.run(100, [&](int64_t tile) { sum += tile; });
  CHECK(sum == 4950);
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  test_all_tiles_run_once();
  test_jobs_take_turns();
  test_errors_end_a_job();
  test_resizing();
  test_shrinking_wakes_who_stays();
  test_stopping();
  test_callers_share_the_pool();
  test_caller_of_a_busy_pool();
  test_callers_count();
  test_errors_reach_the_caller();
  return result();
}
