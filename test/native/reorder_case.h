// Shared by tests of plans: cases, whole or sliced, and their expected results.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <vector>

#include "oracle.h"
#include "random_layout.h"
#include "reorder/plan/plan.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace tilework::test {

// Memory of the exact size, so that a sanitizer detects accesses beyond it. Starts a cache line, which
// streaming stores prefer.
struct Storage {
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(uint8_t* bytes) const { ::operator delete[](bytes, kAlignment); }
  };
  explicit Storage(int64_t bytes)
      : size(bytes), data(static_cast<uint8_t*>(::operator new[](static_cast<size_t>(bytes), kAlignment))) {}
  ~Storage() { ASAN_UNPOISON_MEMORY_REGION(data.get(), static_cast<size_t>(size)); }
  int64_t size;
  std::unique_ptr<uint8_t[], Free> data;
};

inline std::string describe(const Side& side) {
  std::string text;
  for (const Piece& piece : side.pieces) {
    text += " [axis " + std::to_string(piece.axis) + " from " + std::to_string(piece.lo) + " to " +
            std::to_string(piece.hi) + ":";
    for (const Digit& digit : piece.digits) {
      text += " ";
      for (int axis : digit.axes) text += static_cast<char>('a' + axis);
      text += "/" + std::to_string(digit.weight) + "%" + std::to_string(digit.radix);
    }
    text += "]";
  }
  for (int64_t lower : side.lower) text += " -" + std::to_string(lower);
  for (int64_t upper : side.upper) text += " +" + std::to_string(upper);
  return text;
}

inline std::string describe(const ReorderDescription& description) {
  std::string text = "bits " + std::to_string(description.element_bits) + " shape";
  for (int64_t extent : description.shape) text += " " + std::to_string(extent);
  if (description.slice) {
    for (size_t i = 0; i < description.shape.size(); ++i) {
      const Slice& slice = *description.slice;
      text += " [" + std::to_string(slice.start[i]) + "::" + std::to_string(slice.step[i]) + " of " +
              std::to_string(slice.shape[i]) + "]";
    }
  }
  return text + " from" + describe(description.from) + " to" + describe(description.to);
}

inline const std::vector<int64_t>& source_shape(const ReorderDescription& description) {
  return description.slice ? description.slice->shape : description.shape;
}

inline void copy_element(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int bits) {
  if (bits >= 8) {
    std::memcpy(destination + d * (bits / 8), source + s * (bits / 8), static_cast<size_t>(bits / 8));
    return;
  }
  const int value = (source[s / 2] >> (s % 2 * 4)) & 15;
  destination[d / 2] = static_cast<uint8_t>(destination[d / 2] | (value << (d % 2 * 4)));
}

// Source element of every destination slot; -1 for a hole.
inline std::vector<int64_t> sources_of(const ReorderDescription& description) {
  std::vector<int64_t> sources(static_cast<size_t>(description.to.elements), -1);
  const std::vector<int64_t> slots = slots_of(description.shape, description.to);
  Coordinate source;
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    if (slots[slot] == kNoElement) continue;
    find_coordinate(description.shape, slots[slot], source);
    step_into(description.slice, source);
    sources[slot] = offset_of(source_shape(description), description.from, source);
  }
  return sources;
}

inline std::vector<uint8_t> expected_of(const ReorderDescription& description, const ReorderPlan& plan,
                                        const uint8_t* source) {
  std::vector<uint8_t> expected(static_cast<size_t>(plan.destination_bytes()), 0);
  const std::vector<int64_t> sources = sources_of(description);
  for (size_t slot = 0; slot < sources.size(); ++slot) {
    if (sources[slot] < 0) continue;
    copy_element(source, sources[slot], expected.data(), static_cast<int64_t>(slot),
                 description.element_bits);
  }
  return expected;
}

// The padding of sources of 8- and 16-byte elements, but for the half vector behind an element, which short
// runs read.
inline void poison_holes(const ReorderDescription& description, const Storage& source) {
  static constexpr int64_t kReadBehind = 16;
  const int64_t unit = description.element_bits / 8;
  if (unit < 8) return;
  const std::vector<int64_t> slots = slots_of(source_shape(description), description.from);
  int64_t end_of_read = 0;
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    const int64_t begin = static_cast<int64_t>(slot) * unit;
    if (slots[slot] != kNoElement) end_of_read = begin + kReadBehind;
    if (slots[slot] == kNoElement && begin >= end_of_read) {
      ASAN_POISON_MEMORY_REGION(source.data.get() + begin, static_cast<size_t>(unit));
    }
  }
}

// Larger cases only take longer.
inline bool is_small(const ReorderDescription& description) {
  return description.from.elements <= 20000 && description.to.elements <= 20000;
}

// A description of any element width; two of three are slices.
template <class Random>
ReorderDescription random_description(BasicRandomLayout<Random>& layouts, int round) {
  static constexpr int kBits[] = {4, 8, 16, 32, 64, 128};
  ReorderDescription description;
  description.element_bits = kBits[round % 6];
  description.shape = layouts.shape();
  if (round % 3 > 0) {
    description.slice = layouts.slice(description.shape);
    description.from = layouts.side(description.slice->shape);
  } else {
    description.from = layouts.side(description.shape);
  }
  description.to = layouts.side(description.shape);
  return description;
}

// A plain layout with its axes in this order, outermost first.
inline Side plain_order(const std::vector<int64_t>& shape, const std::vector<int>& axes) {
  Side side;
  side.lower.assign(shape.size(), 0);
  side.upper.assign(shape.size(), 0);
  side.elements = 1;
  Piece piece{0, 0, INT64_MAX, {}};
  for (int axis : axes) {
    const int64_t extent = shape[static_cast<size_t>(axis)];
    piece.digits.push_back({{axis}, extent, 1});
    side.elements *= extent;
  }
  side.pieces.push_back(piece);
  return side;
}

inline Side row_major(const std::vector<int64_t>& shape) {
  std::vector<int> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  return plain_order(shape, axes);
}

// b, y, x, f of a shape b, f, y, x.
inline Side channels_last(const std::vector<int64_t>& shape) { return plain_order(shape, {0, 2, 3, 1}); }

// b_fs_yx_fsv<block> of a shape b, f, y, x.
inline Side feature_blocks(const std::vector<int64_t>& shape, int64_t block) {
  Side side = row_major(shape);
  const int64_t slices = (shape[1] + block - 1) / block;
  side.pieces[0].digits = {
      {{0}, shape[0], 1}, {{1}, slices, block}, {{2}, shape[2], 1}, {{3}, shape[3], 1}, {{1}, block, 1}};
  side.elements = shape[0] * slices * block * shape[2] * shape[3];
  return side;
}

// Weights o, i, y, x whose inputs are blocked twice, around a block of outputs:
// os_is_yx_isa<a>_osv<o>_isv<v>.
inline Side interleaved_blocks(const std::vector<int64_t>& shape, int64_t a, int64_t o, int64_t v) {
  Side side = row_major(shape);
  const int64_t outputs = (shape[0] + o - 1) / o;
  const int64_t inputs = (shape[1] + a * v - 1) / (a * v);
  side.pieces[0].digits = {{{0}, outputs, o}, {{1}, inputs, a * v}, {{2}, shape[2], 1}, {{3}, shape[3], 1},
                           {{1}, a, v},       {{0}, o, 1},          {{1}, v, 1}};
  side.elements = outputs * o * inputs * a * v * shape[2] * shape[3];
  return side;
}

}  // namespace tilework::test
