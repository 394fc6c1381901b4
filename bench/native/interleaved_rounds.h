// Shared by the benchmarks: warm buffers, the copies that results are compared with, and interleaved rounds
// of all candidates, so that a slow moment of the machine affects each of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#include <sys/resource.h>
#endif
#include <unistd.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "io/checked_math.h"
#include "reorder/run/parts.h"

namespace tilework::bench {

inline constexpr int64_t kPage = 4096;

// Aligned to 2 MiB, in ordinary pages, warm. Source and destination start at the same offset in a page: where
// the destination offset is 1, 8 or 16 bytes higher, glibc's memcpy is ten times slower on some CPUs, which
// would make every reorder look fast.
class Buffer {
 public:
  explicit Buffer(size_t size)
      : data_(static_cast<uint8_t*>(std::aligned_alloc(kAlignment, (size / kAlignment + 1) * kAlignment))) {
#if defined(__linux__)
    madvise(data_, (size / kAlignment + 1) * kAlignment, MADV_NOHUGEPAGE);
#endif
    std::memset(data_, 1, size);
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  uint8_t* data() { return data_; }

 private:
  static constexpr size_t kAlignment = size_t{2} << 20;
  uint8_t* data_;
};

// Calls body(thread) on each thread.
inline void on_threads(int threads, const std::function<void(int)>& body) {
#if defined(_OPENMP)
  if (threads > 1) {
#pragma omp parallel num_threads(threads)
    body(omp_get_thread_num());
    return;
  }
#endif
  for (int thread = 0; thread < threads; ++thread) body(thread);
}

// The fastest copy beyond the caches: non-temporal stores do not read the lines that they write. 16-byte
// stores are a quarter slower than 32-byte stores.
#if defined(__x86_64__)
[[gnu::target("avx2")]] inline void copy_streaming(uint8_t* to, const uint8_t* from, size_t size) {
  size_t i = 0;
  for (; i + 64 <= size; i += 64) {
    for (size_t k = 0; k < 64; k += 32) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i + k),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i + k)));
    }
  }
  std::memcpy(to + i, from + i, size - i);
  _mm_sfence();
}
#else
inline void copy_streaming(uint8_t* to, const uint8_t* from, size_t size) { std::memcpy(to, from, size); }
#endif

inline double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Involuntary context switches of this thread; 0 where the system does not report them.
inline long preemptions() {
#if defined(RUSAGE_THREAD)
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
#else
  return 0;
#endif
}

// Seconds per call. A single thread is measured again, up to a limit, when it was preempted: waiting for a
// core is not part of the result. The thread's CPU clock would exclude the wait, but it can jump when the
// thread migrates to another core.
inline double seconds_of(const std::function<void()>& body, int64_t repeats, int threads) {
  constexpr int kMaxTries = 3;
  double seconds = 0;
  for (int i = 0; i < kMaxTries; ++i) {
    const long before = preemptions();
    const double start = now();
    for (int64_t k = 0; k < repeats; ++k) body();
    seconds = (now() - start) / static_cast<double>(repeats);
    if (threads > 1 || preemptions() == before) break;
  }
  return seconds;
}

struct Candidate {
  const char* name;
  // Bytes that one call reads and writes.
  size_t bytes;
  std::function<void()> body;
  // Calls per measurement; more than one where a call is too short for the clock.
  int64_t repeats = 1;
  int rounds = 0;
  double best = std::numeric_limits<double>::infinity();
};

// Runs every candidate once per round, each time after an untimed call. A candidate that is known to be very
// slow runs in few rounds and without the untimed call.
inline void run_interleaved(std::vector<Candidate>& candidates, int rounds, int threads) {
  constexpr double kMinMeasuredSeconds = 30e-6;
  constexpr double kSlowSeconds = 0.25;
  constexpr double kSlowTotalSeconds = 1.5;
  for (Candidate& candidate : candidates) {
    const bool is_slow = candidate.best > kSlowSeconds && std::isfinite(candidate.best);
    candidate.rounds = is_slow ? static_cast<int>(kSlowTotalSeconds / candidate.best) : rounds;
    if (is_slow) continue;
    candidate.body();
    const double seconds = seconds_of(candidate.body, 1, threads);
    candidate.repeats = std::max<int64_t>(1, static_cast<int64_t>(kMinMeasuredSeconds / seconds));
  }
  for (int round = 0; round < rounds; ++round) {
    for (Candidate& candidate : candidates) {
      if (round >= candidate.rounds) continue;
      if (candidate.rounds == rounds) candidate.body();
      candidate.best = std::min(candidate.best, seconds_of(candidate.body, candidate.repeats, threads));
    }
  }
}

// Splits [0, total) at multiples of `unit` into one share per thread.
inline void each_share(int threads, int64_t total, int64_t unit,
                       const std::function<void(int64_t, int64_t)>& part) {
  const int64_t share = (total / threads + unit - 1) / unit * unit;
  on_threads(threads, [&](int thread) {
    const int64_t begin = std::min(share * thread, total);
    const int64_t end = thread + 1 == threads ? total : std::min(begin + share, total);
    part(begin, end);
  });
}

// Adds memcpy and the streaming copy. Each reads and writes `moved` bytes in total.
inline void add_copies(std::vector<Candidate>& candidates, int threads, size_t moved, uint8_t* to,
                       const uint8_t* from) {
  const size_t copied = moved / 2;
  const auto add = [&](const char* name, auto copy) {
    candidates.push_back({name, 2 * copied, [=] {
                            each_share(threads, static_cast<int64_t>(copied), kPage,
                                       [&](int64_t begin, int64_t end) {
                                         copy(to + begin, from + begin, static_cast<size_t>(end - begin));
                                       });
                          }});
  };
  add("memcpy", [](uint8_t* into, const uint8_t* source, size_t size) { std::memcpy(into, source, size); });
  add("streaming", copy_streaming);
}

// Runs a plan as the addon does, in the same parts.
inline void run_parts(const ReorderParts& parts, int threads, const uint8_t* from, uint8_t* to) {
  // One part runs on the calling thread.
  on_threads(parts.count() == 1 ? 1 : threads, [&](int thread) {
    const int64_t share = ceil_div(parts.count(), threads);
    const int64_t end = std::min((thread + 1) * share, parts.count());
    for (int64_t part = thread * share; part < end; ++part) parts.run(part, from, to);
  });
}

// Bytes of L2 cache per core; a common size where the system does not report it.
inline int64_t second_level_cache_bytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0) return bytes;
#endif
  return int64_t{512} << 10;
}

}  // namespace tilework::bench
