#include "opencl/kernel_text.h"

#include <algorithm>
#include <string>

#include "opencl/offset_text.h"
#include "opencl/steps_text.h"
#include "opencl/tile_text.h"

namespace tilework::cl {
namespace {

constexpr int kWordBits = 32;

// Type of elements in memory; sub-byte elements are read as bytes.
const char* element_type(int bits) {
  switch (bits) {
    case 16:
      return "ushort";
    case 32:
      return "uint";
    case 64:
      return "ulong";
    case 128:
      return "ulong2";
    default:
      return "uchar";
  }
}

std::string define(const char* name, const std::string& value) {
  return std::string("#define ") + name + " " + value + "\n";
}

std::string define(const char* name, int64_t value) { return define(name, std::to_string(value)); }

// Text that loads a source element.
std::string element_text(const DeviceMoves& moves) {
  std::string text = define("SOURCE", element_type(moves.source_bits));
  text += define("ELEMENT", element_type(moves.destination_bits));
  text += define("SOURCE_BITS", moves.source_bits);
  text += define("ELEMENT_BITS", moves.destination_bits);
  if (moves.source_bits >= 8) return text + "#define LOAD(source, at) (source[at])\n";
  return text + R"cl(
#define LOAD(source, at) \
  ((source[(at) * SOURCE_BITS / 8] >> ((uint)(at) * SOURCE_BITS % 8)) & ((1u << SOURCE_BITS) - 1))
)cl";
}

// Elements past the end of the destination are not stored; where words are larger than elements, only whole
// words are stored as such. Elements with a source outside the current window stay zero, and another run adds
// them.
constexpr const char* kWordKernel = R"cl(
__kernel void reorder(__global const SOURCE* restrict source, __global ELEMENT* restrict destination,
                      __global const long* restrict table, const ulong first, const ulong last,
                      const long window_first, const long window_last, const uint adds) {
  const ulong at = (ulong)get_global_id(0) * PER_WORD;
  if (first + at >= last) return;
  WORD word = 0;
  for (uint i = 0; i < PER_WORD; ++i) {
    if (first + at + i >= last) break;
    const INDEX slot = (INDEX)(first + at + i);
    const long from = source_offset(slot, NESTS);
    if (from < window_first || from >= window_last) continue;
    const WORD element = (WORD)CONVERT(LOAD(source, from - window_first), slot);
    word |= element << (WORD)(i * ELEMENT_BITS % WORD_BITS);
  }
#if WORD_BITS == ELEMENT_BITS || ELEMENT_BITS < 8
  __global WORD* to = (__global WORD*)destination + at / PER_WORD;
  *to = adds ? *to | word : word;
#else
  if (first + at + PER_WORD <= last) {
    __global WORD* to = (__global WORD*)(destination + at);
    *to = adds ? *to | word : word;
    return;
  }
  for (uint i = 0; first + at + i < last; ++i) {
    const ELEMENT element = (ELEMENT)(word >> (i * ELEMENT_BITS));
    destination[at + i] = adds ? destination[at + i] | element : element;
  }
#endif
}
)cl";

std::string word_text(const DeviceMoves& moves, KernelText& result) {
  const int bits = moves.destination_bits;
  // Table-driven kernels write single bytes: larger words gain nothing there.
  const int word_bits = bits < 8 ? 8 : result.form == KernelForm::kTable ? bits : std::max(bits, kWordBits);
  result.elements_per_word = word_bits / bits;
  result.word_bytes = word_bits / 8;
  const bool has_table = result.form == KernelForm::kTable;
  return define("NESTS", has_table ? "(table + table[0])" : "table") +
         define("WORD", element_type(word_bits)) + define("WORD_BITS", word_bits) +
         define("PER_WORD", result.elements_per_word) + kWordKernel;
}

const char* shape_of(const DeviceMoves& moves) {
  if (moves.source_bits < 8) return "nibbles";
  if (moves.nests.empty()) return "zeros";
  const std::vector<Node>& nodes = moves.nests.front().nodes;
  if (nodes.back().source_stride == 1) return "runs";
  const bool has_rows = std::ranges::any_of(
      nodes, [](const Node& node) { return std::abs(node.source_stride) == 1 && node.lookup == kNone; });
  return has_rows ? "transpose" : "gather";
}

}  // namespace

KernelForm form_of(const DeviceMoves& moves) {
  return can_tile(moves) ? KernelForm::kTiles : KernelForm::kWords;
}

KernelText kernel_text(const DeviceMoves& moves, KernelForm form) {
  KernelText result;
  const bool fits = fits_table(moves.nests) && fits_table(moves.steps);
  result.form = form == KernelForm::kTable && !fits ? KernelForm::kWords : form;
  result.shape = shape_of(moves);
  result.source = element_text(moves);
  if (result.form == KernelForm::kTable) {
    result.source += index_text(false) + table_offset_text() + table_steps_text(moves.steps);
    add_steps(result.table, moves.steps);
    add_nests(result.table, moves.nests);
    result.source += word_text(moves, result);
    return result;
  }
  const bool narrow = is_narrow(moves.nests) && is_narrow(moves.steps);
  result.source += index_text(narrow) + literal_steps_text(moves.steps, result.table);
  if (result.form == KernelForm::kTiles) {
    result.source += tile_text(moves, result);
  } else {
    result.source +=
        literal_offset_text("source_offset", moves.nests, result.table) + word_text(moves, result);
  }
  // A buffer needs at least one entry.
  if (result.table.empty()) result.table.push_back(0);
  return result;
}

}  // namespace tilework::cl
