// Where an element comes from, as OpenCL C: from a slot of the destination to the passes of all loops of a
// nest, and from these to an offset in the source, or to none. Loops are literals, or stand in a table that
// one text for all plans walks through.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/join.h"

namespace tilework::cl {

// The table of a plan has no more entries, lookups that are arithmetic on the CPU included: 128 MiB.
inline constexpr int64_t kMostTableEntries = int64_t{1} << 24;

// Whether 32 bits are enough for every slot, offset and sum on the way.
bool is_narrow(const std::vector<LoopNest>& nests);

// Defines INDEX and OFFSET, which are what slots and offsets are counted in, and HOLE, which is no offset.
std::string index_text(bool is_narrow);

// Defines `OFFSET place(INDEX slot, __global const long* table)`, with the nests at the beginning of `table`.
std::string table_place_text();
bool fits_table(const std::vector<LoopNest>& nests);
// Appends the nests for it, and the end of their list. Errors: ERR_LIMIT for too many entries.
void add_nests(std::vector<int64_t>& table, const std::vector<LoopNest>& nests);

// Defines the same under a name of the caller's, for these nests alone; their lookups are appended to
// `table`, from the beginning of which they are read. Errors: as add_nests.
std::string literal_place_text(const std::string& name, const std::vector<LoopNest>& nests,
                               std::vector<int64_t>& table);

}  // namespace tilework::cl
