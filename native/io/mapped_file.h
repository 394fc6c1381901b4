// A file mapped into memory, counted by its users: the memory goes when the last of them does. The map is
// private and writable, so a stray store changes a copy of a page and never the file, and never kills the
// process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace tilework {

// What tells that someone else wrote to the file. The time of status changes is left out on purpose: a rename
// or a change of mode moves it, and neither touches the bytes.
struct FileStamp {
  int64_t size = 0;
  int64_t seconds = 0;
  int64_t nanoseconds = 0;

  bool operator==(const FileStamp&) const = default;
};

class MappedFile {
 public:
  using LiveCount = std::shared_ptr<std::atomic<int64_t>>;

  // Maps a regular file; one of 0 bytes has no memory. `live` counts the mappings of an owner while they
  // live. Errors: a system error (EISDIR for a folder), ERR_ARGUMENT for what is no regular file,
  // ERR_OVERFLOW.
  static std::shared_ptr<MappedFile> open(const std::string& path, LiveCount live);

  // The live mapping that holds all of [data, data + size), or null. Memory of a mapping that reaches a job
  // as plain bytes is held by this.
  static std::shared_ptr<MappedFile> find(const void* data, size_t size);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  uint8_t* data() const { return data_; }
  int64_t size() const { return stamp_.size; }
  const std::string& path() const { return path_; }
  // An open file descriptor, closed with its last user: the owner until it releases it, and running jobs.
  // Views need the mapping alone, so files that were closed cost no descriptor while their views wait for
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

  // Does nothing without a descriptor. Errors: ERR_FILE_CHANGED if size or modification time moved since the
  // file was opened.
  void verify_unchanged() const;

 private:
  MappedFile(std::string path, int descriptor, LiveCount live);
  void map();

  std::string path_;
  std::shared_ptr<Descriptor> owned_descriptor_;
  std::weak_ptr<Descriptor> descriptor_;
  LiveCount live_;
  FileStamp stamp_;
  uint8_t* data_ = nullptr;
};

}  // namespace tilework
