// Times reorder plans beside plain copies of the same number of bytes and beside oneDNN, in one process and
// in turns, over the same buffers. Reads cases from standard input and writes one line of JSON for each, after
// one line about the machine; bench/reorder.mjs makes the cases and the tables.
//
// A case is the number of rounds, the reorder (test/native/read_description.h), and three words of oneDNN's,
// "-" where it has none: dtype from_tag to_tag.
//
// Arguments: the number of threads, then any of "reference" (time the reference kernels) and "onednn".
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "cpu/cache.h"
#include "io/checked_math.h"
#include "read_description.h"
#include "reorder/kernels.h"
#include "reorder/parts.h"
#include "reorder/plan.h"

#if defined(TILEWORK_BENCH_ONEDNN)
#include "onednn_reorder.h"
#endif

namespace tilework::bench {
namespace {

constexpr int64_t kPage = 4096;

struct Case {
  int rounds = 0;
  ReorderDescription description;
  std::string onednn_dtype;
  std::string onednn_from;
  std::string onednn_to;
};

bool read_case(Case& next) {
  if (!(std::cin >> next.rounds)) return false;
  next.description = test::DescriptionReader(std::cin).read();
  std::cin >> next.onednn_dtype >> next.onednn_from >> next.onednn_to;
  return true;
}

// Aligned to 2 MiB, in ordinary pages, warm. So source and destination begin at the same place of a page:
// where the destination lies 1, 8 or 16 bytes past that place, glibc's memcpy is ten times slower on some
// CPUs, and would make every reorder look fast.
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

// Bytes that are no NaN in any type: oneDNN moves some 16-bit elements by way of a conversion, which may
// change the bits of a NaN.
void fill(uint8_t* data, size_t bytes, int element_bits) {
  const size_t element = static_cast<size_t>(std::max(element_bits / 8, 1));
  uint32_t state = 1;
  for (size_t i = 0; i < bytes; ++i) {
    state = state * 1664525 + 1013904223;
    data[i] = static_cast<uint8_t>(state >> 24);
    if (element > 1 && i % element == element - 1) data[i] = (data[i] & 0x9F) | 0x20;
  }
}

// Calls body(thread) on each thread.
void on_threads(int threads, const std::function<void(int)>& body) {
#if defined(_OPENMP)
  if (threads > 1) {
#pragma omp parallel num_threads(threads)
    body(omp_get_thread_num());
    return;
  }
#endif
  for (int thread = 0; thread < threads; ++thread) body(thread);
}

// The copy of which memory can do no faster beyond the caches: its stores do not read the lines they write.
void copy_streaming(uint8_t* to, const uint8_t* from, size_t size) {
#if defined(__x86_64__)
  size_t i = 0;
  for (; i + 64 <= size; i += 64) {
    for (size_t k = 0; k < 64; k += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + k),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + k)));
    }
  }
  std::memcpy(to + i, from + i, size - i);
  _mm_sfence();
#else
  std::memcpy(to, from, size);
#endif
}

// Of one thread, its own time: what it spends waiting for a core that others use is no figure of ours.
double now(int threads) {
  timespec time{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double seconds_of(const std::function<void()>& body, int64_t repeats, int threads) {
  const double start = now(threads);
  for (int64_t i = 0; i < repeats; ++i) body();
  return (now(threads) - start) / static_cast<double>(repeats);
}

struct Candidate {
  const char* name;
  // Read and written by a call.
  size_t bytes;
  std::function<void()> body;
  // Calls that are timed together, where one is too short for the clock.
  int64_t repeats = 1;
  int rounds = 0;
  double best = std::numeric_limits<double>::infinity();
};

// Each takes its turn in each round, after one call that is not timed. One that is known to be very slow has
// few turns, and needs no call before them.
void take_turns(std::vector<Candidate>& candidates, int rounds, int threads) {
  constexpr double kShortest = 30e-6;
  constexpr double kLong = 0.25;
  constexpr double kLongInAll = 1.5;
  for (Candidate& candidate : candidates) {
    const bool is_long = candidate.best > kLong && std::isfinite(candidate.best);
    candidate.rounds = is_long ? static_cast<int>(kLongInAll / candidate.best) : rounds;
    if (is_long) continue;
    candidate.body();
    const double seconds = seconds_of(candidate.body, 1, threads);
    candidate.repeats = std::max<int64_t>(1, static_cast<int64_t>(kShortest / seconds));
  }
  for (int round = 0; round < rounds; ++round) {
    for (Candidate& candidate : candidates) {
      if (round >= candidate.rounds) continue;
      if (candidate.rounds == rounds) candidate.body();
      candidate.best = std::min(candidate.best, seconds_of(candidate.body, candidate.repeats, threads));
    }
  }
}

const ReorderKernel& reference_of(const ReorderPlan& plan) {
  const ReorderKernel* last = nullptr;
  for (const ReorderKernel& kernel : reorder_kernels()) {
    if (fits(kernel, plan)) last = &kernel;
  }
  return *last;
}

const char* name_of(NestClass nest_class) {
  switch (nest_class) {
    case NestClass::kIdentity:
      return "identity";
    case NestClass::kView:
      return "view";
    case NestClass::kRuns:
      return "runs";
    case NestClass::kTiles:
      return "tiles";
    case NestClass::kLoopNest:
      return "loop nest";
  }
  return "unknown";
}

struct Options {
  int threads = 1;
  bool with_reference = false;
  bool with_onednn = false;
};

// Of a slice only its elements count, whatever lies between them.
size_t bytes_read(const ReorderDescription& description, size_t source_bytes) {
  if (!description.slice) return source_bytes;
  int64_t elements = 1;
  for (int64_t extent : description.shape) elements *= extent;
  return static_cast<size_t>(elements * description.element_bits / 8);
}

// One case: its buffers, the right result, and who takes turns.
class Measurement {
 public:
  Measurement(const Case& at, const Options& options);
  void run() { take_turns(candidates_, at_.rounds, options_.threads); }
  void print() const;

 private:
  void add_tilework();
  void add_copies();
  void add_reference();
  void add_onednn();
  // Cuts [0, total) at multiples of `unit`, a share a thread.
  void each_share(int64_t total, int64_t unit, const std::function<void(int64_t, int64_t)>& part) const;
  // Whether the last candidate, run and timed once, writes what the reference writes.
  bool writes_expected();

  const Case& at_;
  const Options& options_;
  std::shared_ptr<const ReorderPlan> shared_plan_;
  const ReorderPlan& plan_ = *shared_plan_;
  // As the addon cuts a job for its threads.
  ReorderParts parts_;
  size_t source_bytes_ = static_cast<size_t>(plan_.source_bytes());
  size_t destination_bytes_ = static_cast<size_t>(plan_.destination_bytes());
  size_t moved_ = bytes_read(at_.description, source_bytes_) + destination_bytes_;
  Buffer from_{std::max(source_bytes_, destination_bytes_)};
  Buffer to_{std::max(source_bytes_, destination_bytes_)};
  Buffer expected_{destination_bytes_};
  const ReorderKernel& reference_ = reference_of(plan_);
#if defined(TILEWORK_BENCH_ONEDNN)
  std::unique_ptr<OnednnReorder> onednn_;
#endif
  std::vector<Candidate> candidates_;
  bool equal_ = false;
  bool onednn_equal_ = false;
};

Measurement::Measurement(const Case& at, const Options& options)
    : at_(at),
      options_(options),
      shared_plan_(std::make_shared<const ReorderPlan>(at.description)),
      parts_(shared_plan_, static_cast<size_t>(options.threads)) {
  fill(from_.data(), source_bytes_, plan_.element_bits());
  reference_.run({plan_, from_.data(), expected_.data(), 0, plan_.destination_bytes()});
  add_tilework();
  add_copies();
  if (options.with_reference) add_reference();
  if (options.with_onednn) add_onednn();
}

void Measurement::each_share(int64_t total, int64_t unit,
                             const std::function<void(int64_t, int64_t)>& part) const {
  const int threads = options_.threads;
  const int64_t share = (total / threads + unit - 1) / unit * unit;
  on_threads(threads, [&](int thread) {
    const int64_t begin = std::min(share * thread, total);
    const int64_t end = thread + 1 == threads ? total : std::min(begin + share, total);
    part(begin, end);
  });
}

bool Measurement::writes_expected() {
  std::memset(to_.data(), 0xA5, destination_bytes_);
  Candidate& last = candidates_.back();
  last.best = seconds_of(last.body, 1, options_.threads);
  return std::memcmp(to_.data(), expected_.data(), destination_bytes_) == 0;
}

void Measurement::add_tilework() {
  candidates_.push_back({"tilework", moved_, [this] {
                           // A run of one part wakes nobody.
                           on_threads(parts_.count() == 1 ? 1 : options_.threads, [this](int thread) {
                             const int64_t share = ceil_div(parts_.count(), options_.threads);
                             const int64_t end = std::min((thread + 1) * share, parts_.count());
                             for (int64_t part = thread * share; part < end; ++part) {
                               parts_.run(part, from_.data(), to_.data());
                             }
                           });
                         }});
  equal_ = writes_expected();
}

void Measurement::add_copies() {
  const size_t copied = moved_ / 2;
  const auto add = [&](const char* name, auto copy) {
    candidates_.push_back({name, 2 * copied, [this, copied, copy] {
                             each_share(static_cast<int64_t>(copied), kPage, [&](int64_t begin, int64_t end) {
                               copy(to_.data() + begin, from_.data() + begin,
                                    static_cast<size_t>(end - begin));
                             });
                           }});
  };
  add("memcpy", [](uint8_t* to, const uint8_t* from, size_t size) { std::memcpy(to, from, size); });
  add("streaming", copy_streaming);
}

void Measurement::add_reference() {
  candidates_.push_back({"reference", moved_, [this] {
                           each_share(plan_.destination_bytes(), kPage, [this](int64_t begin, int64_t end) {
                             reference_.run({plan_, from_.data(), to_.data() + begin, begin, end});
                           });
                         }});
}

void Measurement::add_onednn() {
#if defined(TILEWORK_BENCH_ONEDNN)
  onednn_ = OnednnReorder::create(at_.onednn_dtype, at_.description.shape, at_.onednn_from, at_.onednn_to,
                                  from_.data(), to_.data());
  if (!onednn_) return;
  candidates_.push_back({"onednn", moved_, [this] { onednn_->run(); }});
  onednn_equal_ = onednn_->destination_bytes() == destination_bytes_ && writes_expected();
#endif
}

void Measurement::print() const {
  std::printf(R"({"threads":%d,"bytes":%zu,"class":"%s","kernel":"%s","equal":%s)", options_.threads, moved_,
              name_of(plan_.nest_class()), plan_.kernel().name, equal_ ? "true" : "false");
  for (const Candidate& candidate : candidates_) {
    std::printf(R"(,"%s":%.3f)", candidate.name, static_cast<double>(candidate.bytes) / candidate.best / 1e9);
  }
#if defined(TILEWORK_BENCH_ONEDNN)
  if (onednn_) {
    std::printf(R"(,"onednnKernel":"%s","onednnEqual":%s)", onednn_->kernel().c_str(),
                onednn_equal_ ? "true" : "false");
  }
#endif
  std::printf("}\n");
  std::fflush(stdout);
}

// Of one core; a common size where the system does not tell.
int64_t second_level_cache_bytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0) return bytes;
#endif
  return int64_t{512} << 10;
}

void print_machine() {
  std::printf(R"({"secondLevelCache":%lld,"lastLevelCache":%lld)",
              static_cast<long long>(second_level_cache_bytes()),
              static_cast<long long>(last_level_cache_bytes()));
#if defined(TILEWORK_BENCH_ONEDNN)
  std::printf(R"(,"onednn":"%s")", onednn_version().c_str());
#endif
  std::printf("}\n");
}

}  // namespace
}  // namespace tilework::bench

int main(int count, char** arguments) {
  using namespace tilework::bench;
  Options options;
  if (count > 1) options.threads = std::atoi(arguments[1]);
  for (int i = 2; i < count; ++i) {
    const std::string option = arguments[i];
    if (option == "reference") options.with_reference = true;
    if (option == "onednn") options.with_onednn = true;
  }
#if defined(_OPENMP)
  omp_set_num_threads(options.threads);
#else
  if (options.threads > 1) {
    std::fprintf(stderr, "Built without OpenMP: one thread only.\n");
    return 2;
  }
#endif
  print_machine();
  for (Case next; read_case(next); next = {}) {
    Measurement measurement(next, options);
    measurement.run();
    measurement.print();
  }
  return 0;
}
