// The block types of quantized tensors: a block is a fixed number of consecutive elements and the scales that
// they share. lib/dtype/block_type_table.ts has the table and its sources.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tilework {

enum class BlockType : uint8_t {
#define TILEWORK_BLOCK_TYPE(enumerator, name, elements, bytes) enumerator,
#include "facts/block_types.def"
#undef TILEWORK_BLOCK_TYPE
};

struct BlockTypeInfo {
  BlockType type;
  const char* name;
  // Of one block.
  int64_t elements;
  int64_t bytes;
};

inline constexpr BlockTypeInfo kBlockTypes[] = {
#define TILEWORK_BLOCK_TYPE(enumerator, name, elements, bytes) {BlockType::enumerator, name, elements, bytes},
#include "facts/block_types.def"
#undef TILEWORK_BLOCK_TYPE
};

// Most elements that a block of any type has.
inline constexpr int64_t kMaxBlockElements = 256;

constexpr const BlockTypeInfo& info_of(BlockType type) { return kBlockTypes[static_cast<uint8_t>(type)]; }

// Absent for an unknown name.
constexpr std::optional<BlockType> block_type_named(std::string_view name) {
  for (const BlockTypeInfo& info : kBlockTypes) {
    if (info.name == name) return info.type;
  }
  return std::nullopt;
}

}  // namespace tilework
