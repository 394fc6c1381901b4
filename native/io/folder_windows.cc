#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "error.h"
#include "io/folder.h"
#include "io/windows_files.h"

namespace tilework {
namespace {

using windows::file_of;
using windows::OpenHandle;

constexpr ACCESS_MASK kFolderAccess = FILE_TRAVERSE | FILE_READ_ATTRIBUTES | SYNCHRONIZE;

bool is_separator(char letter) { return letter == '/' || letter == '\\'; }

size_t last_separator(const std::string& path) { return path.find_last_of("/\\"); }

bool is_folder(FileHandle file) {
  BY_HANDLE_FILE_INFORMATION information{};
  return GetFileInformationByHandle(windows::handle_of(file), &information) != 0 &&
         (information.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

// A relative path with backslashes and without "." and "..", which mean nothing below an open folder. False
// with errno for a path that leads out of the folder, and for a name that Windows gives another meaning.
bool plain_name(const std::string& name, std::wstring& plain) {
  std::vector<std::string> parts;
  size_t start = 0;
  if (!name.empty() && is_separator(name.front())) return errno = EXDEV, false;
  while (start <= name.size()) {
    const size_t end = std::min(name.find_first_of("/\\", start), name.size());
    const std::string part = name.substr(start, end - start);
    start = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == ".." && parts.empty()) return errno = EXDEV, false;
    if (part == "..") {
      parts.pop_back();
    } else if (windows::is_forbidden_name(part)) {
      return errno = EINVAL, false;
    } else {
      parts.push_back(part);
    }
  }
  for (const std::string& part : parts) plain += (plain.empty() ? L"" : L"\\") + windows::to_wide(part);
  return true;
}

// What is open decides, not the name: links were followed, and may have been replaced meanwhile.
bool lies_below(FileHandle folder, FileHandle file) {
  std::wstring outer = windows::real_path(folder);
  const std::wstring inner = windows::real_path(file);
  if (outer.empty() || inner.empty()) return false;
  if (inner == outer) return true;
  if (!outer.ends_with(L'\\')) outer += L'\\';
  return inner.starts_with(outer);
}

}  // namespace

std::string folder_of(const std::string& path) {
  const size_t separator = last_separator(path);
  if (separator == std::string::npos) return path.size() > 1 && path[1] == ':' ? path.substr(0, 2) : ".";
  // The root of the drive: "C:\x" lies in "C:\", and "C:" is the current folder of the drive.
  const bool is_root = separator == 0 || (separator == 2 && path[1] == ':');
  return path.substr(0, is_root ? separator + 1 : separator);
}

std::string name_of_path(const std::string& path) {
  const size_t separator = last_separator(path);
  if (separator != std::string::npos) return path.substr(separator + 1);
  return path.size() > 1 && path[1] == ':' ? path.substr(2) : path;
}

// Folders are opened for a moment, so their handles are not shared as they are on POSIX.
std::shared_ptr<Folder> Folder::shared(FileHandle descriptor, const std::string& path) {
  return std::shared_ptr<Folder>(new Folder(descriptor, path));
}

std::shared_ptr<Folder> Folder::open_path(const std::string& path, const std::string& asked) {
  const HANDLE handle = CreateFileW(windows::full_path(path).c_str(), kFolderAccess, windows::kShareAll,
                                    nullptr, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (handle == INVALID_HANDLE_VALUE) throw system_error(windows::last_errno(), "open", asked);
  OpenHandle opened(file_of(handle));
  if (!is_folder(opened.get())) throw system_error(ENOTDIR, "open", asked);
  return shared(opened.release(), path);
}

std::shared_ptr<Folder> Folder::folder_below(const std::string& name) const {
  OpenHandle opened(open_below(name, static_cast<int>(kFolderAccess)));
  if (opened.get() == kNoFile) return nullptr;
  if (!is_folder(opened.get())) return errno = ENOTDIR, nullptr;
  return shared(opened.release(), path_ + "/" + name);
}

bool Folder::create_folder(const std::string& name) const {
  if (windows::is_forbidden_name(name)) return errno = EINVAL, false;
  // FILE_OPEN_IF, FILE_DIRECTORY_FILE
  const windows::Opening opening{.access = kFolderAccess, .disposition = 3, .options = 1};
  const OpenHandle opened(windows::open_at(descriptor_, windows::to_wide(name), opening));
  return opened.get() != kNoFile;
}

Folder::~Folder() { close_file(descriptor_); }

FileHandle Folder::open_below(const std::string& name, int flags) const {
  std::wstring plain;
  if (!plain_name(name, plain)) return kNoFile;
  OpenHandle opened(windows::open_at(descriptor_, plain, {.access = static_cast<ACCESS_MASK>(flags)}));
  if (opened.get() == kNoFile) return kNoFile;
  if (!lies_below(descriptor_, opened.get())) return errno = EXDEV, kNoFile;
  return opened.release();
}

// Renames are durable with the journal of NTFS; a folder has nothing to flush.
void Folder::sync(const std::string&) const {}

}  // namespace tilework
