// Reads, writes and copies of whole ranges by descriptor: what the system cuts or interrupts goes on until
// all is done.
#pragma once

#include <cstdint>
#include <string>

namespace tilework {

// One end of a transfer. `path` is the file's name in errors.
struct DescriptorEnd {
  int descriptor;
  int64_t offset;
  const std::string& path;
};

// Returns how many bytes were read; fewer than `size` only where the file ends. Errors: a system error.
int64_t read_fully(const DescriptorEnd& from, uint8_t* to, int64_t size);

// Errors: a system error.
void write_fully(const DescriptorEnd& to, const uint8_t* bytes, int64_t size);

// Copies inside the kernel where it can, else through a buffer of 1 MiB. Returns how many bytes were copied;
// fewer than `size` only where the source ends. Errors: a system error.
int64_t copy_fully(const DescriptorEnd& from, const DescriptorEnd& to, int64_t size);

// Hands the file's bytes to the disk itself. Errors: a system error.
void sync_file(int descriptor, const std::string& path);

}  // namespace tilework
