#include <algorithm>
#include <cerrno>
#include <utility>

#include "error.h"
#include "io/temporary_file.h"
#include "io/temporary_name.h"
#include "io/windows_files.h"

namespace tilework {
namespace {

using windows::OpenHandle;
using windows::Replace;

// In UTF-16 units the limit of NTFS and FAT; UTF-8 never has fewer.
constexpr size_t kMaxNameBytes = 255;

// FILE_NON_DIRECTORY_FILE | FILE_OPEN_REPARSE_POINT
constexpr ULONG kPlainFile = 0x00200040;
constexpr ULONG kCreate = 2;

// Virus scanners and search indexes hold a new or old file for moments.
constexpr int kRenameTries = 20;
constexpr DWORD kPauseMs = 10;

bool is_temporary_failure(DWORD error) {
  return error == ERROR_SHARING_VIOLATION || error == ERROR_LOCK_VIOLATION || error == ERROR_ACCESS_DENIED ||
         error == ERROR_DELETE_PENDING;
}

// File systems without renames of this kind, and Windows before 10.
bool is_unsupported(DWORD error) {
  return error == ERROR_INVALID_PARAMETER || error == ERROR_NOT_SUPPORTED ||
         error == ERROR_INVALID_FUNCTION || error == ERROR_CALL_NOT_IMPLEMENTED;
}

void remove_if_abandoned(const Folder& folder, const std::string& name) {
  // The share mode of a save that still runs forbids to open it for deletion.
  const windows::Opening opening{.access = DELETE | FILE_READ_ATTRIBUTES | SYNCHRONIZE,
                                 .options = kPlainFile};
  const OpenHandle file(windows::open_at(folder.descriptor(), windows::to_wide(name), opening));
  if (file.get() == kNoFile) return;
  BY_HANDLE_FILE_INFORMATION information{};
  const bool is_known = GetFileInformationByHandle(windows::handle_of(file.get()), &information) != 0;
  if (is_known && information.nNumberOfLinks <= 1) windows::remove_name(file.get());
}

// Old versions of a file that are open at the same time; each has a name until it is closed.
constexpr int kMostOldFiles = 16;

bool set_aside(FileHandle old, const Folder& folder, const std::string& stem) {
  const std::string name = "." + stem + ".tilework-old";
  for (int i = 0; i < kMostOldFiles; ++i) {
    const std::wstring aside = windows::to_wide(i == 0 ? name : name + std::to_string(i));
    if (windows::rename_at(old, folder.descriptor(), aside, Replace::kNo) == 0) return true;
  }
  return false;
}

// For file systems that do not replace a file which somebody has open: the old file gives up its name first.
// A process that is killed between the two renames leaves it as `.NAME.tilework-old`, or with a number after
// it, which nothing removes.
bool replace_in_two_steps(FileHandle file, const Folder& folder, const std::wstring& target,
                          const std::string& stem) {
  const windows::Opening opening{.access = DELETE | FILE_READ_ATTRIBUTES | SYNCHRONIZE,
                                 .options = kPlainFile};
  const OpenHandle old(windows::open_at(folder.descriptor(), target, opening));
  if (old.get() == kNoFile) return false;
  if (!set_aside(old.get(), folder, stem)) return false;
  if (windows::rename_at(file, folder.descriptor(), target, Replace::kNo) == 0) {
    windows::remove_name(old.get());
    return true;
  }
  windows::rename_at(old.get(), folder.descriptor(), target, Replace::kNo);
  return false;
}

}  // namespace

TemporaryFile::TemporaryFile(std::shared_ptr<const Folder> folder, const std::string& target, unsigned mode,
                             const std::string& asked)
    : folder_(std::move(folder)),
      target_(target),
      asked_(asked),
      stem_(temporary_stem(target, kMaxNameBytes)) {
  // Before disk space is reserved: leftovers may fill the disk.
  remove_abandoned();
  open_with_name(mode);
}

TemporaryFile::~TemporaryFile() {
  // Only a file that waits for its rename is not marked.
  remove_name();
  if (descriptor_ != kNoFile) close_file(descriptor_);
}

std::vector<std::string> TemporaryFile::all_names(const Folder&, const std::string& target) {
  return all_temporary_names(temporary_stem(target, kMaxNameBytes));
}

void TemporaryFile::remove_abandoned() const {
  for (const std::string& name : all_temporary_names(stem_)) remove_if_abandoned(*folder_, name);
}

void TemporaryFile::open_with_name(unsigned) {
  // Others may read it, for example a virus scanner; the lack of SHARE_DELETE is the lock.
  constexpr ACCESS_MASK kAccess = FILE_GENERIC_READ | FILE_GENERIC_WRITE | DELETE | WRITE_DAC;
  const windows::Opening opening{
      .access = kAccess, .share = FILE_SHARE_READ, .disposition = kCreate, .options = kPlainFile};
  for (const std::string& name : all_temporary_names(stem_)) {
    descriptor_ = windows::open_at(folder_->descriptor(), windows::to_wide(name), opening);
    if (descriptor_ != kNoFile) {
      name_ = name;
      // Where the file system refuses, a killed process leaves the file, and the next save removes it.
      windows::set_deleted(descriptor_, true);
      return;
    }
    // A file that is marked for deletion answers with EBUSY or EACCES, as a folder does that may not be
    // written.
    if (errno != EEXIST && errno != EBUSY && errno != EACCES) throw system_error(errno, "open", asked_);
  }
  throw system_error(errno, "open", asked_);
}

void TemporaryFile::take_name() { windows::set_deleted(descriptor_, false); }

void TemporaryFile::replace_target() {
  take_name();
  rename_to_target();
}

void TemporaryFile::take_target_name() {
  take_name();
  const DWORD error =
      windows::rename_at(descriptor_, folder_->descriptor(), windows::to_wide(target_), Replace::kNo);
  if (error != 0) throw system_error(windows::errno_of(error), "rename", asked_);
  name_.clear();
}

void TemporaryFile::rename_to_target() {
  const std::wstring target = windows::to_wide(target_);
  Replace way = Replace::kWhileOpen;
  DWORD error = 0;
  for (int tries = 0; tries < kRenameTries; ++tries) {
    if (tries > 0) Sleep(kPauseMs);
    error = windows::rename_at(descriptor_, folder_->descriptor(), target, way);
    if (way == Replace::kWhileOpen && is_unsupported(error)) {
      way = Replace::kYes;
      error = windows::rename_at(descriptor_, folder_->descriptor(), target, way);
    }
    if (error == 0) {
      name_.clear();
      return;
    }
    if (!is_temporary_failure(error)) break;
    if (way == Replace::kYes && replace_in_two_steps(descriptor_, *folder_, target, stem_)) {
      name_.clear();
      return;
    }
  }
  throw system_error(windows::errno_of(error), "rename", asked_);
}

void TemporaryFile::remove_name() {
  if (!name_.empty()) windows::set_deleted(descriptor_, true);
}

// The system deletes what is marked when the process ends.
void TemporaryFile::remove_all_names() {}

}  // namespace tilework
