#include "io/windows_files.h"

#include <winternl.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "error.h"

namespace tilework {

void close_file(FileHandle handle) noexcept { CloseHandle(windows::handle_of(handle)); }

namespace windows {
namespace {

// CreateFile takes at most 259 characters; a folder must leave room for a name of 8.3 characters.
constexpr size_t kMaxPlainPath = 247;
constexpr wchar_t kVerbatim[] = L"\\\\?\\";

// Information classes and flags of Windows 10 that the headers may lack.
constexpr int kRenameInformation = 10;
constexpr int kDispositionInformation = 13;
constexpr int kDispositionInformationEx = 64;
constexpr int kRenameInformationEx = 65;
constexpr ULONG kReplaceIfExists = 1;
constexpr ULONG kDelete = 1;
constexpr ULONG kPosixSemantics = 2;

// FILE_RENAME_INFORMATION; `flags` is a BOOLEAN in the older class.
struct RenameInformation {
  ULONG flags;
  HANDLE root;
  ULONG name_bytes;
  wchar_t name[1];
};

struct ErrorNumber {
  DWORD error;
  int number;
};

constexpr ErrorNumber kErrorNumbers[] = {
    {ERROR_FILE_NOT_FOUND, ENOENT},
    {ERROR_PATH_NOT_FOUND, ENOENT},
    {ERROR_BAD_NETPATH, ENOENT},
    {ERROR_BAD_NET_NAME, ENOENT},
    {ERROR_INVALID_DRIVE, ENOENT},
    {ERROR_INVALID_NAME, ENOENT},
    {ERROR_BAD_PATHNAME, ENOENT},
    {ERROR_DIRECTORY, ENOTDIR},
    {ERROR_TOO_MANY_OPEN_FILES, EMFILE},
    {ERROR_ACCESS_DENIED, EACCES},
    {ERROR_NETWORK_ACCESS_DENIED, EACCES},
    {ERROR_PRIVILEGE_NOT_HELD, EPERM},
    {ERROR_INVALID_HANDLE, EBADF},
    {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
    {ERROR_OUTOFMEMORY, ENOMEM},
    {ERROR_COMMITMENT_LIMIT, ENOMEM},
    {ERROR_NO_SYSTEM_RESOURCES, ENOMEM},
    {ERROR_WRITE_PROTECT, EROFS},
    {ERROR_SHARING_VIOLATION, EBUSY},
    {ERROR_LOCK_VIOLATION, EBUSY},
    {ERROR_DELETE_PENDING, EBUSY},
    {ERROR_USER_MAPPED_FILE, EBUSY},
    {ERROR_FILE_EXISTS, EEXIST},
    {ERROR_ALREADY_EXISTS, EEXIST},
    {ERROR_INVALID_PARAMETER, EINVAL},
    {ERROR_NOT_SUPPORTED, ENOTSUP},
    {ERROR_DISK_FULL, ENOSPC},
    {ERROR_HANDLE_DISK_FULL, ENOSPC},
    {ERROR_DISK_QUOTA_EXCEEDED, ENOSPC},
    {ERROR_FILE_TOO_LARGE, EFBIG},
    {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG},
    {ERROR_BUFFER_OVERFLOW, ENAMETOOLONG},
    {ERROR_CANT_RESOLVE_FILENAME, ELOOP},
    {ERROR_NOT_SAME_DEVICE, EXDEV},
    {ERROR_NOACCESS, EFAULT},
};

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; }

// CON, PRN, AUX, NUL, COM0 to COM9, LPT0 to LPT9 and the superscript digits that count as 1, 2 and 3, with
// any extension.
bool is_device(std::string_view name) {
  std::string stem(name.substr(0, name.find('.')));
  while (stem.ends_with(' ')) stem.pop_back();
  std::transform(stem.begin(), stem.end(), stem.begin(), lower);
  for (const char* device : {"con", "prn", "aux", "nul", "conin$", "conout$"}) {
    if (stem == device) return true;
  }
  if (!stem.starts_with("com") && !stem.starts_with("lpt")) return false;
  const std::string number = stem.substr(3);
  return (number.size() == 1 && number[0] >= '0' && number[0] <= '9') || number == "\u00b9" ||
         number == "\u00b2" || number == "\u00b3";
}

DWORD set_information(FileHandle file, void* information, size_t size, int kind) {
  IO_STATUS_BLOCK status{};
  // The enumeration of the headers ends before the classes of Windows 10.
  FILE_INFORMATION_CLASS number{};
  static_assert(sizeof(number) == sizeof(kind));
  std::memcpy(&number, &kind, sizeof(number));
  const NTSTATUS result =
      NtSetInformationFile(handle_of(file), &status, information, static_cast<ULONG>(size), number);
  return result >= 0 ? 0 : RtlNtStatusToDosError(result);
}

}  // namespace

std::wstring to_wide(std::string_view utf8) {
  const auto size = static_cast<int>(utf8.size());
  std::wstring wide(static_cast<size_t>(MultiByteToWideChar(CP_UTF8, 0, utf8.data(), size, nullptr, 0)), 0);
  MultiByteToWideChar(CP_UTF8, 0, utf8.data(), size, wide.data(), static_cast<int>(wide.size()));
  return wide;
}

std::string to_utf8(std::wstring_view wide) {
  const auto size = static_cast<int>(wide.size());
  std::string utf8(
      static_cast<size_t>(WideCharToMultiByte(CP_UTF8, 0, wide.data(), size, nullptr, 0, nullptr, nullptr)),
      0);
  WideCharToMultiByte(CP_UTF8, 0, wide.data(), size, utf8.data(), static_cast<int>(utf8.size()), nullptr,
                      nullptr);
  return utf8;
}

std::wstring full_path(const std::string& path) {
  const std::wstring wide = to_wide(path);
  if (wide.starts_with(kVerbatim)) return wide;
  std::wstring full(GetFullPathNameW(wide.c_str(), 0, nullptr, nullptr), 0);
  full.resize(GetFullPathNameW(wide.c_str(), static_cast<DWORD>(full.size()), full.data(), nullptr));
  if (full.size() <= kMaxPlainPath) return full;
  return full.starts_with(L"\\\\") ? std::wstring(kVerbatim) + L"UNC" + full.substr(1) : kVerbatim + full;
}

int errno_of(DWORD error) {
  for (const ErrorNumber& entry : kErrorNumbers) {
    if (entry.error == error) return entry.number;
  }
  return EIO;
}

bool is_forbidden_name(std::string_view name) {
  if (name.empty() || name.ends_with('.') || name.ends_with(' ')) return true;
  const auto is_forbidden = [](char letter) {
    return (letter >= 0 && letter < ' ') || std::string_view("<>:\"|?*/\\").find(letter) != std::string::npos;
  };
  return std::any_of(name.begin(), name.end(), is_forbidden) || is_device(name);
}

FileHandle open_at(FileHandle folder, const std::wstring& name, const Opening& opening) {
  if (name.size() > 0x7fff) return errno = ENAMETOOLONG, kNoFile;
  const auto bytes = static_cast<USHORT>(name.size() * sizeof(wchar_t));
  UNICODE_STRING text{bytes, bytes, const_cast<wchar_t*>(name.data())};
  OBJECT_ATTRIBUTES attributes{};
  InitializeObjectAttributes(&attributes, &text, OBJ_CASE_INSENSITIVE, handle_of(folder), nullptr);
  IO_STATUS_BLOCK status{};
  HANDLE handle = nullptr;
  const NTSTATUS result =
      NtCreateFile(&handle, opening.access, &attributes, &status, nullptr, FILE_ATTRIBUTE_NORMAL,
                   opening.share, opening.disposition, opening.options, nullptr, 0);
  if (result >= 0) return file_of(handle);
  constexpr auto kIsFolder = static_cast<NTSTATUS>(0xC00000BA);
  errno = result == kIsFolder ? EISDIR : errno_of(RtlNtStatusToDosError(result));
  return kNoFile;
}

DWORD rename_at(FileHandle file, FileHandle folder, const std::wstring& name, Replace replace) {
  const size_t name_bytes = name.size() * sizeof(wchar_t);
  std::vector<std::max_align_t> memory((sizeof(RenameInformation) + name_bytes) / sizeof(std::max_align_t) +
                                       1);
  auto* information = reinterpret_cast<RenameInformation*>(memory.data());
  information->flags = replace == Replace::kNo ? 0 : kReplaceIfExists;
  information->root = handle_of(folder);
  information->name_bytes = static_cast<ULONG>(name_bytes);
  std::memcpy(information->name, name.data(), name_bytes);
  const size_t size = offsetof(RenameInformation, name) + name_bytes;
  if (replace != Replace::kWhileOpen) return set_information(file, information, size, kRenameInformation);
  information->flags |= kPosixSemantics;
  return set_information(file, information, size, kRenameInformationEx);
}

DWORD set_deleted(FileHandle file, bool deleted) {
  BOOLEAN mark = deleted ? TRUE : FALSE;
  return set_information(file, &mark, sizeof(mark), kDispositionInformation);
}

DWORD remove_name(FileHandle file) {
  ULONG flags = kDelete | kPosixSemantics;
  if (set_information(file, &flags, sizeof(flags), kDispositionInformationEx) == 0) return 0;
  return set_deleted(file, true);
}

std::wstring real_path(FileHandle file) {
  constexpr DWORD kFlags = FILE_NAME_NORMALIZED | VOLUME_NAME_NT;
  std::wstring path(GetFinalPathNameByHandleW(handle_of(file), nullptr, 0, kFlags), 0);
  path.resize(
      GetFinalPathNameByHandleW(handle_of(file), path.data(), static_cast<DWORD>(path.size()), kFlags));
  return path;
}

int64_t nanoseconds_of(const FILETIME& time) {
  // From 1601 to 1970, in units of 100 ns.
  constexpr int64_t kEpoch = 116'444'736'000'000'000;
  const auto since_1601 =
      static_cast<int64_t>((uint64_t{time.dwHighDateTime} << 32) | uint64_t{time.dwLowDateTime});
  return (since_1601 - kEpoch) * 100;
}

BY_HANDLE_FILE_INFORMATION information_of(FileHandle file, const std::string& path) {
  BY_HANDLE_FILE_INFORMATION information{};
  if (GetFileInformationByHandle(handle_of(file), &information) == 0)
    throw system_error(last_errno(), "fstat", path);
  return information;
}

}  // namespace windows
}  // namespace tilework
