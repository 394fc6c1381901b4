#include "io/own_file.h"

#include <exception>

#include "io/descriptor_io.h"

namespace tilework {

std::optional<std::string> read_own_file(const std::string& path, size_t most_bytes) {
  int64_t size = 0;
  const FileHandle file = open_own_file(path, size);
  if (file == kNoFile) return std::nullopt;
  std::optional<std::string> content;
  try {
    if (size >= 0 && static_cast<uint64_t>(size) <= most_bytes) {
      content.emplace(static_cast<size_t>(size), '\0');
      content->resize(static_cast<size_t>(
          read_fully({file, 0, path}, reinterpret_cast<uint8_t*>(content->data()), size)));
    }
  } catch (const std::exception&) {
    // Too little memory counts as a file that cannot be read.
    content.reset();
  }
  close_file(file);
  return content;
}

}  // namespace tilework
