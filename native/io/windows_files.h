// What the Windows half of native/io shares: paths in UTF-16, error numbers, and files that are opened by a
// name below an open folder. POSIX has openat() for the last; Windows has it one level below its documented
// CreateFile, in NtCreateFile with a root folder.
#pragma once

#ifndef NOMINMAX
#define NOMINMAX
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "io/file_handle.h"

namespace tilework::windows {

inline HANDLE handle_of(FileHandle file) { return reinterpret_cast<HANDLE>(file); }
inline FileHandle file_of(HANDLE handle) { return reinterpret_cast<FileHandle>(handle); }

// Closes the handle of a file at the end of a block.
class OpenHandle {
 public:
  explicit OpenHandle(FileHandle file) : file_(file) {}
  ~OpenHandle() {
    if (file_ != kNoFile) close_file(file_);
  }
  OpenHandle(const OpenHandle&) = delete;
  OpenHandle& operator=(const OpenHandle&) = delete;
  FileHandle get() const { return file_; }
  FileHandle release() {
    const FileHandle file = file_;
    file_ = kNoFile;
    return file;
  }

 private:
  FileHandle file_;
};

// Other programs may read, write, rename and delete the file meanwhile.
inline constexpr DWORD kShareAll = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

std::wstring to_wide(std::string_view utf8);
std::string to_utf8(std::wstring_view wide);

// The absolute path, with `\\?\` where it is too long for the calls of Windows without that.
std::wstring full_path(const std::string& path);

// The errno of a Windows error; EIO for one that is not in the table.
int errno_of(DWORD error);
inline int last_errno() { return errno_of(GetLastError()); }

// Whether Windows gives one name of a path another meaning than that of a file: a device, a second stream of
// a file, or a name that another name is short for.
bool is_forbidden_name(std::string_view name);

// Name and attributes of an opening by `open_at`.
struct Opening {
  ACCESS_MASK access;
  ULONG share = kShareAll;
  // FILE_OPEN, FILE_CREATE
  ULONG disposition = 1;
  // FILE_DIRECTORY_FILE, FILE_NON_DIRECTORY_FILE, FILE_OPEN_REPARSE_POINT
  ULONG options = 0;
};

// Opens `name`, components with backslashes, below an open folder. The name is taken literally. Returns
// kNoFile with errno on failure.
FileHandle open_at(FileHandle folder, const std::wstring& name, const Opening& opening);

enum class Replace { kNo, kYes, kWhileOpen };

// Renames an open file to `name` in `folder`. With kWhileOpen a target that others have open is replaced too;
// they keep the old file. Returns 0 or the Windows error.
DWORD rename_at(FileHandle file, FileHandle folder, const std::wstring& name, Replace replace);

// Marks an open file to be deleted with its last handle, or takes the mark away. Returns 0 or the Windows
// error.
DWORD set_deleted(FileHandle file, bool deleted);

// Removes the name of an open file, at the latest with its last handle; where the file system can, with this
// one, also while others have it open. Returns 0 or the Windows error.
DWORD remove_name(FileHandle file);

// The path of an open file with links resolved, in the names of devices: `\Device\HarddiskVolume2\x`. Empty
// if the system does not know.
std::wstring real_path(FileHandle file);

// Nanoseconds since 1970.
int64_t nanoseconds_of(const FILETIME& time);

// Errors: a system error that names `path`.
BY_HANDLE_FILE_INFORMATION information_of(FileHandle file, const std::string& path);

}  // namespace tilework::windows
