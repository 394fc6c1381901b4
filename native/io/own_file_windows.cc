#include <vector>

#include "io/own_file.h"
#include "io/windows_files.h"

namespace tilework {
namespace {

using windows::handle_of;
using windows::OpenHandle;

// What a call of Windows writes into memory of a size that it tells itself; empty where it fails.
template <class Call>
std::vector<uint64_t> answer_of(Call call) {
  DWORD bytes = 0;
  call(nullptr, DWORD{0}, &bytes);
  std::vector<uint64_t> memory(bytes / sizeof(uint64_t) + 1);
  if (call(memory.data(), bytes, &bytes) == 0) memory.clear();
  return memory;
}

// Whether `owner` is the user of this process, or the one that its files get: the group of administrators for
// some of its members.
bool is_this_user(PSID owner) {
  HANDLE token = nullptr;
  if (OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token) == 0) return false;
  const OpenHandle opened(windows::file_of(token));
  const auto about = [token](TOKEN_INFORMATION_CLASS kind) {
    return answer_of([=](void* to, DWORD size, DWORD* needed) {
      return GetTokenInformation(token, kind, to, size, needed);
    });
  };
  std::vector<uint64_t> user = about(TokenUser);
  std::vector<uint64_t> of_new_files = about(TokenOwner);
  return (!user.empty() && EqualSid(owner, reinterpret_cast<TOKEN_USER*>(user.data())->User.Sid) != 0) ||
         (!of_new_files.empty() &&
          EqualSid(owner, reinterpret_cast<TOKEN_OWNER*>(of_new_files.data())->Owner) != 0);
}

bool is_of_this_user(FileHandle file) {
  std::vector<uint64_t> description = answer_of([file](void* to, DWORD size, DWORD* needed) {
    return GetKernelObjectSecurity(handle_of(file), OWNER_SECURITY_INFORMATION, to, size, needed);
  });
  PSID owner = nullptr;
  BOOL is_default = FALSE;
  return !description.empty() && GetSecurityDescriptorOwner(description.data(), &owner, &is_default) != 0 &&
         owner != nullptr && is_this_user(owner);
}

}  // namespace

FileHandle open_own_file(const Folder& folder, const std::string& name, int64_t& size) {
  constexpr DWORD kOther = FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DIRECTORY;
  if (windows::is_forbidden_name(name)) return kNoFile;
  // FILE_OPEN_REPARSE_POINT: a link itself, which is refused.
  const windows::Opening opening{.access = FILE_GENERIC_READ, .options = 0x00200000};
  OpenHandle opened(windows::open_at(folder.descriptor(), windows::to_wide(name), opening));
  if (opened.get() == kNoFile) return kNoFile;
  const HANDLE handle = handle_of(opened.get());
  BY_HANDLE_FILE_INFORMATION information{};
  const bool is_own = GetFileType(handle) == FILE_TYPE_DISK &&
                      GetFileInformationByHandle(handle, &information) != 0 &&
                      (information.dwFileAttributes & kOther) == 0 && information.nNumberOfLinks == 1 &&
                      is_of_this_user(opened.get());
  size = static_cast<int64_t>((uint64_t{information.nFileSizeHigh} << 32) | information.nFileSizeLow);
  return is_own ? opened.release() : kNoFile;
}

}  // namespace tilework
