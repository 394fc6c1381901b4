#include <cstdio>

#include "error.h"
#include "io/file_identity.h"
#include "io/file_lock.h"
#include "io/folder.h"
#include "io/windows_files.h"

namespace tilework {

// Folders have no locks, so the lock is a named object, which lives as long as somebody has it open. Nobody
// waits for it, and it has no owner: a mutex would belong to a thread.
Lock FolderLock::try_take(const FolderPlace& folder, std::unique_ptr<FolderLock>& lock) {
  FileIdentity identity;
  try {
    identity = identity_of(Folder::open(folder, folder.path)->descriptor(), folder.path);
  } catch (const Error&) {
    return Lock::kUnknown;
  }
  wchar_t name[64];
  swprintf(name, std::size(name), L"Local\\tilework-%llx-%llx",
           static_cast<unsigned long long>(identity.device), static_cast<unsigned long long>(identity.inode));
  SetLastError(ERROR_SUCCESS);
  const HANDLE handle = CreateEventW(nullptr, TRUE, FALSE, name);
  const DWORD error = GetLastError();
  if (handle == nullptr) return error == ERROR_ACCESS_DENIED ? Lock::kBusy : Lock::kUnknown;
  std::unique_ptr<FolderLock> opened(new FolderLock(windows::file_of(handle)));
  if (error == ERROR_ALREADY_EXISTS) return Lock::kBusy;
  lock = std::move(opened);
  return Lock::kTaken;
}

}  // namespace tilework
