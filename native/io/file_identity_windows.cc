#include <memory>

#include "error.h"
#include "io/file_identity.h"
#include "io/folder.h"
#include "io/windows_files.h"

namespace tilework {

// The numbers that Node's lstat gives: serial number of the volume and index of the file.
FileIdentity identity_of(FileHandle descriptor, const std::string& path) {
  const BY_HANDLE_FILE_INFORMATION information = windows::information_of(descriptor, path);
  return {
      information.dwVolumeSerialNumber,
      (uint64_t{information.nFileIndexHigh} << 32) | uint64_t{information.nFileIndexLow},
      static_cast<int64_t>((uint64_t{information.nFileSizeHigh} << 32) | uint64_t{information.nFileSizeLow}),
      windows::nanoseconds_of(information.ftLastWriteTime)};
}

bool remove_below(const FolderPlace& folder, const std::string& name,
                  const std::optional<FileIdentity>& identity) {
  const std::string path = folder.path_of(name);
  const auto below = Folder::open(folder, path)->folder_below(folder_of(name));
  if (below == nullptr || windows::is_forbidden_name(name_of_path(name))) return false;
  // FILE_NON_DIRECTORY_FILE | FILE_OPEN_REPARSE_POINT: neither a folder nor what a link leads to.
  const windows::Opening opening{.access = DELETE | FILE_READ_ATTRIBUTES | SYNCHRONIZE,
                                 .options = 0x00200040};
  const windows::OpenHandle file(
      windows::open_at(below->descriptor(), windows::to_wide(name_of_path(name)), opening));
  if (file.get() == kNoFile) return false;
  const BY_HANDLE_FILE_INFORMATION information = windows::information_of(file.get(), path);
  if (information.nNumberOfLinks != 1) return false;
  if (identity && identity_of(file.get(), path) != *identity) return false;
  if (const DWORD error = windows::remove_name(file.get()); error != 0)
    throw system_error(windows::errno_of(error), "unlink", path);
  return true;
}

}  // namespace tilework
