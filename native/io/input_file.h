// An open input file, read by descriptor and, on request, through a mapping. The file is reference-counted by
// its users; the mapping is released with the last one. The mapping is private and writable, so a stray store
// changes a copy of a page: never the file, and it never kills the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "error.h"
#include "io/fault_guard.h"
#include "io/file_handle.h"

namespace tilework {

class Folder;
struct FolderPlace;

// Changes when someone writes to the file. The status change time is not part of it: renaming a file or
// changing its mode moves that time without touching the bytes.
struct FileStamp {
  int64_t size = 0;
  int64_t seconds = 0;
  int64_t nanoseconds = 0;

  bool operator==(const FileStamp&) const = default;
};

struct InputOptions {
  bool mapped = true;
  // Reads of a truncated mapping give zeros and ERR_FILE_CHANGED instead of SIGBUS; see fault_guard.h.
  bool guard = false;
};

// Whether a file below a folder may have further names, which may lie outside.
enum class HardLinks { kAllow, kRefuse };

class InputFile {
 public:
  using LiveCount = std::shared_ptr<std::atomic<int64_t>>;

  // Opens a regular file. `live` counts the mapped files of one owner. Errors: a system error (EISDIR for a
  // folder), ERR_ARGUMENT for any other kind of file, ERR_OVERFLOW.
  static std::shared_ptr<InputFile> open(const std::string& path, InputOptions options, LiveCount live);

  // Opens `name` below a folder. What is checked is what is open: neither a link that appears meanwhile nor a
  // folder that is replaced leads outside. Errors: as `open`, ERR_PATH_ESCAPE, ERR_FILE_CHANGED where the
  // name keeps changing.
  static std::shared_ptr<InputFile> open_below(const FolderPlace& folder, const std::string& name,
                                               HardLinks hard_links, InputOptions options, LiveCount live);

  // The open file whose mapping contains all of [data, data + size), or null. A job that receives such memory
  // as plain bytes holds the file through this.
  static std::shared_ptr<InputFile> find(const void* data, size_t size);

  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  bool is_mapped() const { return options_.mapped; }
  // Start of the mapping; null without one and for an empty file.
  uint8_t* data() const { return data_; }
  int64_t size() const { return stamp_.size; }
  const std::string& path() const { return path_; }

  // A file descriptor, closed with its last user: the owner until it releases it, and running jobs. Views
  // need only the mapping, so a closed file costs no descriptor while its views wait for garbage collection.
  class Descriptor {
   public:
    explicit Descriptor(FileHandle number) : number_(number) {}
    ~Descriptor();
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    FileHandle number() const { return number_; }

   private:
    FileHandle number_;
  };
  // Null once the owner has released it and no job uses it.
  std::shared_ptr<Descriptor> descriptor() const { return descriptor_.lock(); }
  // Only the owner calls this, when it closes the file.
  void release_descriptor() { owned_descriptor_.reset(); }

  // Fills `to` with bytes [offset, offset + size), which must lie inside size(). Always reads by descriptor,
  // so a truncated file is an error and not a signal. Any thread. Errors: ERR_FILE_CHANGED where the file
  // ends early, ERR_CLOSED without a descriptor, a system error.
  void read_at(uint8_t* to, int64_t offset, int64_t size) const;

  // Errors: ERR_FILE_CHANGED if size or modification time changed since open, or if the guard ever returned
  // zeros. Without a descriptor only the guard is checked. Any thread.
  void verify_unchanged() const;

  // For callers that read the descriptor themselves: ERR_CLOSED if it is missing, ERR_FILE_CHANGED if the
  // file ends early.
  Error closed() const;
  Error ends_at(int64_t offset) const;

 private:
  InputFile(std::string path, InputOptions options, FileHandle descriptor, LiveCount live);
  static std::shared_ptr<InputFile> from_descriptor(FileHandle descriptor, const std::string& path,
                                                    InputOptions options, LiveCount live);
  bool is_sole_file(const Folder& folder, const std::string& name) const;
  void take_stamp();
  FileStamp stamp_now(FileHandle descriptor) const;
  void map();
  static void unmap(uint8_t* data, int64_t size);
  Error changed(const std::string& how) const;

  std::string path_;
  InputOptions options_;
  std::shared_ptr<Descriptor> owned_descriptor_;
  std::weak_ptr<Descriptor> descriptor_;
  LiveCount live_;
  FileStamp stamp_;
  uint8_t* data_ = nullptr;
  // Destroyed before the mapping is.
  std::unique_ptr<FaultGuard> guard_;
};

}  // namespace tilework
