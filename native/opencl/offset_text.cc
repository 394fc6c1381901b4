#include "opencl/offset_text.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "error.h"
#include "opencl/slot_digits.h"

namespace tilework::cl {
namespace {

// Reads loops, bounds and lookups from `table`, in the format of add_nest.
constexpr const char* kTableOffset = R"cl(
#define MOST_VARIABLES 16

// Source offset, or a negative number for a slot without an element.
long offset_in_nest(ulong slot, __global const long* table) {
  const long digits = table[1];
  const long variables = table[2];
  const long lookups = table[3];
  if (table[4] != 0) return HOLE;
  long source = table[5];
  long remainder = (long)slot - table[6];
  if (remainder < 0) return HOLE;
  long index[MOST_VARIABLES];
  long looked_up[MOST_VARIABLES];
  for (long i = 0; i < variables; ++i) index[i] = 0;
  for (long i = 0; i < lookups; ++i) looked_up[i] = 0;
  __global const long* at = table + 7;
  for (long i = 0; i < digits; ++i) {
    const long value = remainder / at[0];
    if (value >= at[2]) return HOLE;
    remainder -= value * at[0];
    long left = value + at[1];
    const long loops = at[3];
    at += 4;
    for (long k = 0; k < loops; ++k, at += 6) {
      const long iteration = left / at[0];
      left -= iteration * at[0];
      source += iteration * at[1];
      if (at[2] >= 0) index[at[2]] += iteration * at[3];
      if (at[4] >= 0) looked_up[at[4]] += iteration * at[5];
    }
  }
  if (remainder != 0) return HOLE;
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

long source_offset(ulong slot, __global const long* table) {
  for (; table[0] != 0; table += table[0]) {
    const long source = offset_in_nest(slot, table);
    if (source >= 0) return source;
  }
  return HOLE;
}
)cl";

constexpr size_t kMaxTableVariables = 16;

// Number of lookup entries that the loops of a nest reach.
int64_t entries_of(const LoopNest& nest, size_t lookup) {
  int64_t entries = 1;
  for (const Node& node : nest.nodes) {
    if (node.lookup == static_cast<int>(lookup)) entries += (node.count - 1) * node.lookup_stride;
  }
  return entries;
}

// Appends a lookup's table. Offsets may be negative, since they are added to others; the two smallest
// numbers, kHole and kSkip, mean no element.
void add_lookup(std::vector<int64_t>& table, const LoopNest& nest, size_t number) {
  const Lookup& lookup = nest.lookups[number];
  const int64_t entries = entries_of(nest, number);
  if (entries > kMaxDeviceTableEntries - static_cast<int64_t>(table.size())) {
    throw Error(ErrorCode::kLimit, "The layouts need a lookup table of " + std::to_string(entries) +
                                       " offsets; a device takes at most " +
                                       std::to_string(kMaxDeviceTableEntries) +
                                       "; reorder on the CPU instead.");
  }
  for (int64_t i = 0; i < entries; ++i) table.push_back(lookup.at(i));
}

// A slot has an element if its index lies in both bounds; slots outside the write bounds belong to another
// nest.
std::pair<int64_t, int64_t> bounds_of(const Variable& variable) {
  return {std::max(variable.write_lo, variable.valid_lo), std::min(variable.write_hi, variable.valid_hi)};
}

// Format: size; counts of digits, variables and lookups; whether all is zero; bases; digits with their loops;
// bounds; for each lookup the distance from this entry to its table; the tables.
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
  const size_t offsets = table.size();
  table.resize(offsets + nest.lookups.size());
  for (size_t i = 0; i < nest.lookups.size(); ++i) {
    table[offsets + i] = count(table.size() - (offsets + i));
    add_lookup(table, nest, i);
  }
  table[start] = count(table.size() - start);
}

// Adds `iteration * factor` to a sum.
void add_term(std::string& sum, size_t node, int64_t factor) {
  if (factor == 0) return;
  sum += " + (OFFSET)p" + std::to_string(node) + " * " + std::to_string(factor);
}

// Declares the iterations of the loops over a digit.
std::string digit_text(const SlotDigit& digit, size_t which) {
  const std::string name = "q" + std::to_string(which);
  std::string text = "    const INDEX " + name + " = remainder / " + std::to_string(digit.stride) +
                     ";\n    if (" + name + " >= " + std::to_string(digit.count) +
                     ") break;\n    remainder -= " + name + " * " + std::to_string(digit.stride) + ";\n";
  std::string left = digit.first == 0 ? name : "(" + name + " + " + std::to_string(digit.first) + ")";
  for (const auto& [loop, weight] : digit.loops) {
    const std::string iteration = "p" + std::to_string(loop);
    text += "    const INDEX " + iteration + " = " + left +
            (weight == 1 ? "" : " / " + std::to_string(weight)) + ";\n";
    left = "(" + left + " % " + std::to_string(weight) + ")";
  }
  return text;
}

// The nest as straight-line code; kTableOffset explains the steps.
std::string nest_text(const LoopNest& nest, std::vector<int64_t>& table) {
  const SlotDigits slots = slot_digits(nest);
  std::string text = "  do {\n";
  if (slots.base > 0) text += "    if (slot < " + std::to_string(slots.base) + ") break;\n";
  text += "    INDEX remainder = slot - " + std::to_string(slots.base) + ";\n";
  for (size_t i = 0; i < slots.digits.size(); ++i) text += digit_text(slots.digits[i], i);
  std::string source = std::to_string(nest.source_base);
  std::vector<std::string> index(nest.variables.size(), "0");
  std::vector<std::string> looked_up(nest.lookups.size(), "0");
  for (size_t i = 0; i < nest.nodes.size(); ++i) {
    const Node& node = nest.nodes[i];
    add_term(source, i, node.source_stride);
    if (node.variable != kNone) add_term(index[node.variable], i, node.weight);
    if (node.lookup != kNone) add_term(looked_up[node.lookup], i, node.lookup_stride);
  }
  text += "    if (remainder != 0) break;\n";
  for (size_t i = 0; i < nest.variables.size(); ++i) {
    const auto [lo, hi] = bounds_of(nest.variables[i]);
    const std::string name = "v" + std::to_string(i);
    text += "    const OFFSET " + name + " = " + index[i] + ";\n    if (" + name + " < " +
            std::to_string(lo) + " || " + name + " >= " + std::to_string(hi) + ") break;\n";
  }
  for (size_t i = 0; i < nest.lookups.size(); ++i) {
    const std::string name = "o" + std::to_string(i);
    text += "    const long " + name + " = table[" + std::to_string(table.size()) + " + " + looked_up[i] +
            "];\n    if (" + name + " <= NO_OFFSET) break;\n";
    source += " + (OFFSET)" + name;
    add_lookup(table, nest, i);
  }
  return text + "    return " + source + ";\n  } while (0);\n";
}

}  // namespace

bool is_narrow(const std::vector<LoopNest>& nests) {
  constexpr int64_t kMaxTerm = INT32_MAX / 4;
  return std::all_of(nests.begin(), nests.end(), [](const LoopNest& nest) {
    int64_t reach = nest.destination_base + std::abs(nest.source_base);
    for (const Node& node : nest.nodes) {
      const int64_t max_stride = std::max({std::abs(node.source_stride), node.destination_stride,
                                           node.variable == kNone ? 0 : node.weight, node.lookup_stride});
      if (max_stride > kMaxTerm || node.count > kMaxTerm || reach > kMaxTerm) return false;
      reach += (node.count - 1) * max_stride;
    }
    return reach <= kMaxTerm;
  });
}

std::string index_text(bool is_narrow) {
  const std::string types = is_narrow ? "typedef uint INDEX;\ntypedef int OFFSET;\n"
                                      : "typedef ulong INDEX;\ntypedef long OFFSET;\n";
  return types + "#define HOLE (-1)\n#define NO_OFFSET (LONG_MIN + 1)\n";
}

std::string table_offset_text() { return kTableOffset; }

bool fits_table(const std::vector<LoopNest>& nests) {
  return std::all_of(nests.begin(), nests.end(), [](const LoopNest& nest) {
    return nest.variables.size() <= kMaxTableVariables && nest.lookups.size() <= kMaxTableVariables;
  });
}

void add_nests(std::vector<int64_t>& table, const std::vector<LoopNest>& nests) {
  for (const LoopNest& nest : nests) add_nest(table, nest);
  table.push_back(0);
}

std::string literal_offset_text(const std::string& name, const std::vector<LoopNest>& nests,
                                std::vector<int64_t>& table) {
  std::string text = "\nOFFSET " + name + "(INDEX slot, __global const long* table) {\n";
  for (const LoopNest& nest : nests) {
    if (!nest.all_zero) text += nest_text(nest, table);
  }
  return text + "  return HOLE;\n}\n";
}

}  // namespace tilework::cl
