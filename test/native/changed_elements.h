// Changes of elements: random casts and scalings, and what they make of one element by the reference casts
// and the oracle of scalings.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "packed_elements.h"
#include "reorder/cast/fused_cast.h"
#include "reorder_case.h"
#include "scaling_oracle.h"

namespace tilework::test {

using Changes = std::vector<ElementChange>;

inline Dtype from_of(const ElementChange& change) {
  if (const auto* cast = std::get_if<Cast>(&change)) return cast->from();
  return std::get<ScalingDescription>(change).from;
}

inline Dtype to_of(const ElementChange& change) {
  if (const auto* cast = std::get_if<Cast>(&change)) return cast->to();
  return std::get<ScalingDescription>(change).to;
}

inline std::string text(const Changes& changes) {
  std::string names = std::string(info_of(from_of(changes.front())).name);
  for (const ElementChange& change : changes) {
    names += std::get_if<Cast>(&change) != nullptr ? " -> " : " scaled ";
    names += std::string(info_of(to_of(change)).name);
  }
  return names;
}

inline uint64_t element(const uint8_t* bytes, int bits, int64_t index) {
  if (bits < 8) return packed_element(bytes, bits, index);
  uint64_t code = 0;
  std::memcpy(&code, bytes + index * (bits / 8), static_cast<size_t>(std::min(bits, 64) / 8));
  return code;
}

// Scaling entry of an element, by its row-major index in the whole source.
inline size_t entry_of(const ScalingDescription& scaling, const std::vector<int64_t>& shape, int64_t index) {
  if (scaling.scales.size() == 1) return 0;
  int64_t entry = 0;
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    entry += index % shape[axis] / scaling.blocks[axis] * stride;
    stride *= (shape[axis] + scaling.blocks[axis] - 1) / scaling.blocks[axis];
    index /= shape[axis];
  }
  return static_cast<size_t>(entry);
}

// Slot and row-major index of a source element.
struct SourceElement {
  int64_t slot;
  int64_t index;
};

// Low bytes of an element; a fixed array, since every element needs one.
using ElementBytes = std::array<uint8_t, 16>;

// Applies all changes to a source element.
inline ElementBytes change_element(const ReorderDescription& description, const uint8_t* source,
                                   SourceElement at) {
  const int bits = info_of(from_of(description.casts.front())).bits;
  ElementBytes bytes{};
  if (bits == 128) {
    std::memcpy(bytes.data(), source + at.slot * 16, 16);
  } else {
    const uint64_t code = element(source, bits, at.slot);
    std::memcpy(bytes.data(), &code, sizeof(code));
  }
  for (const ElementChange& change : description.casts) {
    ElementBytes next{};
    if (const auto* cast = std::get_if<Cast>(&change)) {
      cast_reference({bytes.data(), next.data(), 1, cast->from(), cast->to(), cast->options()});
    } else {
      const auto& scaling = std::get<ScalingDescription>(change);
      uint64_t code = 0;
      std::memcpy(&code, bytes.data(), sizeof(code));
      code = scaled_code(scaling, entry_of(scaling, source_shape(description), at.index), code);
      std::memcpy(next.data(), &code, sizeof(code));
    }
    bytes = next;
  }
  return bytes;
}

// Blocks along none, some or all axes, with integer offsets that every code type has.
inline ScalingDescription random_scaling(ScalingKind kind, Dtype from, Dtype to,
                                         const std::vector<int64_t>& shape, RandomLayout& layouts) {
  ScalingDescription scaling;
  scaling.kind = kind;
  scaling.from = from;
  scaling.to = to;
  if (layouts.below(4) == 0) scaling.rules = QuantizeRules::kTmfile;
  int64_t entries = 1;
  for (const int64_t extent : shape) {
    const int64_t most = std::max<int64_t>(extent, 1);
    const int64_t block = layouts.below(2) == 0 ? most : 1 + layouts.below(most);
    scaling.blocks.push_back(block);
    entries *= (most + block - 1) / block;
  }
  const bool is_float_code = kind == ScalingKind::kQuantize && is_float(to);
  const bool adds = layouts.below(4) != 0 && !is_float_code;
  for (int64_t i = 0; i < entries; ++i) {
    scaling.scales.push_back(static_cast<double>(1 + layouts.below(1000)) / 64);
    scaling.offsets.push_back(adds ? static_cast<double>(layouts.below(2)) : 0);
  }
  return scaling;
}

// One to three changes, starting with an element of the description's width.
inline Changes random_changes(const ReorderDescription& description, RandomLayout& layouts) {
  const auto types = dtypes();
  const auto random_type = [&] {
    return types[static_cast<size_t>(layouts.below(static_cast<int64_t>(types.size())))].dtype;
  };
  Changes changes;
  Dtype from = random_type();
  while (info_of(from).bits != description.element_bits) from = random_type();
  for (int64_t count = 1 + layouts.below(4) / 3; count > 0;) {
    const Dtype to = random_type();
    if (is_complex(from) && !is_complex(to)) continue;
    const auto kind = static_cast<ScalingKind>(layouts.below(3));
    if (layouts.below(2) == 0 && may_scale(kind, from, to)) {
      changes.emplace_back(random_scaling(kind, from, to, source_shape(description), layouts));
    } else {
      CastOptions options;
      options.saturate = layouts.below(2) == 0;
      if (layouts.below(2) == 0) options.mode = CastMode::kOnnx;
      changes.emplace_back(Cast(from, to, options));
    }
    from = to;
    --count;
  }
  return changes;
}

}  // namespace tilework::test
