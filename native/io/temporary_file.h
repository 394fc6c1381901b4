// The file that a save writes before it replaces the target. It lies in the target's folder, so that the last
// step is a rename.
//
// Where the system can (Linux, most file systems) the file has no name while it is written, so a killed
// process leaves nothing behind. It gets a name just before the rename. Elsewhere it has the name from the
// start.
//
// temporary_name.h has the names. The process that uses one holds a lock on the file, which the system drops
// with the process. So a name without a lock was left by a killed process, and the next save of the same
// target removes it without listing the folder.
//
// On Windows the file has its name from the start and is marked for deletion until just before the rename, so
// a killed process leaves nothing behind either. Its share mode is the lock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/file_handle.h"
#include "io/folder.h"

namespace tilework {

class TemporaryFile {
 public:
  // `target` is a name in `folder`, `mode` as for open() (Windows has none), and `asked` the caller's path
  // for errors. Errors: a system error; EEXIST if all names are in use.
  TemporaryFile(std::shared_ptr<const Folder> folder, const std::string& target, unsigned mode,
                const std::string& asked);
  // Removes the file unless it replaced the target.
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  FileHandle descriptor() const { return descriptor_; }

  // Gives the file a name if it has none; copies the file where the system refuses to link it. Errors: a
  // system error.
  void take_name();
  // Renames the file, which has a name, over the target. Errors: a system error.
  void replace_target();
  // Gives the file, which may have no name, that of the target, unless another file has it: EEXIST.
  void take_target_name();

  // All names that a save of `target` may use for a while.
  static std::vector<std::string> all_names(const Folder& folder, const std::string& target);
  // Removes the named temporary files of this process. For process exit, where destructors do not run.
  static void remove_all_names();

 private:
  void remove_abandoned() const;
  void open_without_name(unsigned mode);
  void open_with_name(unsigned mode);
  bool link_name(const std::string& name);
  void copy_under_a_name();
  void rename_to_target();
  void remove_name();

  std::shared_ptr<const Folder> folder_;
  std::string target_;
  std::string asked_;
  // Common part of the names.
  std::string stem_;
  // Empty while the file has no name.
  std::string name_;
  FileHandle descriptor_ = kNoFile;
};

}  // namespace tilework
