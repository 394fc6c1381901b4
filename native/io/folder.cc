#include "io/folder.h"

#include <cerrno>

#include "error.h"

namespace tilework {
namespace {

// Errors: why `errno` says that a folder below another one was not opened.
[[noreturn]] void throw_not_below(const std::string& inside, const std::string& asked) {
  if (errno != EXDEV) throw system_error(errno, "open", asked);
  throw Error(ErrorCode::kPathEscape, "'" + inside + "' lies behind a link that leads out of the folder.",
              asked);
}

}  // namespace

std::shared_ptr<Folder> Folder::open(const FolderPlace& place, const std::string& asked) {
  std::shared_ptr<Folder> folder = open_path(place.path, asked);
  if (place.inside == ".") return folder;
  std::shared_ptr<Folder> below = folder->folder_below(place.inside);
  if (below == nullptr) throw_not_below(place.inside, asked);
  return below;
}

void Folder::create_below(const FolderPlace& place, const std::string& asked) {
  const std::shared_ptr<Folder> root = open_path(place.path, asked);
  std::shared_ptr<Folder> parent = root;
  for (size_t end = 0; end != std::string::npos;) {
    const size_t start = end == 0 ? 0 : end + 1;
    end = place.inside.find('/', start);
    if (!parent->create_folder(place.inside.substr(start, end - start)))
      throw system_error(errno, "mkdir", asked);
    const std::string prefix = place.inside.substr(0, end);
    parent = root->folder_below(prefix);
    if (parent == nullptr) throw_not_below(prefix, asked);
  }
}

}  // namespace tilework
