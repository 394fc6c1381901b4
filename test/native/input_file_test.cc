#include "io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>

#include "check.h"
#include "temporary_folder.h"

namespace tilework::test {
namespace {

std::shared_ptr<std::atomic<int64_t>> counter() { return std::make_shared<std::atomic<int64_t>>(0); }

void test_content(const TemporaryFolder& folder) {
  const auto live = counter();
  auto file = InputFile::open(folder.write("content", "0123456789"), {}, live);
  CHECK(file->size() == 10);
  CHECK(std::memcmp(file->data(), "0123456789", 10) == 0);
  CHECK(live->load() == 1);
  // A stray store changes this mapping, not the file.
  file->data()[0] = 'X';
  CHECK(folder.read("content") == "0123456789");
  const auto user = file;
  file.reset();
  CHECK(live->load() == 1);
  CHECK(user->data()[0] == 'X');
}

void test_lookup(const TemporaryFolder& folder) {
  auto file = InputFile::open(folder.write("lookup", std::string(10000, 'a')), {}, nullptr);
  const uint8_t* data = file->data();
  CHECK(InputFile::find(data, 10000) == file);
  CHECK(InputFile::find(data + 9999, 1) == file);
  CHECK(InputFile::find(data + 1, 10000) == nullptr);
  CHECK(InputFile::find(data + 10000, 0) == nullptr);
  const uint8_t elsewhere = 0;
  CHECK(InputFile::find(&elsewhere, 1) == nullptr);
  file.reset();
  CHECK(InputFile::find(data, 1) == nullptr);
}

void test_changes(const TemporaryFolder& folder) {
  const std::string path = folder.write("changes", "abc");
  const auto file = InputFile::open(path, {}, nullptr);
  CHECK(code_of([&] { file->verify_unchanged(); }).empty());
  // Renaming or changing the mode does not change the content.
  CHECK(chmod(path.c_str(), 0600) == 0);
  CHECK(code_of([&] { file->verify_unchanged(); }).empty());
  folder.write("changes", "abcd");
  CHECK(code_of([&] { file->verify_unchanged(); }) == "ERR_FILE_CHANGED");
  const auto again = InputFile::open(path, {}, nullptr);
  const timespec times[2] = {{1, 0}, {1, 0}};
  CHECK(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  CHECK(code_of([&] { again->verify_unchanged(); }) == "ERR_FILE_CHANGED");
}

void test_what_is_no_file(const TemporaryFolder& folder) {
  CHECK(code_of([&] { InputFile::open(folder.path("missing"), {}, nullptr); }) == "ENOENT");
  CHECK(code_of([&] { InputFile::open(folder.path("."), {}, nullptr); }) == "EISDIR");
  CHECK(mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  CHECK(code_of([&] { InputFile::open(folder.path("fifo"), {}, nullptr); }) == "ERR_ARGUMENT");
  CHECK(code_of([&] { InputFile::open("/dev/null", {}, nullptr); }) == "ERR_ARGUMENT");
  const auto empty = InputFile::open(folder.write("empty", ""), {}, nullptr);
  CHECK(empty->size() == 0);
  CHECK(code_of([&] { empty->verify_unchanged(); }).empty());
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  const TemporaryFolder folder;
  test_content(folder);
  test_lookup(folder);
  test_changes(folder);
  test_what_is_no_file(folder);
  return result();
}
