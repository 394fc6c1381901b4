// Times casts against plain copies of the same number of bytes, in one process, in interleaved rounds over
// the same buffers. Reads cases from standard input. Writes one line of JSON about the machine, then one per
// case; bench/cast.mjs makes the cases and the tables.
//
// A case is the number of rounds, two element types, and a reorder of elements of the first type
// (test/native/read_description.h). Where the offsets change too, the reorder alone is timed as well.
//
// Argument: the number of threads.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cpu/cache.h"
#include "dtype/cast.h"
#include "error.h"
#include "interleaved_rounds.h"
#include "read_description.h"
#include "reorder/cast/fused_cast.h"
#include "reorder/kernels.h"
#include "reorder/run/parts.h"
#include "reorder/plan/plan.h"

namespace tilework::bench {
namespace {

// Period of the values in elements: the slow reference casts one period only.
constexpr int64_t kPeriod = int64_t{1} << 16;

struct Case {
  int rounds = 0;
  Dtype from;
  Dtype to;
  ReorderDescription description;
};

Dtype read_dtype() {
  std::string name;
  std::cin >> name;
  return dtype_of(name);
}

bool read_case(Case& next) {
  if (!(std::cin >> next.rounds)) return false;
  next.from = read_dtype();
  next.to = read_dtype();
  next.description = test::DescriptionReader(std::cin).read();
  return true;
}

// Magnitudes typical of weights and activations: between 2^-8 and 2^8, of both signs.
std::vector<uint8_t> values_of(Dtype dtype) {
  std::vector<float> numbers;
  uint32_t state = 1;
  for (int64_t i = 0; i < kPeriod; ++i) {
    state = state * 1664525 + 1013904223;
    const float fraction = 1 + static_cast<float>(state >> 8 & 0xFFFF) / 65536;
    const float size = std::ldexp(fraction, static_cast<int>(state >> 24 & 15) - 8);
    numbers.push_back(state >> 31 != 0 ? -size : size);
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(packed_bytes(dtype, kPeriod)));
  const CastOptions options;
  cast_reference({reinterpret_cast<const uint8_t*>(numbers.data()), bytes.data(), kPeriod, Dtype::kFloat32,
                  dtype, options});
  return bytes;
}

// Casts `count` elements that repeat `values`: the first period and the last, partial one by the reference. A
// copy of a whole period would leave the next element in the unused bits of the last byte, which are zero.
std::vector<uint8_t> cast_by_reference(const std::vector<uint8_t>& values, const Cast& cast, int64_t count) {
  std::vector<uint8_t> result(static_cast<size_t>(packed_bytes(cast.to(), count)));
  const auto cast_at = [&](int64_t at, int64_t size) {
    cast_reference({values.data(), result.data() + packed_bytes(cast.to(), at), size, cast.from(), cast.to(),
                    cast.options()});
  };
  cast_at(0, std::min(count, kPeriod));
  int64_t at = kPeriod;
  for (; at + kPeriod <= count; at += kPeriod) {
    std::memcpy(result.data() + packed_bytes(cast.to(), at), result.data(),
                static_cast<size_t>(packed_bytes(cast.to(), kPeriod)));
  }
  if (at < count) cast_at(at, count - at);
  return result;
}

void repeat(const std::vector<uint8_t>& period, uint8_t* to, size_t size) {
  for (size_t at = 0; at < size; at += period.size()) {
    std::memcpy(to + at, period.data(), std::min(period.size(), size - at));
  }
}

// The reorder of elements that are already cast.
ReorderPlan moves_after_cast(const Case& at) {
  ReorderDescription description = at.description;
  description.casts.clear();
  description.element_bits = info_of(at.to).bits;
  return ReorderPlan(description);
}

// One case: its buffers, the expected result and the candidates.
class Measurement {
 public:
  Measurement(const Case& at, int threads);
  void run() { run_interleaved(candidates_, at_.rounds, threads_); }
  void print() const;

 private:
  void make_expected();
  bool writes_expected();

  const Case& at_;
  int threads_;
  std::shared_ptr<const ReorderPlan> plan_;
  std::shared_ptr<const ReorderPlan> moves_;
  // The parts that the addon would give its threads.
  ReorderParts parts_;
  ReorderParts moves_parts_;
  size_t source_bytes_ = static_cast<size_t>(plan_->source_bytes());
  size_t destination_bytes_ = static_cast<size_t>(plan_->destination_bytes());
  size_t moved_bytes_ = static_cast<size_t>(moves_->destination_bytes());
  Buffer from_{std::max({source_bytes_, destination_bytes_, moved_bytes_})};
  Buffer to_{std::max({source_bytes_, destination_bytes_, moved_bytes_})};
  std::vector<uint8_t> expected_;
  std::vector<Candidate> candidates_;
  bool equal_ = false;
};

std::shared_ptr<const ReorderPlan> plan_of(ReorderDescription description, const Case& at, bool casts) {
  if (casts) description.casts = {Cast(at.from, at.to, CastOptions{})};
  return std::make_shared<const ReorderPlan>(description);
}

Measurement::Measurement(const Case& at, int threads)
    : at_(at),
      threads_(threads),
      plan_(plan_of(at.description, at, true)),
      moves_(plan_of(at.description, at, false)),
      parts_(plan_, static_cast<size_t>(threads)),
      moves_parts_(moves_, static_cast<size_t>(threads)) {
  make_expected();
  const size_t moved = source_bytes_ + destination_bytes_;
  candidates_.push_back(
      {"tilework", moved, [this] { run_parts(parts_, threads_, from_.data(), to_.data()); }});
  equal_ = writes_expected();
  add_copies(candidates_, threads_, moved, to_.data(), from_.data());
  if (moves_->copy_offset()) return;
  candidates_.push_back({"layout", source_bytes_ + moved_bytes_,
                         [this] { run_parts(moves_parts_, threads_, from_.data(), to_.data()); }});
}

// Casts by the reference; where offsets change too, a plan without casts moves the results.
void Measurement::make_expected() {
  const std::vector<uint8_t> values = values_of(at_.from);
  repeat(values, from_.data(), source_bytes_);
  expected_ = cast_by_reference(values, Cast(at_.from, at_.to, CastOptions{}), at_.description.from.elements);
  if (moves_->copy_offset()) return;
  const ReorderPlan after = moves_after_cast(at_);
  const std::vector<uint8_t> cast = std::exchange(expected_, {});
  expected_.resize(destination_bytes_);
  after.run(cast.data(), expected_.data(), 0, after.destination_bytes());
}

bool Measurement::writes_expected() {
  std::memset(to_.data(), 0xA5, destination_bytes_);
  Candidate& last = candidates_.back();
  last.best = seconds_of(last.body, 1, threads_);
  return std::memcmp(to_.data(), expected_.data(), destination_bytes_) == 0;
}

void Measurement::print() const {
  std::printf(R"({"threads":%d,"bytes":%zu,"kernel":"%s","equal":%s)", threads_,
              source_bytes_ + destination_bytes_, plan_->cast()->kernels().c_str(),
              equal_ ? "true" : "false");
  for (const Candidate& candidate : candidates_) {
    std::printf(R"(,"%s":%.3f)", candidate.name, static_cast<double>(candidate.bytes) / candidate.best / 1e9);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace tilework::bench

int main(int count, char** arguments) {
  using namespace tilework::bench;
  const int threads = count > 1 ? std::atoi(arguments[1]) : 1;
#if defined(_OPENMP)
  omp_set_num_threads(threads);
#else
  if (threads > 1) {
    std::fprintf(stderr, "the benchmark is built without OpenMP: %d threads requested, only 1 is possible\n",
                 threads);
    return 2;
  }
#endif
  std::printf(R"({"secondLevelCache":%lld,"lastLevelCache":%lld})"
              "\n",
              static_cast<long long>(second_level_cache_bytes()),
              static_cast<long long>(tilework::last_level_cache_bytes()));
  try {
    for (Case next; read_case(next); next = {}) {
      Measurement measurement(next, threads);
      measurement.run();
      measurement.print();
    }
  } catch (const tilework::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
