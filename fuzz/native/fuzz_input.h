// Turns the bytes of a fuzzer into numbers and descriptions. After the last byte everything is zero, so every
// input is a case, and a shorter one is a simpler case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "random_layout.h"
#include "reorder/plan/plan.h"

namespace tilework::fuzz {

// Meets the requirements of a random bit generator, for RandomLayout and std::shuffle.
class FuzzInput {
 public:
  using result_type = uint8_t;
  static constexpr uint8_t min() { return 0; }
  static constexpr uint8_t max() { return 255; }

  FuzzInput(const uint8_t* data, size_t size) : rest_(data, size) {}

  uint8_t operator()() {
    if (rest_.empty()) return 0;
    const uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }

  // A number from 0 to bound - 1, for bounds of at most 256.
  int64_t below(int64_t bound) { return (*this)() % bound; }
  bool one_in(int64_t count) { return below(count) == 1; }

  uint64_t bits() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | (*this)();
    return value;
  }

  // Numbers at which arithmetic goes wrong, small ones, and any.
  int64_t number() {
    switch (below(5)) {
      case 0:
        return below(20) - 2;
      case 1:
        return (int64_t{1} << below(63)) + below(3) - 1;
      case 2:
        return std::numeric_limits<int64_t>::max() - below(3);
      case 3:
        return std::numeric_limits<int64_t>::min() + below(3);
      default:
        return static_cast<int64_t>(bits());
    }
  }

  std::span<const uint8_t> rest() const { return rest_; }

 private:
  std::span<const uint8_t> rest_;
};

// Ends the process, which a fuzzer reports as a finding.
[[noreturn]] inline void finding(const std::string& sentence) {
  std::fprintf(stderr, "FINDING: %s\n", sentence.c_str());
  std::abort();
}

inline void require(bool holds, const char* what) {
  if (!holds) finding(what);
}

// Replaces a few numbers of a description. Returns whether any was.
inline bool damage(ReorderDescription& description, FuzzInput& input) {
  std::vector<int64_t*> numbers;
  std::vector<int*> small = {&description.element_bits};
  const auto add = [&](std::vector<int64_t>& list) {
    for (int64_t& number : list) numbers.push_back(&number);
  };
  add(description.shape);
  for (Side* side : {&description.from, &description.to}) {
    add(side->lower);
    add(side->upper);
    numbers.push_back(&side->elements);
    for (Piece& piece : side->pieces) {
      small.push_back(&piece.axis);
      numbers.push_back(&piece.lo);
      numbers.push_back(&piece.hi);
      for (Digit& digit : piece.digits) {
        numbers.push_back(&digit.radix);
        numbers.push_back(&digit.weight);
        for (int& axis : digit.axes) small.push_back(&axis);
      }
    }
  }
  if (description.slice) {
    add(description.slice->shape);
    add(description.slice->start);
    add(description.slice->step);
  }
  const int64_t count = input.one_in(4) ? 1 + input.below(3) : 0;
  for (int64_t i = 0; i < count; ++i) {
    const size_t at = static_cast<size_t>(input()) % (numbers.size() + small.size());
    if (at < numbers.size())
      *numbers[at] = input.number();
    else
      *small[at - numbers.size()] = static_cast<int>(input.number());
  }
  return count > 0;
}

// Product of the extents; -1 above `most`.
inline int64_t elements_of(const std::vector<int64_t>& shape, int64_t most) {
  int64_t product = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || extent > most) return -1;
    product *= extent;
    if (product > most) return -1;
  }
  return product;
}

}  // namespace tilework::fuzz

// The entry of libFuzzer and of replay.cc.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
