// A file under construction that replaces its target on commit. If anything fails before, the old file is
// unchanged. temporary_file.h says what may be left of the new file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "io/file_identity.h"
#include "io/folder.h"
#include "io/input_file.h"
#include "io/temporary_file.h"

namespace tilework {

// What a new file may replace: any file, or none. With `kOwn` any file too, but no attributes are taken over:
// only this user may read and write it.
enum class Target { kAny, kNew, kOwn };

class OutputFile {
 public:
  // Creates the temporary file and reserves `byte_length` bytes, so that a full disk is noticed now. Follows
  // a symbolic link: its target is replaced, not the link. Takes over owner, group, permissions, access
  // control list and extended attributes of an existing target. Errors name `path`: a system error (EISDIR,
  // ENOSPC, ENOENT, ...), ERR_ARGUMENT for a target that is not a regular file.
  static std::shared_ptr<OutputFile> create(const std::string& path, int64_t byte_length);

  // As `create`, for a name below a folder: links that lead out of the folder are refused whenever they
  // appear, and a link of that name is itself replaced. With `kNew` the commit fails with EEXIST if a file
  // has the name by then. Errors: also ERR_PATH_ESCAPE.
  static std::shared_ptr<OutputFile> create_below(const FolderPlace& folder, const std::string& name,
                                                  Target target, int64_t byte_length);

  // All paths that `create` may create or replace: the file at the end of a chain of links first, then
  // temporary files. Errors: a system error.
  static std::vector<std::string> paths_of(const std::string& path);

  // Aborts.
  ~OutputFile() = default;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // As given by the caller.
  const std::string& path() const { return path_; }

  // Announces a write or copy, so that a sync or commit waits for it. Errors: ERR_CLOSED, also while a sync
  // is announced: a sync that waited for later writes could hold the thread that those writes wait for.
  void begin_write();
  // Ends an announced write. A failed write makes the commit fail.
  void end_write(bool succeeded);

  // Writes all bytes at `position`. Any thread, concurrently. Errors: a system error, ERR_CLOSED after
  // abort().
  void write(const uint8_t* bytes, int64_t size, int64_t position);
  // Copies bytes [start, end) of another file, descriptor to descriptor. Errors: as write,
  // ERR_FILE_CHANGED, ERR_CLOSED for a source without a descriptor.
  void copy_from(const InputFile& file, int64_t start, int64_t end, int64_t position);

  // Announces a sync, so that a commit waits for it. Errors: ERR_CLOSED.
  void begin_sync();
  // Ends an announced sync.
  void end_sync();
  // Waits for announced writes, then calls fsync, so that a commit has little left to do unless more is
  // written. A failure aborts. Errors: a system error, ERR_IO after a failed write, ERR_CLOSED.
  void sync();

  // Announces the commit: no further write is accepted. Errors: ERR_CLOSED.
  void begin_commit();
  // Waits for announced writes and syncs, calls fsync if bytes are not synced yet, renames over the target,
  // and calls fsync on the folder. Then closes the descriptor. A failure aborts.
  void commit();
  // Identifies the file under its name. After sync(), or a commit. Errors: ERR_CLOSED.
  FileIdentity identity() const;
  // Releases disk space and descriptor as soon as no write or commit uses them. Does nothing after commit or
  // a second time.
  void abort();

 private:
  enum class State { kOpen, kCommitting, kCommitted, kAborted };

  OutputFile() = default;
  // End of a chain of symbolic links; the file need not exist.
  static std::string follow_links(const std::string& asked);
  void reserve(int64_t byte_length);
  static std::shared_ptr<OutputFile> create_at(const std::string& path, std::shared_ptr<const Folder> folder,
                                               const std::string& name, Target target, int64_t byte_length);
  std::shared_ptr<TemporaryFile> opened() const;
  std::shared_ptr<TemporaryFile> finish_writes();
  void start_writeback(const TemporaryFile& temporary, int64_t written);
  void wait_for_syncs();
  void sync_once(const TemporaryFile& temporary);
  void replace_target(TemporaryFile& temporary);
  Error closed() const;

  std::string path_;
  Target target_ = Target::kAny;
  // Released with the temporary file.
  std::shared_ptr<const Folder> folder_;
  mutable std::mutex mutex_;
  // Notified at the end of a sync too.
  std::condition_variable writes_ended_;
  State state_ = State::kOpen;
  int64_t pending_writes_ = 0;
  int64_t pending_syncs_ = 0;
  bool write_failed_ = false;
  // No write since the last fsync.
  bool is_synced_ = false;
  // Once it is committed.
  FileIdentity identity_;
  // Written bytes whose writeback was not started yet.
  std::atomic<int64_t> not_started_{0};
  // Null after commit and abort; running writes hold it too.
  std::shared_ptr<TemporaryFile> temporary_;
};

}  // namespace tilework
