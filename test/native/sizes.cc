// Reorders as large as users' are, against an oracle: test/programs/sizes.mjs draws the layouts and the
// shapes, this program the rest by the seed of a case: casts and scalings, stores, parts for threads, ranges,
// and whether the source stays in a file. Limits that depend on the machine are drawn small as well, so that
// what runs on large memory runs on little. Every destination is filled with a pattern before, and lies, as
// the source does, next to a guard page.
//
// Reads one case per line, from a file or from standard input: number, seed, and the reorder
// (read_description.h). Writes the number of cases to standard output, and failures to standard error.
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "changed_elements.h"
#include "check.h"
#include "cpu/cache.h"
#include "guarded_memory.h"
#include "io/checked_math.h"
#include "offset_tables.h"
#include "policy/stores.h"
#include "read_description.h"
#include "reorder/leaf/cache_lines.h"
#include "reorder/run/parts.h"
#include "reorder/run/reorder_file.h"
#include "reorder_case.h"
#include "running_case.h"
#include "temporary_folder.h"

namespace tilework::test {
namespace {

struct Case {
  int64_t number = 0;
  uint64_t seed = 0;
  ReorderDescription description;
};

// Shared by all cases: allocating and filling memory takes longer than a case.
struct Memory {
  static constexpr int64_t kMaxBytes = int64_t{40} << 20;
  // Sources begin at any byte of the noise.
  static constexpr int64_t kNoiseBytes = kMaxBytes + (1 << 16);
  Memory() : noise(static_cast<size_t>(kNoiseBytes)) {
    std::mt19937_64 random(7);
    for (size_t at = 0; at < noise.size(); at += sizeof(uint64_t)) {
      const uint64_t number = random();
      std::memcpy(&noise[at], &number, sizeof(number));
    }
  }
  GuardedMemory source{kMaxBytes};
  GuardedMemory destination{kMaxBytes};
  std::vector<uint8_t> noise;
  std::vector<uint8_t> expected;
  TemporaryFolder folder;
};

struct Tally {
  int64_t cases = 0;
  int64_t casts = 0;
  int64_t files = 0;
  // Reorders that no kernel moves, of 2 and 6 bits.
  int64_t refused = 0;
};

std::vector<uint8_t> straight(const ReorderDescription& description, const uint8_t* source) {
  ReorderDescription rows = description;
  rows.shape = source_shape(description);
  rows.slice.reset();
  rows.from = rows.to = row_major(rows.shape);
  const ReorderPlan plan(rows);
  std::vector<uint8_t> result(static_cast<size_t>(plan.destination_bytes()));
  plan.run(source, result.data(), 0, plan.destination_bytes());
  return result;
}

// What an element becomes is known from a copy in order; some elements of it are compared with the
// references.
void check_some_elements(const ReorderDescription& description, const std::vector<uint8_t>& logical,
                         const std::vector<uint8_t>& changed, std::mt19937_64& random) {
  constexpr int kSome = 40;
  int64_t elements = 1;
  for (const int64_t extent : source_shape(description)) elements *= extent;
  const int bits = info_of(to_of(description.casts.back())).bits;
  for (int i = 0; i < kSome && elements > 0; ++i) {
    const auto at = static_cast<int64_t>(random() % static_cast<uint64_t>(elements));
    const ElementBytes right = change_element(description, logical.data(), {at, at});
    const bool is_same = bits < 8 ? packed_element(changed.data(), bits, at) == right[0]
                                  : std::memcmp(changed.data() + at * (bits / 8), right.data(),
                                                static_cast<size_t>(bits / 8)) == 0;
    CHECK_IN(text(description.casts) + ": element " + std::to_string(at) + " in order", is_same);
  }
}

class CaseCheck {
 public:
  CaseCheck(const Case& at, Memory& memory, Tally& tally)
      : case_(at), memory_(memory), tally_(tally), random_(at.seed), layouts_(random_) {}

  void run() {
    ReorderDescription description = case_.description;
    // Elements of 2 and 6 bits are copied, or cast.
    if (below(5) < 2 || !moves_elements(description.element_bits))
      description.casts = changes_of(description);
    if (description.element_bits == 8 && below(4) == 0) description.casts = normalisation(description);
    if (below(6) == 0) add_usual_cast(description);
    std::snprintf(running_case, sizeof(running_case), "case %lld\n", static_cast<long long>(case_.number));
    if (!make_plan(description)) return;
    ++tally_.cases;
    tally_.casts += !description.casts.empty();
    place_source();
    expect(description);
    run_whole();
    run_range();
    run_parts();
    if (below(8) == 0) run_from_file();
  }

 private:
  // Parameters take no more memory than the tensor, and reference casts, which are slow, are for small ones.
  Changes changes_of(const ReorderDescription& description) {
    constexpr int64_t kSlowElements = 20'000;
    constexpr int kTries = 10;
    const bool is_small = description.from.elements <= kSlowElements;
    for (int i = 0; i < kTries; ++i) {
      Changes changes = random_changes(description, layouts_);
      const bool fits = std::all_of(changes.begin(), changes.end(), [&](const ElementChange& change) {
        if (const auto* scaling = std::get_if<ScalingDescription>(&change))
          return is_small || scaling->scales.size() <= kMostEntries;
        return is_small || std::get<Cast>(change).kernels().find("reference") == std::string::npos;
      });
      if (fits) return changes;
    }
    return {};
  }

  // Bytes to floats, as images become features: one scale and offset, or some along each axis.
  Changes normalisation(const ReorderDescription& description) {
    ScalingDescription scaling;
    do {
      scaling = random_scaling(ScalingKind::kAffine, Dtype::kUint8, Dtype::kFloat32,
                               source_shape(description), layouts_);
    } while (scaling.scales.size() > kMostEntries);
    Changes changes{scaling};
    if (below(2) == 0) changes.emplace_back(Cast(Dtype::kFloat32, Dtype::kFloat16, CastOptions{}));
    return changes;
  }

  // The casts of weights and images, which whole blocks make in registers.
  void add_usual_cast(ReorderDescription& description) {
    constexpr std::array kNarrow = {Dtype::kFloat16, Dtype::kBfloat16, Dtype::kInt8, Dtype::kUint8};
    const Dtype narrow = kNarrow[static_cast<size_t>(below(kNarrow.size()))];
    if (description.element_bits == 32) description.casts = {Cast(Dtype::kFloat32, narrow, CastOptions{})};
    if (description.element_bits == info_of(narrow).bits)
      description.casts = {Cast(narrow, Dtype::kFloat32, CastOptions{})};
  }

  bool make_plan(ReorderDescription& description) {
    try {
      plan_ = std::make_shared<const ReorderPlan>(description);
    } catch (const Error& error) {
      if (std::string_view(error.name()) != "ERR_UNSUPPORTED") throw;
      ++tally_.refused;
      return false;
    }
    if (plan_->destination_bytes() > Memory::kMaxBytes) {
      description.casts.clear();
      return make_plan(description);
    }
    name_ = "case " + std::to_string(case_.number) + ", ";
    if (!description.casts.empty()) name_ += text(description.casts) + ", ";
    CHECK_IN(name_, plan_->source_bytes() <= Memory::kMaxBytes);
    return plan_->source_bytes() <= Memory::kMaxBytes && plan_->destination_bytes() > 0;
  }

  void place_source() {
    source_ = memory_.source.place(plan_->source_bytes(), below(2) == 0 ? Against::kLower : Against::kUpper);
    const int64_t first = below(Memory::kNoiseBytes - plan_->source_bytes() + 1);
    std::memcpy(source_, memory_.noise.data() + first, static_cast<size_t>(plan_->source_bytes()));
  }

  void expect(const ReorderDescription& description) {
    memory_.expected.assign(static_cast<size_t>(plan_->destination_bytes()), 0);
    uint8_t* expected = memory_.expected.data();
    check_offsets(description);
    if (description.casts.empty())
      return move_elements(description, description.element_bits, source_, expected);
    ReorderDescription gathered = description;
    gathered.shape = source_shape(description);
    gathered.slice.reset();
    gathered.to = row_major(gathered.shape);
    std::vector<uint8_t> logical(
        static_cast<size_t>(packed_bytes(description.element_bits, gathered.to.elements)), 0);
    move_elements(gathered, description.element_bits, source_, logical.data());
    const std::vector<uint8_t> changed = straight(description, logical.data());
    check_some_elements(description, logical, changed, random_);
    ReorderDescription moved = description;
    moved.from = gathered.to;
    move_elements(moved, info_of(to_of(description.casts.back())).bits, changed.data(), expected);
  }

  // The tables against the definition.
  void check_offsets(const ReorderDescription& description) {
    constexpr int kSome = 20;
    const std::vector<int64_t>& shape = description.shape;
    const Piece& piece = description.to.pieces[0];
    const OffsetTables tables(shape, shape, description.to, piece, std::nullopt);
    const Box box = box_of(shape, description.to, piece, std::nullopt);
    Coordinate at(shape.size());
    for (int i = 0; i < kSome && !shape.empty(); ++i) {
      bool is_empty = false;
      for (size_t axis = 0; axis < at.size(); ++axis) {
        is_empty = is_empty || box.lo[axis] >= box.hi[axis];
        at[axis] = is_empty ? 0 : box.lo[axis] + below(box.hi[axis] - box.lo[axis]);
      }
      if (is_empty) return;
      CHECK_IN(name_ + "offset tables",
               offsets_along(tables, 0, at).at(at[0]) == offset_of(shape, description.to, at));
    }
  }

  Stores stores() { return below(2) == 0 ? Stores::kCached : Stores::kStreaming; }

  uint8_t* pattern(int64_t bytes) {
    uint8_t* to = memory_.destination.place(bytes, below(2) == 0 ? Against::kLower : Against::kUpper);
    std::memset(to, static_cast<int>(1 + below(255)), static_cast<size_t>(bytes));
    return to;
  }

  void compare(const std::string& what, const uint8_t* found, int64_t begin, int64_t end) {
    const uint8_t* expected = memory_.expected.data();
    if (std::memcmp(expected + begin, found, static_cast<size_t>(end - begin)) == 0) return;
    const uint8_t* at = std::mismatch(expected + begin, expected + end, found).first;
    CHECK_IN(name_ + what + ": byte " + std::to_string(at - expected) + " of " +
                 std::to_string(plan_->destination_bytes()) + " differs; " + plan_->reason() + "; " +
                 describe(case_.description),
             at == expected + end);
  }

  void run_whole() {
    const int64_t bytes = plan_->destination_bytes();
    uint8_t* to = pattern(bytes);
    const Stores how = stores();
    const Ways before = ways_so_far();
    plan_->run(source_, to, 0, bytes, how);
    compare(how == Stores::kStreaming ? "whole, streamed" : "whole", to, 0, bytes);
    // Ways depend on where lines begin.
    if (is_aligned(to, kLineBytes)) check_explained(before, ways_so_far(), how);
  }

  using Ways = std::map<std::string_view, int64_t>;
#if defined(TILEWORK_COUNT_WAYS)
  static Ways ways_so_far() { return counted_ways(); }
#else
  static Ways ways_so_far() { return {}; }
#endif

  // What explain() says is what a run does.
  void check_explained(const Ways& before, const Ways& after, Stores how) {
    if (after.empty()) return;
    const auto count_of = [](const Ways& ways, const char* name) {
      const auto found = ways.find(name);
      return found == ways.end() ? 0 : found->second;
    };
    for (const auto& [way, bytes] : plan_->ways(how)) {
      const char* name = row_of(way).name;
      CHECK_IN(name_ + "explained as " + name + ", which did not run; " + plan_->reason() + "; " +
                   describe(case_.description),
               bytes == 0 || count_of(after, name) > count_of(before, name));
    }
  }

  void run_range() {
    const auto [begin, end] = range();
    uint8_t* to = pattern(end - begin);
    plan_->run(source_, to, begin, end, stores());
    compare("range " + std::to_string(begin) + ".." + std::to_string(end), to, begin, end);
  }

  std::pair<int64_t, int64_t> range() {
    const int64_t quantum = plan_->range_quantum();
    const int64_t units = (plan_->destination_bytes() + quantum - 1) / quantum;
    const int64_t first = below(units);
    const int64_t count = 1 + below(below(3) == 0 ? std::min<int64_t>(units - first, 300) : units - first);
    return {first * quantum, std::min((first + count) * quantum, plan_->destination_bytes())};
  }

  // Limits as they are, or so small that this destination is cut often.
  PartLimits part_limits() {
    if (below(2) == 0) return kPartLimits;
    const int64_t share = std::max<int64_t>(plan_->destination_bytes() / (1 + below(40)), kLineBytes);
    return {below(3 * plan_->destination_bytes()), share, 2 * share, 1 + below(2 * share)};
  }

  // A machine with a small cache streams small results.
  Stores stores_of_machine(size_t threads) {
    const MemoryFacts facts{int64_t{1} << (14 + below(14)), [] { return false; }};
    return choose_stores(plan_->source_bytes() + plan_->destination_bytes(), threads, facts);
  }

  void run_parts() {
    const auto threads = static_cast<size_t>(1 + below(4));
    const ReorderParts parts(plan_, threads, part_limits());
    const Stores how = stores_of_machine(threads);
    uint8_t* to = pattern(plan_->destination_bytes());
    std::vector<std::thread> running_parts;
    const bool is_parallel = below(4) == 0;
    const auto run_every = [&](int64_t first, int64_t step) {
      for (int64_t part = first; part < parts.count(); part += step) parts.run(part, source_, to, how);
    };
    if (is_parallel) {
      for (size_t thread = 0; thread < threads; ++thread)
        running_parts.emplace_back(run_every, static_cast<int64_t>(thread), static_cast<int64_t>(threads));
      for (std::thread& thread : running_parts) thread.join();
    } else {
      for (int64_t part = parts.count(); part-- > 0;) parts.run(part, source_, to, how);
    }
    compare("parts " + std::to_string(parts.count()), to, 0, plan_->destination_bytes());
  }

  void run_from_file() {
    ++tally_.files;
    const std::string path = memory_.folder.path("source");
    std::FILE* stream = std::fopen(path.c_str(), "wb");
    const std::string lead(kOffset, '?');
    std::fwrite(lead.data(), 1, lead.size(), stream);
    std::fwrite(source_, 1, static_cast<size_t>(plan_->source_bytes()), stream);
    std::fclose(stream);
    const auto file = InputFile::open(path, {.mapped = false}, nullptr);
    const auto [begin, end] = file_range();
    const int64_t share = std::max<int64_t>(plan_->destination_bytes() / (1 + below(30)), 128);
    const TileLimits limits = below(2) == 0 ? kFileTileLimits : TileLimits{share, share + share / 2};
    const FileReorder reorder(plan_, begin, end, limits);
    FileScratch scratch;
    uint8_t* to = pattern(end - begin);
    for (int64_t tile = reorder.tiles(); tile-- > 0;) reorder.run_tile(tile, {*file, kOffset}, to, scratch);
    compare("file " + std::to_string(begin) + ".." + std::to_string(end), to, begin, end);
  }

  // All, or a range. Of a source that lies in pieces, parts of a file read a few hundred elements from as
  // many pages, and each looks at all that its tiles reach over: minutes for some MiB.
  std::pair<int64_t, int64_t> file_range() {
    const auto [begin, end] = below(2) == 0 ? std::pair{int64_t{0}, plan_->destination_bytes()} : range();
    if (plan_->programs().size() < 2) return {begin, end};
    const int64_t quantum = plan_->range_quantum();
    return {begin, std::min(end, begin + ceil_div(kMostFromPieces, quantum) * quantum)};
  }

  int64_t below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }

  // Scales of a large tensor.
  static constexpr size_t kMostEntries = 50'000;
  static constexpr int64_t kMostFromPieces = 16 << 10;
  // The source does not start at the start of the file.
  static constexpr int64_t kOffset = 100;

  const Case& case_;
  Memory& memory_;
  Tally& tally_;
  std::mt19937_64 random_;
  RandomLayout layouts_;
  std::shared_ptr<const ReorderPlan> plan_;
  std::string name_;
  uint8_t* source_ = nullptr;
};

int check_all(std::istream& input) {
  constexpr int kMostFailures = 20;
  Memory memory;
  Tally tally;
  DescriptionReader descriptions(input);
  for (Case next; failures < kMostFailures && input >> next.number >> next.seed;) {
    next.description = descriptions.read();
    CaseCheck(next, memory, tally).run();
  }
  std::printf("cases %lld\ncasts %lld\nfiles %lld\nrefused %lld\n", static_cast<long long>(tally.cases),
              static_cast<long long>(tally.casts), static_cast<long long>(tally.files),
              static_cast<long long>(tally.refused));
  return result();
}

}  // namespace
}  // namespace tilework::test

int main(int count, char** arguments) {
#if defined(M_MMAP_THRESHOLD)
  // The vectors of a case keep their pages for the next one.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
  std::ios::sync_with_stdio(false);
  tilework::test::report_crashes();
  if (count < 2) return tilework::test::check_all(std::cin);
  std::ifstream file(arguments[1]);
  return tilework::test::check_all(file);
}
