// Times reorder plans beside plain copies of the same number of bytes, in one process and in turns. Reads
// cases from standard input and writes one line of JSON for each; bench/reorder.mjs makes the cases and the
// tables.
//
// A case is numbers, separated by blanks:
//   element_bits rounds  rank extents...  side side
// and a side is
//   lower... upper... elements  pieces { axis lo hi  digits { count axes... radix weight } }
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "reorder/kernels.h"
#include "reorder/plan.h"

namespace tilework::bench {
namespace {

// As the addon cuts a job for its threads.
constexpr int64_t kMostUnit = int64_t{4} << 20;

struct Case {
  int rounds = 0;
  ReorderDescription description;
};

int64_t number() {
  int64_t value = 0;
  std::cin >> value;
  return value;
}

std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(number());
  return values;
}

Side read_side(int64_t rank) {
  Side side;
  side.lower = numbers(rank);
  side.upper = numbers(rank);
  side.elements = number();
  for (int64_t pieces = number(); pieces > 0; --pieces) {
    Piece piece;
    piece.axis = static_cast<int>(number());
    piece.lo = number();
    piece.hi = number();
    for (int64_t digits = number(); digits > 0; --digits) {
      Digit digit;
      for (int64_t axis : numbers(number())) digit.axes.push_back(static_cast<int>(axis));
      digit.radix = number();
      digit.weight = number();
      piece.digits.push_back(digit);
    }
    side.pieces.push_back(piece);
  }
  return side;
}

bool read_case(Case& next) {
  if (!(std::cin >> next.description.element_bits)) return false;
  next.rounds = static_cast<int>(number());
  const int64_t rank = number();
  next.description.shape = numbers(rank);
  next.description.from = read_side(rank);
  next.description.to = read_side(rank);
  return true;
}

// Aligned to 2 MiB, in ordinary pages, warm. 4 KiB and some lines more, so that two buffers do not start at
// the same place of a page.
class Buffer {
 public:
  explicit Buffer(size_t size)
      : data_(static_cast<uint8_t*>(std::aligned_alloc(kAlignment, (size / kAlignment + 1) * kAlignment))) {
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

// Threads that spin for the next turn, so that starting them costs less than what is measured.
class Team {
 public:
  explicit Team(int threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  }
  ~Team() {
    stopping_ = true;
    turn_.fetch_add(1);
    for (std::thread& worker : workers_) worker.join();
  }
  void run(const std::function<void(int)>& body) {
    body_ = &body;
    waiting_ = static_cast<int>(workers_.size());
    turn_.fetch_add(1);
    body(0);
    while (waiting_.load() > 0) std::this_thread::yield();
  }
  int size() const { return static_cast<int>(workers_.size()) + 1; }

 private:
  void work(int number) {
    for (int64_t seen = 0;;) {
      while (turn_.load() == seen) std::this_thread::yield();
      ++seen;
      if (stopping_) return;
      (*body_)(number);
      waiting_.fetch_sub(1);
    }
  }
  std::vector<std::thread> workers_;
  std::atomic<int64_t> turn_{0};
  std::atomic<int> waiting_{0};
  std::atomic<bool> stopping_{false};
  const std::function<void(int)>* body_ = nullptr;
};

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

double seconds_of(const std::function<void()>& body, int64_t repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < repeats; ++i) body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
         static_cast<double>(repeats);
}

struct Candidate {
  const char* name;
  std::function<void()> body;
  int64_t repeats = 1;
  double best = 1e9;
};

// Each takes its turn in each round, after one call that is not timed.
void take_turns(std::vector<Candidate>& candidates, int rounds) {
  constexpr double kShortest = 30e-6;
  for (Candidate& candidate : candidates) {
    candidate.body();
    candidate.repeats = std::max<int64_t>(1, static_cast<int64_t>(kShortest / seconds_of(candidate.body, 1)));
  }
  for (int round = 0; round < rounds; ++round) {
    for (Candidate& candidate : candidates) {
      candidate.body();
      candidate.best = std::min(candidate.best, seconds_of(candidate.body, candidate.repeats));
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

void measure(const Case& at, Team& team, bool with_reference) {
  const ReorderPlan plan(at.description);
  const auto source_bytes = static_cast<size_t>(plan.source_bytes());
  const auto destination_bytes = static_cast<size_t>(plan.destination_bytes());
  const size_t copied = (source_bytes + destination_bytes) / 2;
  const size_t largest = std::max(source_bytes, destination_bytes);
  Buffer from(largest), to(largest), expected(destination_bytes);
  for (size_t i = 0; i < source_bytes; ++i) from.data()[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
  const ReorderKernel& reference = reference_of(plan);
  reference.run({plan, from.data(), expected.data(), 0, plan.destination_bytes()});

  const auto each = [&](int64_t total, int64_t unit, const std::function<void(int64_t, int64_t)>& part) {
    const int64_t share = (total / team.size() + unit - 1) / unit * unit;
    const std::function<void(int)> body = [&](int thread) {
      const int64_t begin = std::min(share * thread, total);
      const int64_t end = thread + 1 == team.size() ? total : std::min(begin + share, total);
      part(begin, end);
    };
    if (team.size() == 1) {
      part(0, total);
    } else {
      team.run(body);
    }
  };
  const auto total = static_cast<int64_t>(copied);
  std::vector<Candidate> candidates;
  candidates.push_back({"tilework", [&] {
                          each(plan.destination_bytes(), plan.range_unit(kMostUnit),
                               [&](int64_t begin, int64_t end) {
                                 plan.run(from.data(), to.data() + begin, begin, end, plan.stores_of_whole());
                               });
                        }});
  candidates.push_back({"memcpy", [&] {
                          each(total, 4096, [&](int64_t begin, int64_t end) {
                            std::memcpy(to.data() + begin, from.data() + begin,
                                        static_cast<size_t>(end - begin));
                          });
                        }});
  candidates.push_back({"streaming", [&] {
                          each(total, 4096, [&](int64_t begin, int64_t end) {
                            copy_streaming(to.data() + begin, from.data() + begin,
                                           static_cast<size_t>(end - begin));
                          });
                        }});
  if (with_reference) {
    candidates.push_back({"reference", [&] {
                            each(plan.destination_bytes(), 4096, [&](int64_t begin, int64_t end) {
                              reference.run({plan, from.data(), to.data() + begin, begin, end});
                            });
                          }});
  }
  std::memset(to.data(), 0xA5, destination_bytes);
  candidates[0].body();
  const bool equal = std::memcmp(to.data(), expected.data(), destination_bytes) == 0;
  take_turns(candidates, at.rounds);
  std::printf("{\"threads\":%d,\"bytes\":%zu,\"kernel\":\"%s\",\"class\":\"%s\",\"equal\":%s",
              team.size(), source_bytes + destination_bytes, plan.kernel().name,
              name_of(plan.nest_class()), equal ? "true" : "false");
  for (const Candidate& candidate : candidates) {
    const size_t bytes = &candidate == &candidates[0] || std::strcmp(candidate.name, "reference") == 0
                             ? source_bytes + destination_bytes
                             : 2 * copied;
    std::printf(",\"%s\":%.3f", candidate.name, static_cast<double>(bytes) / candidate.best / 1e9);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace tilework::bench

// Arguments: the number of threads, and "reference" to time the reference as well.
int main(int count, char** arguments) {
  using namespace tilework::bench;
  Team team(count > 1 ? std::atoi(arguments[1]) : 1);
  const bool with_reference = count > 2 && std::strcmp(arguments[2], "reference") == 0;
  for (Case next; read_case(next); next = {}) measure(next, team, with_reference);
  return 0;
}
