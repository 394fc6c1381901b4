// What the operating system opens a file as: a descriptor, or a HANDLE of Windows. The descriptors of
// Windows's C library are none: they are few, and belong to one of several C libraries in the process.
#pragma once

#include <cstdint>

namespace tilework {

#ifdef _WIN32
using FileHandle = intptr_t;
#else
using FileHandle = int;
#endif

// As open() and CreateFile() report a failure.
inline constexpr FileHandle kNoFile = -1;

void close_file(FileHandle handle) noexcept;

}  // namespace tilework
