// A file that is read: by its descriptor, and through a map where one was asked for. It is counted by its
// users, and the memory goes when the last of them does. The map is private and writable, so a stray store
// changes a copy of a page and never the file, and never kills the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "error.h"
#include "io/fault_guard.h"

namespace tilework {

// What tells that someone else wrote to the file. The time of status changes is left out on purpose: a rename
// or a change of mode moves it, and neither touches the bytes.
struct FileStamp {
  int64_t size = 0;
  int64_t seconds = 0;
  int64_t nanoseconds = 0;

  bool operator==(const FileStamp&) const = default;
};

// What tells a file from every other one, whatever it is called.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  // Names that the file has (hard links).
  uint64_t links = 0;
};

struct InputOptions {
  bool mapped = true;
  // Zeros and ERR_FILE_CHANGED instead of the process's death when a mapped file loses bytes; see
  // fault_guard.h.
  bool guard = false;
};

class InputFile {
 public:
  using LiveCount = std::shared_ptr<std::atomic<int64_t>>;

  // Opens a regular file. `live` counts the mapped files of an owner while they live. Errors: a system error
  // (EISDIR for a folder), ERR_ARGUMENT for what is no regular file, ERR_OVERFLOW.
  static std::shared_ptr<InputFile> open(const std::string& path, InputOptions options, LiveCount live);

  // The live file whose map holds all of [data, data + size), or null. Memory of a map that reaches a job as
  // plain bytes is held by this.
  static std::shared_ptr<InputFile> find(const void* data, size_t size);

  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  bool is_mapped() const { return options_.mapped; }
  // The map; null without one, and for a file of 0 bytes.
  uint8_t* data() const { return data_; }
  int64_t size() const { return stamp_.size; }
  const std::string& path() const { return path_; }

  // An open file descriptor, closed with its last user: the owner until it releases it, and running jobs.
  // Views need the map alone, so files that were closed cost no descriptor while their views wait for
  // collection.
  class Descriptor {
   public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor();
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int number() const { return number_; }

   private:
    int number_;
  };
  // Null once the owner has released it and no job uses it.
  std::shared_ptr<Descriptor> descriptor() const { return descriptor_.lock(); }
  // Called by the owner only, at its close.
  void release_descriptor() { owned_descriptor_.reset(); }

  // Fills `to` with the bytes [offset, offset + size), always by descriptor, so that a file that was
  // truncated is an error and no signal. The range lies inside size(). Any thread. Errors: ERR_FILE_CHANGED
  // where the file ends early, ERR_CLOSED without a descriptor, a system error.
  void read_at(uint8_t* to, int64_t offset, int64_t size) const;

  // Without a descriptor only what the guard saw is known. Any thread. Errors: ERR_FILE_CHANGED if size or
  // modification time moved since the file was opened, or if the guard ever gave zeros.
  void verify_unchanged() const;

  // Of what is open, not of what has its name by now. Errors: ERR_CLOSED, a system error.
  FileIdentity identity() const;

  // For those who read the descriptor themselves: ERR_CLOSED for a missing one, ERR_FILE_CHANGED for an early
  // end.
  Error closed() const;
  Error ends_at(int64_t offset) const;

 private:
  InputFile(std::string path, InputOptions options, int descriptor, LiveCount live);
  void take_stamp();
  void map();
  Error changed(const std::string& how) const;

  std::string path_;
  InputOptions options_;
  std::shared_ptr<Descriptor> owned_descriptor_;
  std::weak_ptr<Descriptor> descriptor_;
  LiveCount live_;
  FileStamp stamp_;
  uint8_t* data_ = nullptr;
  // Goes before the map does.
  std::unique_ptr<FaultGuard> guard_;
};

}  // namespace tilework
