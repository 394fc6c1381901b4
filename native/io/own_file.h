// Reads a file that decides what this process removes: nobody else may have written it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "io/file_handle.h"
#include "io/folder.h"

namespace tilework {

// The content of the file `name` of a folder; absent unless it is a regular file of this user with a single
// name and at most `most_bytes`, and where it cannot be read. A link is not followed. On POSIX nobody else
// may write to it by its mode. On Windows its list of access comes from the folder: who may change files
// there may remove them himself.
std::optional<std::string> read_own_file(const FolderPlace& folder, const std::string& name,
                                         size_t most_bytes);

// The half of the system: opens such a file for reading, whatever its size. kNoFile for any other.
FileHandle open_own_file(const Folder& folder, const std::string& name, int64_t& size);

}  // namespace tilework
