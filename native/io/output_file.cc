#include "io/output_file.h"

#include <cerrno>
#include <utility>

#include "error.h"
#include "io/checked_math.h"
#include "io/descriptor_io.h"

namespace tilework {

std::shared_ptr<OutputFile> OutputFile::create(const std::string& path, int64_t byte_length) {
  const std::string target = follow_links(path);
  const std::string name = name_of_path(target);
  if (name.empty() || name == "." || name == "..")
    throw system_error(path.empty() ? ENOENT : EISDIR, "open", path);
  return create_at(path, Folder::open(folder_of(target), path), name, Target::kAny, byte_length);
}

std::vector<std::string> OutputFile::paths_of(const std::string& path) {
  const std::string target = follow_links(path);
  const std::string parent = folder_of(target);
  const std::string prefix = parent.ends_with('/') ? parent : parent + "/";
  std::vector<std::string> paths = {target};
  const auto folder = Folder::open(parent, path);
  for (const std::string& name : TemporaryFile::all_names(*folder, name_of_path(target))) {
    paths.push_back(prefix + name);
  }
  return paths;
}

std::shared_ptr<OutputFile> OutputFile::create_below(const FolderPlace& folder, const std::string& name,
                                                     Target target, int64_t byte_length) {
  const std::string path = folder.path_of(name);
  const auto below = Folder::open(folder, path)->folder_below(folder_of(name));
  if (below == nullptr && errno == EXDEV) {
    throw Error(ErrorCode::kPathEscape, "'" + name + "' lies behind a link that leads out of the folder.",
                name);
  }
  if (below == nullptr) throw system_error(errno, "open", path);
  return create_at(path, below, name_of_path(name), target, byte_length);
}

Error OutputFile::closed() const {
  return Error(ErrorCode::kClosed, "The output file '" + path_ + "' was already committed or aborted.",
               path_);
}

void OutputFile::begin_write() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen) throw closed();
  if (pending_syncs_ > 0) {
    throw Error(ErrorCode::kClosed, "'" + path_ + "' cannot be written while a sync is pending.", path_);
  }
  ++pending_writes_;
  is_synced_ = false;
}

void OutputFile::end_write(bool succeeded) {
  const std::lock_guard lock(mutex_);
  --pending_writes_;
  write_failed_ = write_failed_ || !succeeded;
  writes_ended_.notify_all();
}

std::shared_ptr<TemporaryFile> OutputFile::opened() const {
  const std::lock_guard lock(mutex_);
  if (temporary_ == nullptr) throw closed();
  return temporary_;
}

void OutputFile::write(const uint8_t* bytes, int64_t size, int64_t position) {
  const std::shared_ptr<TemporaryFile> temporary = opened();
  checked_add(position, size, "The end of a write");
  write_fully({temporary->descriptor(), position, path_}, bytes, size);
  start_writeback(*temporary, size);
}

void OutputFile::copy_from(const InputFile& file, int64_t start, int64_t end, int64_t position) {
  const std::shared_ptr<TemporaryFile> temporary = opened();
  checked_add(position, end - start, "The end of a copy");
  const auto source = file.descriptor();
  if (source == nullptr) throw file.closed();
  file.verify_unchanged();
  const int64_t copied = copy_fully({source->number(), start, file.path()},
                                    {temporary->descriptor(), position, path_}, end - start);
  file.verify_unchanged();
  if (copied < end - start) throw file.ends_at(start + copied);
  start_writeback(*temporary, copied);
}

void OutputFile::begin_sync() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen) throw closed();
  ++pending_syncs_;
}

void OutputFile::end_sync() {
  const std::lock_guard lock(mutex_);
  --pending_syncs_;
  writes_ended_.notify_all();
}

void OutputFile::sync() {
  try {
    sync_once(*finish_writes());
  } catch (...) {
    abort();
    throw;
  }
}

void OutputFile::sync_once(const TemporaryFile& temporary) {
  {
    const std::lock_guard lock(mutex_);
    if (is_synced_) return;
  }
  sync_file(temporary.descriptor(), path_);
  // No write was announced in the meantime: syncs and commits exclude new ones.
  const std::lock_guard lock(mutex_);
  is_synced_ = true;
}

void OutputFile::begin_commit() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen) throw closed();
  state_ = State::kCommitting;
}

void OutputFile::commit() {
  try {
    wait_for_syncs();
    const std::shared_ptr<TemporaryFile> temporary = finish_writes();
    sync_once(*temporary);
    if (target_ != Target::kNew) temporary->take_name();
    replace_target(*temporary);
  } catch (...) {
    abort();
    throw;
  }
  std::exchange(folder_, nullptr)->sync(path_);
}

// take_name() may replace the descriptor, which a running sync still needs.
void OutputFile::wait_for_syncs() {
  std::unique_lock lock(mutex_);
  writes_ended_.wait(lock, [this] { return pending_syncs_ == 0; });
}

std::shared_ptr<TemporaryFile> OutputFile::finish_writes() {
  std::unique_lock lock(mutex_);
  writes_ended_.wait(lock, [this] { return pending_writes_ == 0; });
  if (temporary_ == nullptr) throw closed();
  if (write_failed_) {
    throw Error(ErrorCode::kIo, "An earlier write to '" + path_ + "' failed; the old file was kept.", path_);
  }
  return temporary_;
}

void OutputFile::replace_target(TemporaryFile& temporary) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kAborted) throw closed();
  // Nothing may fail once the file has its name.
  const FileHandle descriptor = temporary.descriptor();
  identity_ = identity_of(descriptor, path_);
  if (target_ == Target::kNew) {
    temporary.take_target_name();
  } else {
    temporary.replace_target();
  }
  // Where the system refused to give a name to the file, a copy has it.
  if (temporary.descriptor() != descriptor) identity_ = identity_of(temporary.descriptor(), path_);
  state_ = State::kCommitted;
  temporary_.reset();
}

FileIdentity OutputFile::identity() const {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kCommitted) return identity_;
  if (temporary_ == nullptr) throw closed();
  return identity_of(temporary_->descriptor(), path_);
}

void OutputFile::abort() {
  std::shared_ptr<TemporaryFile> temporary;
  const std::lock_guard lock(mutex_);
  if (state_ == State::kCommitted || state_ == State::kAborted) return;
  state_ = State::kAborted;
  temporary = std::move(temporary_);
  folder_.reset();
}

}  // namespace tilework
