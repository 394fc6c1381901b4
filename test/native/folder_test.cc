// Files below a folder, by openat2 and by the walk: both must give the same answers.
#include "io/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "check.h"
#include "io/file_identity.h"
#include "io/file_lock.h"
#include "io/own_file.h"
#include "temporary_folder.h"

namespace tilework::test {
namespace {

using Open = int (Folder::*)(const std::string&, int) const;

void link_to(const std::string& target, const std::string& path) {
  CHECK(symlink(target.c_str(), path.c_str()) == 0);
}

void make_folder(const std::string& path) { CHECK(mkdir(path.c_str(), 0755) == 0); }

// The content of a file, or the name of the error.
std::string answer(const Folder& folder, Open open, const std::string& name) {
  const int descriptor = (folder.*open)(name, O_RDONLY);
  if (descriptor < 0)
    return errno == EXDEV ? "escape" : errno == ENOENT ? "missing" : errno == ELOOP ? "loop" : "?";
  char text[16];
  const ssize_t length = read(descriptor, text, sizeof(text));
  close(descriptor);
  return length < 0 ? "a folder" : std::string(text, static_cast<size_t>(length));
}

void test_links() {
  const TemporaryFolder outer;
  outer.write("secret", "secret");
  make_folder(outer.path("in"));
  make_folder(outer.path("in/sub"));
  outer.write("in/sub/file", "good");
  link_to("file", outer.path("in/sub/near"));
  link_to("../sub/../sub/near", outer.path("in/sub/far"));
  link_to("sub", outer.path("in/way"));
  link_to(outer.path("in/sub/file"), outer.path("in/absolute"));
  link_to(outer.path("in/sub"), outer.path("in/absolute-way"));
  link_to(".", outer.path("in/self"));
  link_to("../secret", outer.path("in/out"));
  link_to("../in/sub/file", outer.path("in/out-and-back"));
  link_to(outer.path("secret"), outer.path("in/absolute-out"));
  link_to("..", outer.path("in/parent"));
  link_to("/proc/self/root", outer.path("in/magic"));
  link_to("loop", outer.path("in/loop"));
  link_to("nothing", outer.path("in/dangling"));
  const std::pair<const char*, const char*> cases[] = {
      {"sub/file", "good"},       {"sub/near", "good"},
      {"sub/far", "good"},        {"way/far", "good"},
      {"absolute", "good"},       {"absolute-way/near", "good"},
      {"self/sub/file", "good"},  {"sub/../sub/file", "good"},
      {"sub", "a folder"},        {"self", "a folder"},
      {"out", "escape"},          {"out-and-back", "escape"},
      {"absolute-out", "escape"}, {"parent/secret", "escape"},
      {"parent", "escape"},       {"sub/../../secret", "escape"},
      {"/etc/passwd", "escape"},  {"magic/etc/passwd", "escape"},
      {"loop", "loop"},           {"dangling", "missing"},
      {"sub/none", "missing"},    {"sub/file/none", "?"},
  };
  const auto folder = Folder::open(outer.path("in"), "in");
  for (const Open open : {&Folder::open_below, &Folder::walk_below}) {
    for (const auto& [name, expected] : cases) {
      const std::string found = answer(*folder, open, name);
      if (found != expected) std::printf("%s: %s\n", name, found.c_str());
      CHECK(found == expected);
    }
  }
}

// A folder below is swapped with a link to the outside all the time: no open ever reaches the outside.
void test_swapped_folder() {
  const TemporaryFolder outer;
  make_folder(outer.path("in"));
  make_folder(outer.path("in/sub"));
  make_folder(outer.path("out"));
  outer.write("in/sub/file", "good");
  outer.write("out/file", "secret");
  const auto folder = Folder::open(outer.path("in"), "in");
  std::atomic<bool> is_done{false};
  std::thread swapper([&] {
    const std::string sub = outer.path("in/sub");
    const std::string away = outer.path("in/away");
    while (!is_done) {
      (void)rename(sub.c_str(), away.c_str());
      (void)symlink("../out", sub.c_str());
      (void)unlink(sub.c_str());
      (void)rename(away.c_str(), sub.c_str());
    }
  });
  int good = 0;
  int secret = 0;
  // The swapper may lose its processor for thousands of rounds while the folder is away.
  for (int round = 0; round < 4000 || (good == 0 && round < 4'000'000); ++round) {
    const std::string found =
        answer(*folder, round % 2 == 0 ? &Folder::open_below : &Folder::walk_below, "sub/file");
    good += found == "good" ? 1 : 0;
    secret += found == "secret" ? 1 : 0;
  }
  is_done = true;
  swapper.join();
  CHECK(good > 0);
  CHECK(secret == 0);
}

void test_descriptor_is_shared() {
  const TemporaryFolder folder;
  const auto one = Folder::open(folder.path(""), "");
  CHECK(one == Folder::open(folder.path("."), ""));
  CHECK(one == one->folder_below("."));
}

void test_remove_below() {
  const TemporaryFolder folder;
  folder.write("file", "content");
  const int descriptor = open(folder.path("file").c_str(), O_RDONLY);
  const FileIdentity identity = identity_of(descriptor, "file");
  close(descriptor);
  FileIdentity other = identity;
  other.modified += 1;
  CHECK(!remove_below(folder.path(""), "file", other));
  CHECK(!remove_below(folder.path(""), "none", identity));
  CHECK(link(folder.path("file").c_str(), folder.path("second").c_str()) == 0);
  CHECK(!remove_below(folder.path(""), "file", identity));
  CHECK(unlink(folder.path("second").c_str()) == 0);
  CHECK(remove_below(folder.path(""), "file", identity));
  CHECK(folder.entries() == 0);
  folder.write("file", "other");
  CHECK(remove_below(folder.path(""), "file", std::nullopt));
  CHECK(folder.entries() == 0);
}

void test_own_file() {
  const TemporaryFolder folder;
  const std::string path = folder.write("file", "content");
  const auto is_read = [&folder](size_t most_bytes) {
    return read_own_file(folder.path(""), "file", most_bytes) == "content";
  };
  CHECK(is_read(7));
  CHECK(!is_read(6));
  CHECK(chmod(path.c_str(), 0660) == 0);
  CHECK(!is_read(7));
  CHECK(chmod(path.c_str(), 0644) == 0);
  CHECK(link(path.c_str(), folder.path("second").c_str()) == 0);
  CHECK(!is_read(7));
  CHECK(unlink(folder.path("second").c_str()) == 0);
  link_to("file", folder.path("link"));
  CHECK(mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  for (const char* other : {"link", "pipe", "none", "."}) CHECK(!read_own_file(folder.path(""), other, 7));
  folder.write("empty", "");
  CHECK(read_own_file(folder.path(""), "empty", 0) == "");
  CHECK(!read_own_file(folder.path("nowhere"), "empty", 0));
}

// A place is below its first folder, whatever links its second part has.
void test_places() {
  const TemporaryFolder folder;
  CHECK(mkdir(folder.path("in").c_str(), 0755) == 0);
  CHECK(mkdir(folder.path("outside").c_str(), 0755) == 0);
  link_to("../outside", folder.path("in/out"));
  folder.write("in/file", "content");
  folder.write("outside/file", "outside");
  const auto place = [&folder](const std::string& inside) { return FolderPlace(folder.path("in"), inside); };
  Folder::create_below(place("a/b/c"), "asked");
  Folder::create_below(place("a/b/c"), "asked");
  CHECK(std::filesystem::is_directory(folder.path("in/a/b/c")));
  CHECK(Folder::open(place("a/b"), "")->folder_below("c") == Folder::open(folder.path("in/a/b/c"), ""));
  CHECK(code_of([&] { Folder::create_below(place("file/d"), "asked"); }) == "ENOTDIR");
  for (const char* inside : {"out", "out/d", "a/../../outside"}) {
    CHECK(code_of([&] { Folder::open(place(inside), "asked"); }) != "");
    CHECK(code_of([&] { Folder::create_below(place(inside), "asked"); }) == "ERR_PATH_ESCAPE");
  }
  CHECK(code_of([&] { Folder::open(place("out"), "asked"); }) == "ERR_PATH_ESCAPE");
  CHECK(code_of([&] { remove_below(place("out"), "file", std::nullopt); }) == "ERR_PATH_ESCAPE");
  CHECK(!read_own_file(place("out"), "file", 7));
  std::unique_ptr<FolderLock> lock;
  CHECK(FolderLock::try_take(place("out"), lock) == Lock::kUnknown);
  CHECK(FolderLock::try_take(place("a"), lock) == Lock::kTaken);
  CHECK(std::filesystem::exists(folder.path("outside/file")));
  CHECK(!std::filesystem::exists(folder.path("outside/d")));
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  test_links();
  test_swapped_folder();
  test_descriptor_is_shared();
  test_remove_below();
  test_own_file();
  test_places();
  return result();
}
