// Files below an open folder. The names come from files that others wrote, so no name leads out of the
// folder, whatever happens to the folder meanwhile: every step starts from an open descriptor and never from
// a path that was checked before.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "io/file_handle.h"

namespace tilework {

// Where a folder lies: at `path`, or at `inside`, a relative path, below the folder at `path`, out of which
// no link leads then.
struct FolderPlace {
  FolderPlace(std::string at) : path(std::move(at)) {}
  FolderPlace(std::string at, std::string below) : path(std::move(at)), inside(std::move(below)) {}

  // The path of a file in the folder, for messages.
  std::string path_of(const std::string& name) const {
    return path + "/" + (inside == "." ? "" : inside + "/") + name;
  }

  std::string path;
  std::string inside = ".";
};

// An open folder. It stays the same one when its path is renamed or replaced.
class Folder {
 public:
  // Errors: a system error that names `asked`; ERR_PATH_ESCAPE for a place that leads out of its first
  // folder.
  static std::shared_ptr<Folder> open(const FolderPlace& place, const std::string& asked);
  // Creates the folders of `place.inside` that do not exist. Errors: as `open`.
  static void create_below(const FolderPlace& place, const std::string& asked);
  // A folder below this one: `name` is relative, and "." is this folder. Null with errno as for `open_below`.
  std::shared_ptr<Folder> folder_below(const std::string& name) const;
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  FileHandle descriptor() const { return descriptor_; }

  // Opens `name`, a relative path, with the flags of open(), or the access mask of Windows. Symbolic links
  // are followed while they stay below this folder. Returns the descriptor, or -1 with errno: EXDEV for a
  // name that leads out of the folder.
  //
  // On Linux by openat2; where the kernel lacks or forbids that, and on macOS, by `walk_below`. On Windows
  // the system says where the file that was opened lies.
  FileHandle open_below(const std::string& name, int flags) const;
  // As `open_below`: opens one component after the other and resolves each link itself. Not on Windows.
  FileHandle walk_below(const std::string& name, int flags) const;

  // Makes renames in this folder durable. Some file systems cannot sync a folder; then they are as durable as
  // the file system makes them. Errors: a system error that names `asked`.
  void sync(const std::string& asked) const;

 private:
  static std::shared_ptr<Folder> open_path(const std::string& path, const std::string& asked);
  static std::shared_ptr<Folder> shared(FileHandle descriptor, const std::string& path);
  // False with errno; a folder that exists is no failure.
  bool create_folder(const std::string& name) const;
  Folder(FileHandle descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

  FileHandle descriptor_;
  // The path that it was opened by. Only absolute links need it.
  std::string path_;
};

// The part of a path before and after its last slash.
std::string folder_of(const std::string& path);
std::string name_of_path(const std::string& path);

}  // namespace tilework
