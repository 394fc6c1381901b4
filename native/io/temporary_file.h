// The file that a save writes to before it takes its target's place, in the target's folder, so that the last
// step is a rename.
//
// Where the system can (Linux, most file systems) it has no name while it is written: a process that is
// killed leaves nothing. It gets a name for the moment before the rename only. Elsewhere it has the name from
// the start.
//
// The names follow from the target's alone, `.NAME.tilework-tmp`, then `.NAME.1.tilework-tmp` and so on, and
// whoever uses one holds a lock on the file, which the system drops with the process. So a name without a
// lock is what a killed process left, and the next save of the same target takes it away without reading the
// folder.
#pragma once

#include <sys/types.h>

#include <string>

namespace tilework {

class TemporaryFile {
 public:
  // `folder` is absolute, `target` a name in it. `mode` is as open() takes it. `asked` is the path that the
  // user gave, for errors. Errors: a system error; EEXIST if all names are in use.
  TemporaryFile(const std::string& folder, const std::string& target, mode_t mode, const std::string& asked);
  // Removes the file, unless it took its target's place.
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int descriptor() const { return descriptor_; }

  // Gives the file a name if it has none; may copy it where the system refuses. Errors: a system error.
  void take_name();
  // Puts the file, which has a name, in the place of its target. Errors: a system error.
  void replace_target();

  // Removes the names of the temporaries of this process; for its end, where nothing is destroyed.
  static void remove_all_names();

 private:
  std::string numbered_path(int number) const;
  void remove_abandoned() const;
  void open_without_name(mode_t mode);
  void open_with_name(mode_t mode);
  bool link_name(const std::string& path);
  void copy_under_a_name();
  void remove_name();

  std::string folder_;
  std::string target_;
  std::string asked_;
  // What the names are made of.
  std::string stem_;
  // Empty without a name.
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace tilework
