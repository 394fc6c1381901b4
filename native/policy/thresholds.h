// The thresholds of the engine as constants: thresholds.def has them all. A quantity is compared with a
// threshold, never with its value, so that a build that counts (TILEWORK_COUNT_WAYS) knows every comparison
// and how it went. Such a build also counts the ways that were taken; test/programs/ways.mjs prints both.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(TILEWORK_COUNT_WAYS)
#include <map>
#include <source_location>
#include <string_view>
#endif

namespace tilework {

// Its multiples and parts, for quantities in another unit, are the same threshold.
struct Threshold {
  int64_t value;
#if defined(TILEWORK_COUNT_WAYS)
  const char* name;
  constexpr Threshold(int64_t number, const char* of = "injected") : value(number), name(of) {}
  constexpr Threshold times(int64_t factor) const { return {value * factor, name}; }
  constexpr Threshold over(int64_t divisor) const { return {value / divisor, name}; }
#else
  // Implicit, so that tests give limits as numbers.
  constexpr Threshold(int64_t number) : value(number) {}
  constexpr Threshold times(int64_t factor) const { return value * factor; }
  constexpr Threshold over(int64_t divisor) const { return value / divisor; }
#endif
};

#if defined(TILEWORK_COUNT_WAYS)

// A quantity, and where it is compared.
struct Quantity {
  int64_t value;
  std::source_location at;
  // Implicit, as comparisons read as those of numbers.
  Quantity(int64_t number, std::source_location where = std::source_location::current())
      : value(number), at(where) {}
};

// Counts one comparison of a quantity with a threshold, and gives its result.
bool counted(const Quantity& quantity, const Threshold& threshold, bool result);
// Counts a way that was taken.
void count_way(const char* name);
// How often each was taken so far.
std::map<std::string_view, int64_t> counted_ways();

#define TILEWORK_COMPARISON(operation)                                                   \
  inline bool operator operation(const Quantity& quantity, const Threshold& threshold) { \
    return counted(quantity, threshold, quantity.value operation threshold.value);       \
  }
#define TILEWORK_WAY(name) ::tilework::count_way(name)
#define TILEWORK_NAMED(name) , name

inline int64_t at_most(const Quantity& quantity, const Threshold& threshold) {
  return counted(quantity, threshold, quantity.value > threshold.value) ? threshold.value : quantity.value;
}
inline int64_t at_least(const Quantity& quantity, const Threshold& threshold) {
  return counted(quantity, threshold, quantity.value < threshold.value) ? threshold.value : quantity.value;
}

#else

#define TILEWORK_COMPARISON(operation)                                       \
  constexpr bool operator operation(int64_t quantity, Threshold threshold) { \
    return quantity operation threshold.value;                               \
  }
// Names a way of moving where it is taken.
#define TILEWORK_WAY(name) static_cast<void>(0)
#define TILEWORK_NAMED(name)

// The quantity, or the threshold where it is less; or where it is more.
constexpr int64_t at_most(int64_t quantity, Threshold threshold) {
  return std::min(quantity, threshold.value);
}
constexpr int64_t at_least(int64_t quantity, Threshold threshold) {
  return std::max(quantity, threshold.value);
}

#endif

TILEWORK_COMPARISON(<)
TILEWORK_COMPARISON(<=)
TILEWORK_COMPARISON(>)
TILEWORK_COMPARISON(>=)
#undef TILEWORK_COMPARISON

#define TILEWORK_THRESHOLD(name, value, unit, quantity) \
  inline constexpr Threshold name{value TILEWORK_NAMED(#name)};
#include "policy/thresholds.def"
#undef TILEWORK_THRESHOLD

}  // namespace tilework
