// What becomes of an element on its way, as OpenCL C: casts and scalings, one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dtype/cast_chain.h"

namespace tilework::cl {

// Whether 32 bits are enough to find the parameters of all scalings, and whether these fit a table.
bool is_narrow(std::span<const ElementStep> steps);
bool fits_table(std::span<const ElementStep> steps);

// Defines CONVERT(code, slot), which is what goes to a slot of the destination. Parameters of scalings are
// appended to `table`, from the beginning of which the kernel reads them. Errors: ERR_UNSUPPORTED for complex
// types, ERR_LIMIT for too many parameters.
std::string literal_steps_text(std::span<const ElementStep> steps, std::vector<int64_t>& table);

// The same for any steps, which are read from a table. Needs table_place_text.
std::string table_steps_text(std::span<const ElementStep> steps);
// Appends the steps for it to an empty table, with the place behind them in its first entry. Errors: as
// above.
void add_steps(std::vector<int64_t>& table, std::span<const ElementStep> steps);

}  // namespace tilework::cl
