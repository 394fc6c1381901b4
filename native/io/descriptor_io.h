// Reads, writes and copies whole ranges by descriptor. Short and interrupted calls are continued until the
// range is complete.
#pragma once

#include <cstdint>
#include <string>

#include "io/file_handle.h"

namespace tilework {

// One end of a transfer. `path` names the file in errors.
struct DescriptorEnd {
  FileHandle descriptor;
  int64_t offset;
  const std::string& path;
};

// Returns the number of bytes read: less than `size` only at the end of the file. Errors: a system error.
int64_t read_fully(const DescriptorEnd& from, uint8_t* to, int64_t size);

// Errors: a system error.
void write_fully(const DescriptorEnd& to, const uint8_t* bytes, int64_t size);

// Copies inside the kernel or the file system, and returns the number of bytes moved; 0 where the system
// cannot. It stops at any error: a plain copy continues from there and meets the same error if it is real.
int64_t copy_in_kernel(const DescriptorEnd& from, const DescriptorEnd& to, int64_t size);

// Copies inside the kernel where the system can, else through a buffer of 1 MiB. Returns the number of bytes
// copied: less than `size` only at the end of the source. Errors: a system error.
int64_t copy_fully(const DescriptorEnd& from, const DescriptorEnd& to, int64_t size);

// Flushes the file to the storage device itself. Errors: a system error.
void sync_file(FileHandle descriptor, const std::string& path);

}  // namespace tilework
