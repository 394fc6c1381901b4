// Times reorder plans against plain copies of the same number of bytes and against oneDNN, in one process, in
// interleaved rounds over the same buffers. Reads cases from standard input. Writes one line of JSON about
// the machine, then one per case; bench/reorder.mjs makes the cases and the tables.
//
// A case is the number of rounds, the reorder (test/native/read_description.h), and oneDNN's dtype, source
// tag and destination tag, each "-" where oneDNN has none.
//
// Arguments: the number of threads, then any of "reference" (time the reference kernels) and "onednn".
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "cpu/cache.h"
#include "interleaved_rounds.h"
#include "io/checked_math.h"
#include "read_description.h"
#include "reorder/kernels.h"
#include "reorder/run/parts.h"
#include "reorder/plan/plan.h"

#if defined(TILEWORK_BENCH_ONEDNN)
#include "onednn_reorder.h"
#endif

namespace tilework::bench {
namespace {

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

// Fills with bytes that are not NaN in any type: oneDNN moves some 16-bit elements through a conversion,
// which may change the bits of a NaN.
void fill(uint8_t* data, size_t bytes, int element_bits) {
  const size_t element = static_cast<size_t>(std::max(element_bits / 8, 1));
  uint32_t state = 1;
  for (size_t i = 0; i < bytes; ++i) {
    state = state * 1664525 + 1013904223;
    data[i] = static_cast<uint8_t>(state >> 24);
    if (element > 1 && i % element == element - 1) data[i] = (data[i] & 0x9F) | 0x20;
  }
}

const ReorderKernel& reference_of(const ReorderPlan& plan) {
  const ReorderKernel* last = nullptr;
  for (const ReorderKernel& kernel : reorder_kernels()) {
    if (fits(kernel, plan)) last = &kernel;
  }
  return *last;
}

const char* name_of(Moves moves) {
  switch (moves) {
    case Moves::kRange:
      return "range";
    case Moves::kTiles:
      return "tiles";
  }
  return "unknown";
}

// The way that moves most of the destination; nothing where it is a copy.
std::string largest_way(const ReorderPlan& plan, Stores stores) {
  const WayShares shares = plan.ways(stores);
  const auto largest = std::max_element(shares.begin(), shares.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return largest == shares.end() ? "" : row_of(largest->first).name;
}

struct Options {
  int threads = 1;
  bool with_reference = false;
  bool with_onednn = false;
};

// Bytes that a plan reads. For a slice only its elements count, not the gaps between them.
size_t bytes_read(const ReorderDescription& description, size_t source_bytes) {
  if (!description.slice) return source_bytes;
  int64_t elements = 1;
  for (int64_t extent : description.shape) elements *= extent;
  return static_cast<size_t>(elements * description.element_bits / 8);
}

// One case: its buffers, the expected result and the candidates.
class Measurement {
 public:
  Measurement(const Case& at, const Options& options);
  void run() { run_interleaved(candidates_, at_.rounds, options_.threads); }
  void print() const;

 private:
  void add_tilework();
  void add_reference();
  void add_onednn();
  // Whether the last candidate, run and timed once, writes what the reference writes.
  bool writes_expected();

  const Case& at_;
  const Options& options_;
  std::shared_ptr<const ReorderPlan> shared_plan_;
  const ReorderPlan& plan_ = *shared_plan_;
  // The parts that the addon would give its threads.
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
  add_copies(candidates_, options.threads, moved_, to_.data(), from_.data());
  if (options.with_reference) add_reference();
  if (options.with_onednn) add_onednn();
}

bool Measurement::writes_expected() {
  std::memset(to_.data(), 0xA5, destination_bytes_);
  Candidate& last = candidates_.back();
  last.best = seconds_of(last.body, 1, options_.threads);
  return std::memcmp(to_.data(), expected_.data(), destination_bytes_) == 0;
}

void Measurement::add_tilework() {
  candidates_.push_back(
      {"tilework", moved_, [this] { run_parts(parts_, options_.threads, from_.data(), to_.data()); }});
  equal_ = writes_expected();
}

void Measurement::add_reference() {
  candidates_.push_back({"reference", moved_, [this] {
                           each_share(options_.threads, plan_.destination_bytes(), kPage,
                                      [this](int64_t begin, int64_t end) {
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
  std::printf(R"({"threads":%d,"bytes":%zu,"class":"%s","kernel":"%s","way":"%s","equal":%s)", options_.threads, moved_,
              name_of(plan_.moves()), plan_.kernel().name, largest_way(plan_, parts_.stores()).c_str(),
              equal_ ? "true" : "false");
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
    std::fprintf(stderr, "the benchmark is built without OpenMP: %d threads requested, only 1 is possible\n",
                 options.threads);
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
