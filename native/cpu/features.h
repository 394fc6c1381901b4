// Features of this CPU, probed once. Which kernels they allow is decided in cpu/isa.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilework {

// "x64", "arm64", or "unknown".
const char* cpu_architecture();

// Names of the instruction sets that this CPU and its operating system support, in ascending order of width.
const std::vector<std::string>& cpu_features();
bool cpu_has(std::string_view feature);

}  // namespace tilework
