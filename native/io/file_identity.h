// Identifies a file with its content, so that it can be removed later if it is still that file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/file_handle.h"

namespace tilework {

struct FolderPlace;

// The number of an inode alone may be given to the next file that is made.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = 0;
  // Nanoseconds since 1970. Renaming and linking leave it as it is.
  int64_t modified = 0;

  bool operator==(const FileIdentity&) const = default;
};

// Errors: a system error that names `path`.
FileIdentity identity_of(FileHandle descriptor, const std::string& path);

// Removes `name` below `folder` if it is a regular file without further names and, with an identity, that
// file. Returns whether it was removed. Errors: a system error, ERR_PATH_ESCAPE for the place of the folder.
bool remove_below(const FolderPlace& folder, const std::string& name,
                  const std::optional<FileIdentity>& identity);

}  // namespace tilework
