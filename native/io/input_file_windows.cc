#include <cerrno>
#include <utility>

#include "error.h"
#include "io/checked_math.h"
#include "io/file_identity.h"
#include "io/folder.h"
#include "io/input_file.h"
#include "io/windows_files.h"

namespace tilework {
namespace {

// Fits an int, as Folder::open_below takes it.
constexpr DWORD kReadAccess = FILE_GENERIC_READ;

FileStamp stamp_of(const BY_HANDLE_FILE_INFORMATION& information) {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  const int64_t time = windows::nanoseconds_of(information.ftLastWriteTime);
  const uint64_t size = (uint64_t{information.nFileSizeHigh} << 32) | uint64_t{information.nFileSizeLow};
  return {static_cast<int64_t>(size), floor_div(time, kNanoseconds),
          time - floor_div(time, kNanoseconds) * kNanoseconds};
}

}  // namespace

std::shared_ptr<InputFile> InputFile::open(const std::string& path, InputOptions options, LiveCount live) {
  // BACKUP_SEMANTICS opens folders too, which take_stamp() then names as such.
  constexpr DWORD kFlags = FILE_FLAG_OVERLAPPED | FILE_FLAG_BACKUP_SEMANTICS;
  const HANDLE handle = CreateFileW(windows::full_path(path).c_str(), kReadAccess, windows::kShareAll,
                                    nullptr, OPEN_EXISTING, kFlags, nullptr);
  if (handle == INVALID_HANDLE_VALUE) throw system_error(windows::last_errno(), "open", path);
  return from_descriptor(windows::file_of(handle), path, options, std::move(live));
}

std::shared_ptr<InputFile> InputFile::open_below(const FolderPlace& folder, const std::string& name,
                                                 HardLinks hard_links, InputOptions options, LiveCount live) {
  const std::string path = folder.path_of(name);
  const std::shared_ptr<Folder> opened = Folder::open(folder, path);
  const FileHandle descriptor = opened->open_below(name, static_cast<int>(kReadAccess));
  if (descriptor == kNoFile && errno == EXDEV) {
    throw Error(ErrorCode::kPathEscape,
                "'" + name + "' is a link that leads out of its folder; symlinks: 'follow' allows it.", name);
  }
  if (descriptor == kNoFile) throw system_error(errno, "open", path);
  std::shared_ptr<InputFile> file = from_descriptor(descriptor, path, options, std::move(live));
  if (hard_links == HardLinks::kAllow || file->is_sole_file(*opened, name)) return file;
  throw Error(ErrorCode::kFileChanged, "'" + name + "' was replaced while it was opened.", name);
}

// A file from outside that was given a name below the folder has two. False where the name leads to another
// file meanwhile.
bool InputFile::is_sole_file(const Folder& folder, const std::string& name) const {
  const FileHandle descriptor = owned_descriptor_->number();
  const DWORD names = windows::information_of(descriptor, path_).nNumberOfLinks;
  if (names > 1) {
    throw Error(ErrorCode::kPathEscape,
                "'" + name + "' has " + std::to_string(names) +
                    " names (hard links), so it may belong to another folder; hardLinks: 'allow' allows it.",
                name);
  }
  const windows::OpenHandle named(folder.open_below(name, static_cast<int>(kReadAccess)));
  return named.get() != kNoFile && identity_of(named.get(), path_) == identity_of(descriptor, path_) &&
         windows::information_of(descriptor, path_).nNumberOfLinks == 1;
}

void InputFile::take_stamp() {
  const FileHandle descriptor = owned_descriptor_->number();
  if (GetFileType(windows::handle_of(descriptor)) != FILE_TYPE_DISK) {
    throw Error(ErrorCode::kArgument, "'" + path_ + "' is not a regular file and cannot be read by ranges.",
                path_);
  }
  const BY_HANDLE_FILE_INFORMATION information = windows::information_of(descriptor, path_);
  if ((information.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0)
    throw system_error(EISDIR, "open", path_);
  stamp_ = stamp_of(information);
  if (stamp_.size > kMaxSafeInteger) throw_overflow("The size of '" + path_ + "'");
}

FileStamp InputFile::stamp_now(FileHandle descriptor) const {
  return stamp_of(windows::information_of(descriptor, path_));
}

// A private view that may be written to counts as memory that the system must have, as a whole. Where it has
// not, a view without write access still serves: callers do not write to views.
void InputFile::map() {
  const HANDLE file = windows::handle_of(owned_descriptor_->number());
  const HANDLE section = CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (section == nullptr) throw system_error(windows::last_errno(), "mmap", path_);
  void* memory = MapViewOfFile(section, FILE_MAP_COPY, 0, 0, static_cast<size_t>(stamp_.size));
  if (memory == nullptr)
    memory = MapViewOfFile(section, FILE_MAP_READ, 0, 0, static_cast<size_t>(stamp_.size));
  const int failed = memory == nullptr ? windows::last_errno() : 0;
  CloseHandle(section);
  if (memory == nullptr) throw system_error(failed, "mmap", path_);
  data_ = static_cast<uint8_t*>(memory);
}

void InputFile::unmap(uint8_t* data, int64_t) { UnmapViewOfFile(data); }

}  // namespace tilework
