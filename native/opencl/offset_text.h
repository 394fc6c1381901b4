// Computes source offsets in OpenCL C: from a slot of the destination to the iterations of all loops of a
// nest, and from these to a source offset, or to none. Loops are literals, or entries of a table that one
// text for all plans interprets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/join.h"

namespace tilework::cl {

// Most entries in the table of a plan, 128 MiB, including lookups that the CPU computes.
inline constexpr int64_t kMaxDeviceTableEntries = int64_t{1} << 24;

// Whether 32 bits suffice for every slot, offset and intermediate sum.
bool is_narrow(const std::vector<LoopNest>& nests);

// Defines INDEX and OFFSET, the types of slots and offsets, and HOLE, a value that is not an offset.
std::string index_text(bool is_narrow);

// Defines `OFFSET source_offset(INDEX slot, __global const long* table)`; the nests are at the start of
// `table`.
std::string table_offset_text();
bool fits_table(const std::vector<LoopNest>& nests);
// Appends the nests for table_offset_text, and their terminator. Errors: ERR_LIMIT for too many entries.
void add_nests(std::vector<int64_t>& table, const std::vector<LoopNest>& nests);

// Defines the same function for these nests alone, under a given name. Lookups are appended to `table`, whose
// start is passed to the function. Errors: as add_nests.
std::string literal_offset_text(const std::string& name, const std::vector<LoopNest>& nests,
                                std::vector<int64_t>& table);

}  // namespace tilework::cl
