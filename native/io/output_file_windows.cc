#include <cerrno>
#include <utility>
#include <vector>

#include "error.h"
#include "io/output_file.h"
#include "io/windows_files.h"

namespace tilework {
namespace {

using windows::handle_of;
using windows::OpenHandle;

// FILE_OPEN_REPARSE_POINT: the link and not what it leads to.
constexpr ULONG kTheLinkItself = 0x00200000;

// Takes over who may use the file. Without the right to read the list of the old file, or to set that of the
// new one, the folder's list stays: then this user could not have given anyone more.
void hand_down_access(FileHandle old, FileHandle file) {
  constexpr SECURITY_INFORMATION kList = DACL_SECURITY_INFORMATION;
  DWORD bytes = 0;
  GetKernelObjectSecurity(handle_of(old), kList, nullptr, 0, &bytes);
  std::vector<uint64_t> list(bytes / sizeof(uint64_t) + 1);
  const auto description = static_cast<PSECURITY_DESCRIPTOR>(list.data());
  if (GetKernelObjectSecurity(handle_of(old), kList, description, bytes, &bytes) == 0) return;
  SetKernelObjectSecurity(handle_of(file), kList, description);
}

// The file that will be replaced; kNoFile where there is none, or a link.
FileHandle open_old(const Folder& folder, const std::string& name, const std::string& asked) {
  const std::wstring wide = windows::to_wide(name);
  windows::Opening opening{.access = FILE_READ_ATTRIBUTES | READ_CONTROL | SYNCHRONIZE,
                           .options = kTheLinkItself};
  FileHandle file = windows::open_at(folder.descriptor(), wide, opening);
  if (file == kNoFile && errno == EACCES) {
    opening.access = FILE_READ_ATTRIBUTES | SYNCHRONIZE;
    file = windows::open_at(folder.descriptor(), wide, opening);
  }
  if (file == kNoFile && errno == ENOENT) return kNoFile;
  if (file == kNoFile) throw system_error(errno, "stat", asked);
  OpenHandle opened(file);
  const DWORD attributes = windows::information_of(file, asked).dwFileAttributes;
  if ((attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0) return kNoFile;
  if ((attributes & FILE_ATTRIBUTE_DIRECTORY) != 0) throw system_error(EISDIR, "open", asked);
  return opened.release();
}

}  // namespace

// Only an existing link has an end that the system can name.
std::string OutputFile::follow_links(const std::string& asked) {
  const std::wstring path = windows::full_path(asked);
  const DWORD attributes = GetFileAttributesW(path.c_str());
  const bool is_link =
      attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0;
  if (!is_link) return windows::to_utf8(path);
  const HANDLE handle = CreateFileW(path.c_str(), FILE_READ_ATTRIBUTES, windows::kShareAll, nullptr,
                                    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (handle == INVALID_HANDLE_VALUE) throw system_error(windows::last_errno(), "readlink", asked);
  const OpenHandle opened(windows::file_of(handle));
  std::wstring target(GetFinalPathNameByHandleW(handle, nullptr, 0, FILE_NAME_NORMALIZED), 0);
  target.resize(GetFinalPathNameByHandleW(handle, target.data(), static_cast<DWORD>(target.size()),
                                          FILE_NAME_NORMALIZED));
  if (target.empty()) throw system_error(windows::last_errno(), "readlink", asked);
  return windows::to_utf8(target);
}

std::shared_ptr<OutputFile> OutputFile::create_at(const std::string& path,
                                                  std::shared_ptr<const Folder> folder,
                                                  const std::string& name, Target target,
                                                  int64_t byte_length) {
  if (windows::is_forbidden_name(name)) {
    throw Error(ErrorCode::kArgument,
                "'" + name + "' cannot be the name of a file on Windows: it means a device or another file.",
                path);
  }
  const OpenHandle old(open_old(*folder, name, path));
  std::shared_ptr<OutputFile> file(new OutputFile);
  file->path_ = path;
  file->target_ = target;
  file->folder_ = std::move(folder);
  file->temporary_ = std::make_shared<TemporaryFile>(file->folder_, name, 0, path);
  if (old.get() != kNoFile && target != Target::kOwn)
    hand_down_access(old.get(), file->temporary_->descriptor());
  if (byte_length > 0) file->reserve(byte_length);
  return file;
}

void OutputFile::reserve(int64_t byte_length) {
  const HANDLE handle = handle_of(temporary_->descriptor());
  FILE_ALLOCATION_INFO allocation{};
  allocation.AllocationSize.QuadPart = byte_length;
  // A file system that cannot reserve finds a full disk while writing.
  if (SetFileInformationByHandle(handle, FileAllocationInfo, &allocation, sizeof(allocation)) == 0 &&
      windows::last_errno() == ENOSPC) {
    throw system_error(ENOSPC, "fallocate", path_);
  }
  FILE_END_OF_FILE_INFO end{};
  end.EndOfFile.QuadPart = byte_length;
  if (SetFileInformationByHandle(handle, FileEndOfFileInfo, &end, sizeof(end)) == 0)
    throw system_error(windows::last_errno(), "ftruncate", path_);
}

// Windows starts to write by itself.
void OutputFile::start_writeback(const TemporaryFile&, int64_t) {}

}  // namespace tilework
