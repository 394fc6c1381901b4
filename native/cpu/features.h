// What this CPU can do, probed once; kernels are chosen by it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilework {

// "x64", "arm64", or "unknown".
const char* cpu_architecture();

// Names of the instruction sets that kernels may use here, in ascending order of width.
const std::vector<std::string>& cpu_features();
bool cpu_has(std::string_view feature);

}  // namespace tilework
