// A file under construction, which takes its target's place on commit. Whatever goes wrong before, the old
// file stays as it was; what is left of the new one, and when, stands in temporary_file.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "io/input_file.h"
#include "io/temporary_file.h"

namespace tilework {

class OutputFile {
 public:
  // Creates the temporary and reserves `byte_length` bytes, so that a full disk is noticed now. A symbolic
  // link is followed: its target is replaced, not the link. An existing target hands down its permissions.
  // Errors name `path`: a system error (EISDIR, ENOSPC, ENOENT, ...), ERR_ARGUMENT for a target that is no
  // regular file.
  static std::shared_ptr<OutputFile> create(const std::string& path, int64_t byte_length);

  // As abort().
  ~OutputFile() = default;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // As the user gave it.
  const std::string& path() const { return path_; }

  // Announces a write or copy, so that a sync or commit waits for it. Errors: ERR_CLOSED, also while a sync
  // is announced: one that waited for later writes could keep them from the thread that they wait for.
  void begin_write();
  // Takes an announced write back; a failed one makes the commit fail.
  void end_write(bool succeeded);

  // Writes all of the bytes at `position`. Any thread, several at a time. Errors: a system error, ERR_CLOSED
  // after abort().
  void write(const uint8_t* bytes, int64_t size, int64_t position);
  // Copies bytes [start, end) of another file, from descriptor to descriptor. Errors: as write,
  // ERR_FILE_CHANGED, ERR_CLOSED for a source without descriptor.
  void copy_from(const InputFile& file, int64_t start, int64_t end, int64_t position);

  // Announces a sync, so that a commit waits for it. Errors: ERR_CLOSED.
  void begin_sync();
  // Takes an announced sync back.
  void end_sync();
  // Waits for announced writes, then fsync: a commit has little left to do, unless something is written
  // meanwhile. A failure aborts. Errors: a system error, ERR_IO after a failed write, ERR_CLOSED.
  void sync();

  // Announces the commit: from here on nothing can be written. Errors: ERR_CLOSED.
  void begin_commit();
  // Waits for announced writes and syncs, then fsync where bytes are not synced yet, rename over the target,
  // fsync of the folder. The descriptor is closed then. A failure aborts.
  void commit();
  // Gives disk and descriptor back as soon as no write or commit uses them. Does nothing after commit or when
  // called again.
  void abort();

 private:
  enum class State { kOpen, kCommitting, kCommitted, kAborted };

  OutputFile() = default;
  void reserve(int64_t byte_length);
  void hand_down_permissions(int old_mode);
  std::shared_ptr<TemporaryFile> opened() const;
  std::shared_ptr<TemporaryFile> finish_writes();
  void start_writeback(const TemporaryFile& temporary, int64_t written);
  void wait_for_syncs();
  void sync_once(const TemporaryFile& temporary);
  void replace_target(TemporaryFile& temporary);
  Error closed() const;

  std::string path_;
  std::string folder_;
  mutable std::mutex mutex_;
  // Told of syncs too.
  std::condition_variable writes_ended_;
  State state_ = State::kOpen;
  int64_t pending_writes_ = 0;
  int64_t pending_syncs_ = 0;
  bool write_failed_ = false;
  // Nothing was written since the last fsync.
  bool is_synced_ = false;
  // Bytes for which the disk was not told to begin.
  std::atomic<int64_t> not_started_{0};
  // Null after commit and abort; running writes hold it too.
  std::shared_ptr<TemporaryFile> temporary_;
};

}  // namespace tilework
