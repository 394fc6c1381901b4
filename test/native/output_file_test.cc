#include "io/output_file.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#ifdef __linux__
#include <sched.h>
#include <sys/xattr.h>
#endif

#include "check.h"
#include "child_process.h"
#include "io/checked_math.h"
#include "temporary_folder.h"

namespace tilework::test {
namespace {

void put(OutputFile& file, const std::string& text, int64_t position) {
  file.begin_write();
  file.write(reinterpret_cast<const uint8_t*>(text.data()), static_cast<int64_t>(text.size()), position);
  file.end_write(true);
}

void commit(OutputFile& file) {
  file.begin_commit();
  file.commit();
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

void test_commit() {
  const TemporaryFolder folder;
  const auto file = OutputFile::create(folder.path("new"), 6);
  put(*file, "def", 3);
  put(*file, "abc", 0);
  CHECK(folder.read("new").empty());
  commit(*file);
  CHECK(folder.read("new") == "abcdef");
  CHECK(folder.entries() == 1);
  const mode_t mask = umask(0);
  umask(mask);
  CHECK(mode_of(folder.path("new")) == (0666 & ~mask));
  file->abort();
  CHECK(folder.read("new") == "abcdef");
  CHECK(code_of([&] { file->begin_write(); }) == "ERR_CLOSED");
  CHECK(code_of([&] { file->begin_commit(); }) == "ERR_CLOSED");
}

void test_abort() {
  const TemporaryFolder folder;
  folder.write("old", "old content");
  auto file = OutputFile::create(folder.path("old"), 3);
  put(*file, "new", 0);
  file->abort();
  file->abort();
  CHECK(folder.read("old") == "old content");
  CHECK(folder.entries() == 1);
  CHECK(code_of([&] { file->write(nullptr, 0, 0); }) == "ERR_CLOSED");
  // A destroyed output is aborted.
  file = OutputFile::create(folder.path("old"), 3);
  file.reset();
  CHECK(folder.entries() == 1);
}

void test_failed_write_fails_the_commit() {
  const TemporaryFolder folder;
  folder.write("old", "old content");
  const auto file = OutputFile::create(folder.path("old"), 3);
  file->begin_write();
  file->end_write(false);
  file->begin_commit();
  CHECK(code_of([&] { file->commit(); }) == "ERR_IO");
  CHECK(folder.read("old") == "old content");
  CHECK(folder.entries() == 1);
}

void sync(OutputFile& file) {
  file.begin_sync();
  file.sync();
  file.end_sync();
}

void test_sync() {
  const TemporaryFolder folder;
  const auto file = OutputFile::create(folder.path("target"), 0);
  put(*file, "abc", 0);
  file->begin_sync();
  CHECK(code_of([&] { file->begin_write(); }) == "ERR_CLOSED");
  file->sync();
  file->end_sync();
  CHECK(!std::filesystem::exists(folder.path("target")));
  // Writes may follow a sync, and so may another sync.
  put(*file, "def", 3);
  sync(*file);
  sync(*file);
  commit(*file);
  CHECK(folder.read("target") == "abcdef");
  CHECK(code_of([&] { file->begin_sync(); }) == "ERR_CLOSED");

  const auto failed = OutputFile::create(folder.path("target"), 0);
  failed->begin_write();
  failed->end_write(false);
  failed->begin_sync();
  CHECK(code_of([&] { failed->sync(); }) == "ERR_IO");
  failed->end_sync();
  CHECK(code_of([&] { failed->begin_commit(); }) == "ERR_CLOSED");
  CHECK(folder.read("target") == "abcdef");
  CHECK(folder.entries() == 1);

  const auto aborted = OutputFile::create(folder.path("target"), 0);
  aborted->begin_sync();
  aborted->abort();
  CHECK(code_of([&] { aborted->sync(); }) == "ERR_CLOSED");
  aborted->end_sync();
}

void test_sync_waits_for_writes_and_commit_for_syncs() {
  const TemporaryFolder folder;
  const auto file = OutputFile::create(folder.path("late"), 0);
  file->begin_write();
  file->begin_sync();
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    file->write(reinterpret_cast<const uint8_t*>("late"), 4, 0);
    file->end_write(true);
  });
  std::atomic<bool> is_synced{false};
  std::thread syncer([&] {
    file->sync();
    is_synced = true;
    file->end_sync();
  });
  commit(*file);
  CHECK(is_synced);
  CHECK(folder.read("late") == "late");
  writer.join();
  syncer.join();
}

void test_commit_waits_for_writes() {
  const TemporaryFolder folder;
  const auto file = OutputFile::create(folder.path("late"), 0);
  file->begin_write();
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    file->write(reinterpret_cast<const uint8_t*>("late"), 4, 0);
    file->end_write(true);
  });
  commit(*file);
  CHECK(folder.read("late") == "late");
  writer.join();
}

void test_targets() {
  const TemporaryFolder folder;
  folder.write("private", "x");
  CHECK(chmod(folder.path("private").c_str(), 0640) == 0);
  auto file = OutputFile::create(folder.path("private"), 1);
  commit(*file);
  CHECK(mode_of(folder.path("private")) == 0640);

  // Links stay links, dangling ones too; their target is written.
  CHECK(symlink("private", folder.path("link").c_str()) == 0);
  file = OutputFile::create(folder.path("link"), 3);
  put(*file, "via", 0);
  commit(*file);
  CHECK(folder.read("private") == "via");
  CHECK(std::filesystem::is_symlink(folder.path("link")));
  CHECK(symlink("nowhere", folder.path("dangling").c_str()) == 0);
  commit(*OutputFile::create(folder.path("dangling"), 0));
  CHECK(std::filesystem::is_regular_file(folder.path("nowhere")));
  CHECK(symlink("loop", folder.path("loop").c_str()) == 0);
  CHECK(code_of([&] { OutputFile::create(folder.path("loop"), 0); }) == "ELOOP");

  CHECK(code_of([&] { OutputFile::create(folder.path("."), 0); }) == "EISDIR");
  CHECK(code_of([&] { OutputFile::create(folder.path(""), 0); }) == "EISDIR");
  CHECK(code_of([&] { OutputFile::create("", 0); }) == "ENOENT");
  CHECK(code_of([&] { OutputFile::create("/dev/null", 0); }) == "ERR_ARGUMENT");
  CHECK(code_of([&] { OutputFile::create(folder.path("no/such/folder"), 0); }) == "ENOENT");
  const size_t before = folder.entries();
  const std::string too_large = code_of([&] { OutputFile::create(folder.path("large"), int64_t{1} << 52); });
  CHECK(too_large == "ENOSPC" || too_large == "EFBIG");
  CHECK(folder.entries() == before);
  commit(*OutputFile::create(folder.path(std::string(255, 'n')), 0));
  CHECK(std::filesystem::exists(folder.path(std::string(255, 'n'))));
}

// `elsewhere` on another file system makes the kernel refuse the copy, so the buffered copy runs.
void test_copy(const TemporaryFolder& elsewhere) {
  const TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 300000; ++i) content += static_cast<char>(i * 31 + i / 256);
  const auto source = InputFile::open(elsewhere.write("source", content), {}, nullptr);
  const auto file = OutputFile::create(folder.path("copy"), 0);
  put(*file, "head", 0);
  file->begin_write();
  file->copy_from(*source, 17, 299999, 4);
  file->end_write(true);
  commit(*file);
  CHECK(folder.read("copy") == "head" + content.substr(17, 299999 - 17));
  elsewhere.write("source", "shorter");
  const auto other = OutputFile::create(folder.path("other"), 0);
  CHECK(code_of([&] { other->copy_from(*source, 0, 300000, 0); }) == "ERR_FILE_CHANGED");
}

size_t open_descriptors() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                           std::filesystem::directory_iterator()));
}

// The descriptor is released before the object, which JavaScript may keep for long.
void test_descriptors_go_back() {
  if (!std::filesystem::exists("/proc/self/fd")) {
    std::puts("Descriptors are not counted: there is no /proc.");
    return;
  }
  const TemporaryFolder folder;
  const size_t before = open_descriptors();
  const auto committed = OutputFile::create(folder.path("committed"), 10);
  // The file and its folder.
  CHECK(open_descriptors() == before + 2);
  commit(*committed);
  CHECK(open_descriptors() == before);
  const auto aborted = OutputFile::create(folder.path("aborted"), 10);
  aborted->abort();
  CHECK(open_descriptors() == before);
  const auto failed = OutputFile::create(folder.path("failed"), 10);
  failed->begin_write();
  failed->end_write(false);
  failed->begin_commit();
  CHECK(code_of([&] { failed->commit(); }) == "ERR_IO");
  CHECK(open_descriptors() == before);
  // The folder of this target is removed before the commit.
  CHECK(mkdir(folder.path("sub").c_str(), 0700) == 0);
  const auto homeless = OutputFile::create(folder.path("sub/target"), 10);
  std::filesystem::remove_all(folder.path("sub"));
  homeless->begin_commit();
  CHECK(code_of([&] { homeless->commit(); }) == "ENOENT");
  CHECK(open_descriptors() == before);
}

// Aborts while writes run on other threads.
void test_abort_under_writes() {
  const TemporaryFolder folder;
  for (int round = 0; round < 20; ++round) {
    const auto file = OutputFile::create(folder.path("target"), 0);
    std::vector<std::thread> writers;
    for (int t = 0; t < 4; ++t) {
      file->begin_write();
      writers.emplace_back([&file, t] {
        const std::vector<uint8_t> bytes(1 << 20, static_cast<uint8_t>(t));
        const std::string code = code_of([&] { file->write(bytes.data(), 1 << 20, int64_t{t} << 20); });
        CHECK(code.empty() || code == "ERR_CLOSED");
        file->end_write(code.empty());
      });
    }
    file->abort();
    for (std::thread& writer : writers) writer.join();
    CHECK(folder.entries() == 0);
    CHECK(code_of([&] { file->begin_commit(); }) == "ERR_CLOSED");
  }
}

// Result of a child process: whether the error has this code and system call, and names the given file.
int verdict(const std::string& path, const std::string& code, const std::string& syscall,
            const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    const bool as_expected = error.name() == code && error.syscall() == syscall && error.path() == path &&
                             std::string(error.what()).find("tilework-tmp") == std::string::npos;
    if (!as_expected) std::fprintf(stderr, "%s (%s)\n", error.what(), error.path().c_str());
    return as_expected ? 0 : 1;
  }
  return 2;
}

void replace(const std::string& path) {
  const auto file = OutputFile::create(path, 3);
  put(*file, "new", 0);
  commit(*file);
}

void test_attributes() {
  const TemporaryFolder folder;
  const std::string path = folder.write("target", "old");
  // A mode that no usual mask gives.
  CHECK(chmod(path.c_str(), 0714) == 0);
#ifdef __linux__
  const bool has_extended = setxattr(path.c_str(), "user.note", "kept", 4, 0) == 0;
  // Version 2; owner rwx, user 12345 r--, group --x, mask r-x, others r--.
  const uint8_t list[] = {2, 0,  0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  4,
                          0, 57, 48,  0,   0,   4,   0,  1, 0,   255, 255, 255, 255, 16, 0,
                          5, 0,  255, 255, 255, 255, 32, 0, 4,   0,   255, 255, 255, 255};
  const bool has_list = setxattr(path.c_str(), "system.posix_acl_access", list, sizeof(list), 0) == 0;
#endif
  const bool is_root = geteuid() == 0;
  if (is_root) CHECK(chown(path.c_str(), 12345, 23456) == 0);
  if (is_root) CHECK(chmod(path.c_str(), 04754) == 0);
  struct stat before {};
  CHECK(stat(path.c_str(), &before) == 0);
  replace(path);
  struct stat after {};
  CHECK(stat(path.c_str(), &after) == 0);
  CHECK(folder.read("target") == "new");
  CHECK(after.st_ino != before.st_ino);
  CHECK(after.st_mode == before.st_mode && after.st_uid == before.st_uid && after.st_gid == before.st_gid);
#ifdef __linux__
  char value[64];
  if (has_extended) CHECK(getxattr(path.c_str(), "user.note", value, sizeof(value)) == 4);
  if (has_list)
    CHECK(getxattr(path.c_str(), "system.posix_acl_access", value, sizeof(value)) == sizeof(list));
  if (!has_extended || !has_list) std::puts("Not all attributes are tested: the file system has none.");
#endif
}

// What an unprivileged process may not keep never widens access.
void test_attributes_of_another_owner() {
  if (geteuid() != 0) return;
  const TemporaryFolder folder;
  const std::string path = folder.write("target", "old");
  CHECK(chown(path.c_str(), 12345, 23456) == 0);
  CHECK(chmod(path.c_str(), 06664) == 0);
  CHECK(chmod(folder.path("").c_str(), 0777) == 0);
  const int status = status_of_child([&] {
    if (setgid(54321) != 0 || setuid(54321) != 0) _exit(1);
    replace(path);
  });
  CHECK(ended_with(status, 0));
  struct stat after {};
  CHECK(stat(path.c_str(), &after) == 0);
  CHECK(after.st_uid == 54321 && after.st_gid == 54321);
  CHECK((after.st_mode & 07777) == 0644);
}

void test_below_a_folder() {
  const TemporaryFolder folder;
  CHECK(mkdir(folder.path("in").c_str(), 0755) == 0);
  CHECK(mkdir(folder.path("in/sub").c_str(), 0755) == 0);
  CHECK(symlink("..", folder.path("in/out").c_str()) == 0);
  folder.write("outside", "outside");
  CHECK(symlink("../outside", folder.path("in/link").c_str()) == 0);
  const auto write = [&](const std::string& name, Target target) {
    const auto file = OutputFile::create_below(folder.path("in"), name, target, 3);
    put(*file, "new", 0);
    commit(*file);
    return file->identity();
  };
  CHECK(code_of([&] { write("out/file", Target::kAny); }) == "ERR_PATH_ESCAPE");
  CHECK(code_of([&] { write("none/file", Target::kAny); }) == "ENOENT");
  const FileIdentity identity = write("sub/file", Target::kNew);
  CHECK(folder.read("in/sub/file") == "new");
  CHECK(code_of([&] { write("sub/file", Target::kNew); }) == "EEXIST");
  write("link", Target::kAny);
  CHECK(folder.read("in/link") == "new");
  CHECK(folder.read("outside") == "outside");
  CHECK(remove_below(folder.path("in"), "sub/file", identity));
  // Nothing of an old file is taken over: only this user may use the new one.
  folder.write("in/journal", "old");
  CHECK(chmod(folder.path("in/journal").c_str(), 0666) == 0);
  write("journal", Target::kOwn);
  struct stat own {};
  CHECK(stat(folder.path("in/journal").c_str(), &own) == 0 && (own.st_mode & 07777) == 0600);
  CHECK(!std::filesystem::exists(folder.path("in/sub/file")));
}

// A folder without permission. Root may write anywhere, so root changes to another user first.
void test_forbidden_folder() {
  const TemporaryFolder folder;
  CHECK(chmod(folder.path("").c_str(), 0555) == 0);
  const std::string path = folder.path("target");
  CHECK(ended_with(status_of_child([&] {
                     if (geteuid() == 0 && setuid(65534) != 0) _exit(9);
                     _exit(verdict(path, "EACCES", "open", [&] { OutputFile::create(path, 10); }));
                   }),
                   0));
  CHECK(chmod(folder.path("").c_str(), 0755) == 0);
}

#ifdef __linux__
// Uses its own file system of 1 MiB, which disappears with the child.
void test_full_disk_and_read_only() {
  const TemporaryFolder folder;
  const std::string mounted = folder.path("");
  const std::string path = folder.path("target");
  constexpr int kNoMount = 99;
  const auto on_small_disk = [&](const std::function<int()>& body) {
    return status_of_child([&] {
      const bool is_mounted = unshare(CLONE_NEWNS) == 0 &&
                              mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                              mount("tilework", mounted.c_str(), "tmpfs", 0, "size=1m") == 0;
      _exit(is_mounted ? body() : kNoMount);
    });
  };
  const std::vector<uint8_t> bytes(2 << 20, 1);
  const int reserving = on_small_disk([&] {
    const int found = verdict(path, "ENOSPC", "fallocate", [&] { OutputFile::create(path, 2 << 20); });
    return found == 0 && folder.entries() == 0 ? 0 : 1;
  });
  if (ended_with(reserving, kNoMount)) {
    std::puts("A full disk is not tested: this user may not mount one.");
    return;
  }
  CHECK(ended_with(reserving, 0));
  const int writing = on_small_disk([&] {
    folder.write("target", "old");
    const auto file = OutputFile::create(path, 0);
    const int found = verdict(path, "ENOSPC", "pwrite", [&] { file->write(bytes.data(), 2 << 20, 0); });
    file->abort();
    // The disk space is free again and the old file is intact.
    commit(*OutputFile::create(folder.path("other"), 900 << 10));
    return found == 0 && folder.read("target") == "old" && folder.entries() == 2 ? 0 : 1;
  });
  CHECK(ended_with(writing, 0));
  // The leftover of a killed save is removed before the next one reserves space.
  const int after_kill = on_small_disk([&] {
    folder.write(".target.tilework-tmp", std::string(900 << 10, 'x'));
    commit(*OutputFile::create(path, 900 << 10));
    return folder.entries() == 1 ? 0 : 1;
  });
  CHECK(ended_with(after_kill, 0));
  const int read_only = on_small_disk([&] {
    if (mount(nullptr, mounted.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) return 1;
    return verdict(path, "EROFS", "open", [&] { OutputFile::create(path, 10); });
  });
  CHECK(ended_with(read_only, 0));
}
#else
void test_full_disk_and_read_only() { std::puts("A full disk is not tested: it needs a mount of Linux."); }
#endif

void test_errors_name_what_was_asked_for() {
  const TemporaryFolder folder;
  const std::string missing = folder.path("no/such/target");
  CHECK(verdict(missing, "ENOENT", "open", [&] { OutputFile::create(missing, 0); }) == 0);
  const std::string under_file = folder.write("file", "x") + "/target";
  CHECK(verdict(under_file, "ENOTDIR", "open", [&] { OutputFile::create(under_file, 0); }) == 0);
  const std::string path = folder.path("target");
  const auto file = OutputFile::create(path, 0);
  CHECK(code_of([&] { file->write(nullptr, 2, kMaxSafeInteger); }) == "ERR_OVERFLOW");
  CHECK(verdict(path, "EFBIG", "pwrite",
                [&] { file->write(reinterpret_cast<const uint8_t*>("x"), 1, kMaxSafeInteger - 1); }) == 0);
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  test_commit();
  test_abort();
  test_failed_write_fails_the_commit();
  test_sync();
  test_sync_waits_for_writes_and_commit_for_syncs();
  test_commit_waits_for_writes();
  test_targets();
  test_copy(TemporaryFolder());
  test_descriptors_go_back();
  test_abort_under_writes();
  test_errors_name_what_was_asked_for();
  test_attributes();
  test_attributes_of_another_owner();
  test_below_a_folder();
  test_forbidden_folder();
  test_full_disk_and_read_only();
  const char* memory = "/dev/shm";
  if (access(memory, W_OK) == 0) {
    test_copy(TemporaryFolder(memory));
  } else {
    std::puts("Copies between file systems are not tested: there is no /dev/shm.");
  }
  return result();
}
