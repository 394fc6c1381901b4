// Counts of comparisons and ways, written at the end of a process to the file that TILEWORK_WAYS_FILE names,
// one a line: "comparison NAME FILE:LINE LESS EQUAL MORE TRUE FALSE" and "way COUNT NAME". Compiled for
// counting builds only.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "policy/thresholds.h"

namespace tilework {
namespace {

struct Outcomes {
  int64_t less = 0;
  int64_t equal = 0;
  int64_t more = 0;
  // Results: that a comparison holds, or that a limit takes the place of a quantity.
  int64_t is_true = 0;
  int64_t is_false = 0;
};

// Never destroyed: threads may count while the process ends.
struct Counts {
  std::mutex mutex;
  std::map<std::tuple<std::string_view, std::string_view, uint32_t>, Outcomes> comparisons;
  std::map<std::string_view, int64_t> ways;
};

void write_counts();

Counts& counts() {
  static Counts* const kCounts = [] {
    std::atexit(write_counts);
    return new Counts;
  }();
  return *kCounts;
}

void write_counts() {
  const char* path = std::getenv("TILEWORK_WAYS_FILE");
  if (path == nullptr) return;
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return;
  for (const auto& [key, outcomes] : counts().comparisons) {
    const auto& [name, source, line] = key;
    std::fprintf(file, "comparison %s %s:%u %lld %lld %lld %lld %lld\n", std::string(name).c_str(),
                 std::string(source).c_str(), line, static_cast<long long>(outcomes.less),
                 static_cast<long long>(outcomes.equal), static_cast<long long>(outcomes.more),
                 static_cast<long long>(outcomes.is_true), static_cast<long long>(outcomes.is_false));
  }
  for (const auto& [name, count] : counts().ways)
    std::fprintf(file, "way %lld %s\n", static_cast<long long>(count), std::string(name).c_str());
  std::fclose(file);
}

}  // namespace

bool counted(const Quantity& quantity, const Threshold& threshold, bool result) {
  const std::lock_guard lock(counts().mutex);
  Outcomes& outcomes = counts().comparisons[{threshold.name, quantity.at.file_name(), quantity.at.line()}];
  (quantity.value < threshold.value   ? outcomes.less
   : quantity.value > threshold.value ? outcomes.more
                                      : outcomes.equal)++;
  ++(result ? outcomes.is_true : outcomes.is_false);
  return result;
}

std::map<std::string_view, int64_t> counted_ways() {
  const std::lock_guard lock(counts().mutex);
  return counts().ways;
}

void count_way(const char* name) {
  const std::lock_guard lock(counts().mutex);
  ++counts().ways[name];
}

}  // namespace tilework
