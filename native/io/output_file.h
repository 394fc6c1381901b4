// A file under construction: a temporary beside its target, which takes the target's place on commit.
// Whatever goes wrong before, the old file stays as it was and no temporary is left.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "io/input_file.h"

namespace tilework {

class OutputFile {
 public:
  // Creates the temporary and reserves `byte_length` bytes, so that a full disk is noticed now. A symbolic
  // link is followed: its target is replaced, not the link. An existing target hands down its permissions.
  // Errors: a system error (EISDIR, ENOSPC, ENOENT, ...), ERR_ARGUMENT for a target that is no regular file.
  static std::shared_ptr<OutputFile> create(const std::string& path, int64_t byte_length);

  // Removes the temporaries of this process that were neither committed nor aborted; for the end of the
  // process.
  static void remove_live_temporaries();

  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& temporary_path() const { return temporary_; }

  // Announces a write or copy, so that a commit waits for it. Errors: ERR_CLOSED.
  void begin_write();
  // Takes an announced write back; a failed one makes the commit fail.
  void end_write(bool succeeded);

  // Writes all of the bytes at `position`. Any thread. Errors: a system error, ERR_CLOSED after abort().
  void write(const uint8_t* bytes, int64_t size, int64_t position);
  // Copies bytes [start, end) of another file, from descriptor to descriptor. Errors: as write,
  // ERR_FILE_CHANGED.
  void copy_from(const InputFile& file, int64_t start, int64_t end, int64_t position);

  // Announces the commit: from here on nothing can be written. Errors: ERR_CLOSED.
  void begin_commit();
  // Waits for announced writes, then fsync, rename over the target, fsync of the folder. A failure aborts.
  void commit();
  // Removes the temporary. Does nothing after commit or when called again.
  void abort();

 private:
  enum class State { kOpen, kCommitting, kCommitted, kAborted };

  OutputFile() = default;
  void create_temporary(const std::string& name);
  void reserve(int64_t byte_length);
  void finish_writes();
  void replace_target();
  void check_not_aborted() const;

  std::string folder_;
  std::string target_;
  std::string temporary_;
  // Permissions of the old target; -1 without one.
  int old_mode_ = -1;
  int descriptor_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable writes_ended_;
  State state_ = State::kOpen;
  int64_t pending_writes_ = 0;
  bool write_failed_ = false;
};

}  // namespace tilework
