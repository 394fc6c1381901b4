#include "io/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "check.h"
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
  CHECK(folder.entries() == 1);
  CHECK(file->temporary_path().find("/.new.") != std::string::npos);
  CHECK(file->temporary_path().ends_with(".tilework-tmp"));
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
  // One that is forgotten is aborted.
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
  CHECK(mode_of(file->temporary_path()) == 0640);
  commit(*file);
  CHECK(mode_of(folder.path("private")) == 0640);

  // Links stay links, also those to nowhere; what they point at is written.
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

// `elsewhere` on another file system makes the kernel refuse, and the plain copy take over.
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

void test_end_of_process() {
  const TemporaryFolder folder;
  const auto file = OutputFile::create(folder.path("target"), 0);
  OutputFile::remove_live_temporaries();
  CHECK(folder.entries() == 0);
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  test_commit();
  test_abort();
  test_failed_write_fails_the_commit();
  test_commit_waits_for_writes();
  test_targets();
  test_copy(TemporaryFolder());
  const char* memory = "/dev/shm";
  if (access(memory, W_OK) == 0) {
    test_copy(TemporaryFolder(memory));
  } else {
    std::puts("Copies between file systems are not tested: there is no /dev/shm.");
  }
  test_end_of_process();
  return result();
}
