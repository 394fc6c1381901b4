#include "io/own_file.h"

#include <exception>

#include "io/descriptor_io.h"

namespace tilework {

std::optional<std::string> read_own_file(const FolderPlace& folder, const std::string& name,
                                         size_t most_bytes) {
  const std::string path = folder.path_of(name);
  FileHandle file = kNoFile;
  std::optional<std::string> content;
  try {
    int64_t size = 0;
    file = open_own_file(*Folder::open(folder, path), name, size);
    if (file == kNoFile) return std::nullopt;
    if (size >= 0 && static_cast<uint64_t>(size) <= most_bytes) {
      content.emplace(static_cast<size_t>(size), '\0');
      content->resize(static_cast<size_t>(
          read_fully({file, 0, path}, reinterpret_cast<uint8_t*>(content->data()), size)));
    }
  } catch (const std::exception&) {
    // A missing folder and too little memory count as a file that cannot be read.
    content.reset();
  }
  if (file != kNoFile) close_file(file);
  return content;
}

}  // namespace tilework
