#include "opencl/kernel_text.h"

#include <algorithm>
#include <string>

#include "error.h"
#include "opencl/cast_text.h"
#include "opencl/slot_digits.h"
#include "opencl/tile_text.h"
#include "reorder/nest_class.h"

namespace tilework::cl {
namespace {

constexpr int kWordBits = 32;

// Of elements in memory; sub-byte ones lie in bytes.
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

// Loads an element of the source, and makes of it what is stored.
std::string element_text(const DeviceMoves& moves, KernelForm form) {
  std::string text = define("SOURCE", element_type(moves.source_bits));
  text += define("ELEMENT", element_type(moves.destination_bits));
  text += define("SOURCE_BITS", moves.source_bits);
  text += define("ELEMENT_BITS", moves.destination_bits);
  if (moves.source_bits < 8) {
    text += R"cl(
#define LOAD(source, at) \
  ((source[(at) * SOURCE_BITS / 8] >> ((uint)(at) * SOURCE_BITS % 8)) & ((1u << SOURCE_BITS) - 1))
)cl";
  } else {
    text += "#define LOAD(source, at) (source[at])\n";
  }
  if (moves.casts.empty()) return text + "#define CONVERT(code) (code)\n";
  if (form == KernelForm::kTable)
    return text + table_cast_text() + "#define CONVERT(code) convert(code, table + 1)\n";
  return text + cast_text(moves.casts) + "#define CONVERT(code) convert(code)\n";
}

// One kernel for all plans: loops, bounds and lookups are read from `table`, as add_nest wrote them.
constexpr const char* kTablePlace = R"cl(
typedef ulong INDEX;
typedef long OFFSET;
typedef long ENTRY;

#define HOLE (-1)
#define NO_OFFSET (LONG_MIN + 1)
#define MOST_VARIABLES 16

// The offset in the source, or a negative number for a slot without an element.
long place_in(ulong slot, __global const long* table) {
  const long digits = table[1];
  const long variables = table[2];
  const long lookups = table[3];
  if (table[4] != 0) return HOLE;
  long source = table[5];
  long rest = (long)slot - table[6];
  if (rest < 0) return HOLE;
  long index[MOST_VARIABLES];
  long looked_up[MOST_VARIABLES];
  for (long i = 0; i < variables; ++i) index[i] = 0;
  for (long i = 0; i < lookups; ++i) looked_up[i] = 0;
  __global const long* at = table + 7;
  for (long i = 0; i < digits; ++i) {
    const long value = rest / at[0];
    if (value >= at[2]) return HOLE;
    rest -= value * at[0];
    long left = value + at[1];
    const long loops = at[3];
    at += 4;
    for (long k = 0; k < loops; ++k, at += 6) {
      const long pass = left / at[0];
      left -= pass * at[0];
      source += pass * at[1];
      if (at[2] >= 0) index[at[2]] += pass * at[3];
      if (at[4] >= 0) looked_up[at[4]] += pass * at[5];
    }
  }
  if (rest != 0) return HOLE;
  for (long i = 0; i < variables; ++i, at += 2) {
    if (index[i] < at[0] || index[i] >= at[1]) return HOLE;
  }
  for (long i = 0; i < lookups; ++i, ++at) {
    const long offset = at[looked_up[i] + at[0]];
    if (offset <= NO_OFFSET) return HOLE;
    source += offset;
  }
  return source;
}

long place(ulong slot, __global const long* table) {
  for (table += table[0]; table[0] != 0; table += table[0]) {
    const long source = place_in(slot, table);
    if (source >= 0) return source;
  }
  return HOLE;
}
)cl";

constexpr size_t kMostTableVariables = 16;

// The entries of a lookup that the loops of a nest reach.
int64_t entries_of(const LoopNest& nest, size_t lookup) {
  int64_t entries = 1;
  for (const Node& node : nest.nodes) {
    if (node.lookup == static_cast<int>(lookup)) entries += (node.count - 1) * node.lookup_stride;
  }
  return entries;
}

// Appends a lookup's table. Offsets may be negative, as they are added to others; kHole and kSkip, which are
// the two smallest numbers, stand for no element.
void add_lookup(std::vector<int64_t>& table, const LoopNest& nest, size_t number) {
  const Lookup& lookup = nest.lookups[number];
  const int64_t entries = entries_of(nest, number);
  if (entries > kMostTableEntries - static_cast<int64_t>(table.size())) {
    throw Error("ERR_LIMIT", "The layouts do not divide each other, and a table of their " +
                                 std::to_string(entries) + " offsets is more than the " +
                                 std::to_string(kMostTableEntries) +
                                 " that are made for a device; leave the device out for it.");
  }
  for (int64_t i = 0; i < entries; ++i) table.push_back(lookup.at(i));
}

// A slot has an element where its index lies in both bounds: what is not written by this nest has another.
std::pair<int64_t, int64_t> bounds_of(const Variable& variable) {
  return {std::max(variable.write_lo, variable.valid_lo), std::min(variable.write_hi, variable.valid_hi)};
}

// Size, numbers of digits, variables and lookups, whether all is zero, bases, digits with their loops,
// bounds, then for each lookup how far behind this entry its table begins, then the tables.
void add_nest(std::vector<int64_t>& table, const LoopNest& nest) {
  const size_t start = table.size();
  const auto count = [](size_t size) { return static_cast<int64_t>(size); };
  const SlotDigits slots = slot_digits(nest);
  table.insert(table.end(),
               {0, count(slots.digits.size()), count(nest.variables.size()), count(nest.lookups.size()),
                nest.all_zero ? 1 : 0, nest.source_base, slots.base});
  for (const SlotDigit& digit : slots.digits) {
    table.insert(table.end(), {digit.stride, digit.first, digit.count, count(digit.loops.size())});
    for (const auto& [number, weight] : digit.loops) {
      const Node& node = nest.nodes[number];
      table.insert(table.end(),
                   {weight, node.source_stride, node.variable, node.weight, node.lookup, node.lookup_stride});
    }
  }
  for (const Variable& variable : nest.variables) {
    const auto [lo, hi] = bounds_of(variable);
    table.insert(table.end(), {lo, hi});
  }
  const size_t places = table.size();
  table.resize(places + nest.lookups.size());
  for (size_t i = 0; i < nest.lookups.size(); ++i) {
    table[places + i] = count(table.size() - (places + i));
    add_lookup(table, nest, i);
  }
  table[start] = count(table.size() - start);
}

bool fits_table(const DeviceMoves& moves) {
  return std::all_of(moves.nests.begin(), moves.nests.end(), [](const LoopNest& nest) {
    return nest.variables.size() <= kMostTableVariables && nest.lookups.size() <= kMostTableVariables;
  });
}

// Adds `pass * factor` to a sum.
void add_term(std::string& sum, size_t node, int64_t factor) {
  if (factor == 0) return;
  sum += " + (OFFSET)p" + std::to_string(node) + " * " + std::to_string(factor);
}

std::string number(int64_t value) { return std::to_string(value); }

// Declares the passes of the loops over a digit.
std::string digit_text(const SlotDigit& digit, size_t which) {
  const std::string name = "q" + std::to_string(which);
  std::string text = "    const INDEX " + name + " = rest / " + number(digit.stride) + ";\n    if (" + name +
                     " >= " + number(digit.count) + ") break;\n    rest -= " + name + " * " +
                     number(digit.stride) + ";\n";
  std::string left = digit.first == 0 ? name : "(" + name + " + " + number(digit.first) + ")";
  for (const auto& [loop, weight] : digit.loops) {
    const std::string pass = "p" + std::to_string(loop);
    text += "    const INDEX " + pass + " = " + left + (weight == 1 ? "" : " / " + number(weight)) + ";\n";
    left = "(" + left + " % " + number(weight) + ")";
  }
  return text;
}

// The nest as straight code; see kTablePlace for what it does.
std::string nest_text(const LoopNest& nest, std::vector<int64_t>& table) {
  const SlotDigits slots = slot_digits(nest);
  std::string text = "  do {\n";
  if (slots.base > 0) text += "    if (slot < " + number(slots.base) + ") break;\n";
  text += "    INDEX rest = slot - " + number(slots.base) + ";\n";
  for (size_t i = 0; i < slots.digits.size(); ++i) text += digit_text(slots.digits[i], i);
  std::string source = number(nest.source_base);
  std::vector<std::string> index(nest.variables.size(), "0");
  std::vector<std::string> looked_up(nest.lookups.size(), "0");
  for (size_t i = 0; i < nest.nodes.size(); ++i) {
    const Node& node = nest.nodes[i];
    add_term(source, i, node.source_stride);
    if (node.variable != kNone) add_term(index[node.variable], i, node.weight);
    if (node.lookup != kNone) add_term(looked_up[node.lookup], i, node.lookup_stride);
  }
  text += "    if (rest != 0) break;\n";
  for (size_t i = 0; i < nest.variables.size(); ++i) {
    const auto [lo, hi] = bounds_of(nest.variables[i]);
    const std::string name = "v" + std::to_string(i);
    text += "    const OFFSET " + name + " = " + index[i] + ";\n    if (" + name + " < " +
            std::to_string(lo) + " || " + name + " >= " + std::to_string(hi) + ") break;\n";
  }
  for (size_t i = 0; i < nest.lookups.size(); ++i) {
    const std::string name = "o" + std::to_string(i);
    text += "    const ENTRY " + name + " = table[" + std::to_string(table.size()) + " + " + looked_up[i] +
            "];\n    if (" + name + " <= NO_OFFSET) break;\n";
    source += " + (OFFSET)" + name;
    add_lookup(table, nest, i);
  }
  return text + "    return " + source + ";\n  } while (0);\n";
}

// 32 bits are enough where neither side nor any sum on the way has 2^31 elements.
bool is_narrow(const DeviceMoves& moves) {
  constexpr int64_t kMost = INT32_MAX / 4;
  if (moves.source_elements > kMost || moves.destination_elements > kMost) return false;
  return std::all_of(moves.nests.begin(), moves.nests.end(), [](const LoopNest& nest) {
    int64_t reach = nest.destination_base + std::abs(nest.source_base);
    for (const Node& node : nest.nodes) {
      const int64_t most = std::max({std::abs(node.source_stride), node.destination_stride,
                                     node.variable == kNone ? 0 : node.weight, node.lookup_stride});
      if (most > kMost || node.count > kMost || reach > kMost) return false;
      reach += (node.count - 1) * most;
    }
    return reach <= kMost;
  });
}

std::string literal_place(const DeviceMoves& moves, std::vector<int64_t>& table) {
  std::string text = is_narrow(moves) ? "typedef uint INDEX;\ntypedef int OFFSET;\n"
                                      : "typedef ulong INDEX;\ntypedef long OFFSET;\n";
  text += "typedef long ENTRY;\n#define HOLE (-1)\n#define NO_OFFSET (LONG_MIN + 1)\n\n";
  text += "OFFSET place(INDEX slot, __global const ENTRY* table) {\n";
  for (const LoopNest& nest : moves.nests) {
    if (!nest.all_zero) text += nest_text(nest, table);
  }
  return text + "  return HOLE;\n}\n";
}

// Elements of a word that the destination does not reach are left out; where words are larger than elements,
// only whole ones are stored as such. Elements whose source lies outside the window that is there are left
// zero, for another run that adds them.
constexpr const char* kWordKernel = R"cl(
__kernel void reorder(__global const SOURCE* restrict source, __global ELEMENT* restrict destination,
                      __global const ENTRY* restrict table, const ulong first, const ulong last,
                      const long window_first, const long window_last, const uint adds) {
  const ulong at = get_global_id(0) * PER_WORD;
  if (first + at >= last) return;
  WORD word = 0;
  for (uint i = 0; i < PER_WORD; ++i) {
    if (first + at + i >= last) break;
    const long from = place((INDEX)(first + at + i), table);
    if (from < window_first || from >= window_last) continue;
    const WORD element = (WORD)CONVERT(LOAD(source, from - window_first));
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
  // Single bytes of elements where the loops are in a table: nothing is gained by larger words there.
  const int word_bits = bits < 8 ? 8 : result.form == KernelForm::kTable ? bits : std::max(bits, kWordBits);
  result.elements_per_word = word_bits / bits;
  result.word_bytes = word_bits / 8;
  return define("WORD", element_type(word_bits)) + define("WORD_BITS", word_bits) +
         define("PER_WORD", result.elements_per_word) + kWordKernel;
}

const char* shape_of(const DeviceMoves& moves) {
  if (moves.source_bits < 8) return "nibbles";
  if (moves.nests.empty()) return "zeros";
  const InnerLoops inner = inner_loops(moves.nests.front());
  if (inner.nest_class == NestClass::kRuns || moves.nests.front().nodes.back().source_stride == 1)
    return "runs";
  if (inner.nest_class != NestClass::kTiles) return "gather";
  return inner.chain == InnerLoops::Chain::kInterleaved ? "interleave" : "transpose";
}

}  // namespace

KernelForm form_of(const DeviceMoves& moves) {
  return can_tile(moves) ? KernelForm::kTiles : KernelForm::kWords;
}

KernelText kernel_text(const DeviceMoves& moves, KernelForm form) {
  KernelText result;
  result.form = form == KernelForm::kTable && !fits_table(moves) ? KernelForm::kWords : form;
  result.shape = shape_of(moves);
  result.source = element_text(moves, result.form);
  if (result.form == KernelForm::kTiles) {
    result.source += tile_text(moves, is_narrow(moves), result);
  } else if (result.form == KernelForm::kWords) {
    result.source += literal_place(moves, result.table) + word_text(moves, result);
  } else {
    // How far behind this entry the nests begin, then the casts.
    result.table.push_back(1);
    if (!moves.casts.empty()) add_casts(result.table, moves.casts);
    result.table.front() = static_cast<int64_t>(result.table.size());
    for (const LoopNest& nest : moves.nests) add_nest(result.table, nest);
    result.source += kTablePlace + word_text(moves, result);
  }
  // The end of the list of nests; a buffer needs an entry in any case.
  result.table.push_back(0);
  return result;
}

}  // namespace tilework::cl
