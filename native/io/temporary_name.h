// The names of the files that a save writes before they replace their target: `.NAME.tilework-tmp`, then
// `.NAME.1.tilework-tmp` and so on. They depend on the target alone, so that the next save of the same target
// finds what a killed one left.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tilework {

// Concurrent saves of one target plus the leftovers of killed ones: more than anyone has, few enough to try
// all.
inline constexpr int kMaxTemporaryNames = 32;

// The common part of the names. A target too long for `max_bytes` with what is added is cut; its hash
// distinguishes it from other names with the same start.
std::string temporary_stem(const std::string& target, size_t max_bytes);

std::string temporary_name(const std::string& stem, int number);

std::vector<std::string> all_temporary_names(const std::string& stem);

}  // namespace tilework
