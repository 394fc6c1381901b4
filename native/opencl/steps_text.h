// Element conversions as OpenCL C: casts and scalings in sequence.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dtype/cast_chain.h"

namespace tilework::cl {

// Whether 32 bits suffice to index the parameters of all scalings, and the parameters fit a table.
bool is_narrow(std::span<const ElementStep> steps);
bool fits_table(std::span<const ElementStep> steps);

// Defines CONVERT(code, slot), the converted code for a slot of the destination. Parameters of scalings are
// appended to `table`, which the kernel reads from its start. Errors: ERR_UNSUPPORTED for complex types,
// ERR_LIMIT for too many parameters.
std::string literal_steps_text(std::span<const ElementStep> steps, std::vector<int64_t>& table);

// The same for any steps, read from a table. Needs table_offset_text.
std::string table_steps_text(std::span<const ElementStep> steps);
// Appends the steps for table_steps_text to an empty table; the first entry is the offset behind them.
// Errors: as literal_steps_text.
void add_steps(std::vector<int64_t>& table, std::span<const ElementStep> steps);

}  // namespace tilework::cl
