// The leftovers of a save, above all when its process is killed. Everything runs three times: with unnamed
// files; on a system that refuses unnamed files; and on one that refuses to name them in the end.
#include "io/temporary_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "check.h"
#include "child_process.h"
#include "io/output_file.h"
#include "temporary_folder.h"

namespace tilework::test {
namespace {

constexpr mode_t kMode = 0644;

std::vector<std::string> names_in(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path(""))) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

std::unique_ptr<TemporaryFile> named(const TemporaryFolder& folder, const std::string& target) {
  auto file = std::make_unique<TemporaryFile>(Folder::open(folder.path(""), folder.path(target)), target,
                                              kMode, folder.path(target));
  file->take_name();
  return file;
}

void save(const std::string& path, const std::string& text) {
  const auto file = OutputFile::create(path, static_cast<int64_t>(text.size()));
  file->begin_write();
  file->write(reinterpret_cast<const uint8_t*>(text.data()), static_cast<int64_t>(text.size()), 0);
  file->end_write(true);
  file->begin_commit();
  file->commit();
}

void test_killed_while_writing() {
  const TemporaryFolder folder;
  HeldChild child([&] {
    auto* file = new std::shared_ptr<OutputFile>(OutputFile::create(folder.path("target"), 100));
    (*file)->begin_write();
    (*file)->write(reinterpret_cast<const uint8_t*>("half"), 4, 0);
  });
  CHECK(child.is_ready());
  child.kill_now();
  CHECK(folder.entries() <= 1);
  save(folder.path("target"), "whole");
  CHECK(folder.read("target") == "whole");
  CHECK(folder.entries() == 1);
}

void test_killed_before_the_rename() {
  const TemporaryFolder folder;
  folder.write("target", "old");
  HeldChild child([&] { named(folder, "target").release(); });
  CHECK(child.is_ready());
  CHECK(folder.entries() == 2);
  // The owner is alive: its name is kept, and another is used.
  save(folder.path("target"), "new");
  CHECK(folder.entries() == 2);
  CHECK(std::filesystem::exists(folder.path(".target.tilework-tmp")));
  child.kill_now();
  CHECK(folder.entries() == 2);
  // The next save removes the leftover at once, before it needs disk space, even if it is aborted.
  OutputFile::create(folder.path("target"), 0)->abort();
  CHECK(folder.entries() == 1);
  CHECK(folder.read("target") == "new");
}

void test_killed_at_random() {
  const TemporaryFolder folder;
  const std::string versions[] = {std::string(300000, 'a'), std::string(200000, 'b')};
  folder.write("target", versions[0]);
  for (int round = 0; round < 40; ++round) {
    const pid_t saver = fork();
    if (saver == 0) {
      for (int i = 0;; ++i) save(folder.path("target"), versions[i % 2]);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + 700 * round));
    kill(saver, SIGKILL);
    waitpid(saver, nullptr, 0);
    const std::string content = folder.read("target");
    CHECK(content == versions[0] || content == versions[1]);
    CHECK(folder.entries() <= 2);
  }
  save(folder.path("target"), "last");
  CHECK(folder.read("target") == "last");
  CHECK(folder.entries() == 1);
}

// Keeps every file with the name that may belong to someone else.
void test_names_that_are_not_ours() {
  const TemporaryFolder folder;
  folder.write("elsewhere", "linked");
  CHECK(link(folder.path("elsewhere").c_str(), folder.path(".target.tilework-tmp").c_str()) == 0);
  CHECK(symlink("elsewhere", folder.path(".target.1.tilework-tmp").c_str()) == 0);
  CHECK(mkdir(folder.path(".target.2.tilework-tmp").c_str(), 0700) == 0);
  CHECK(mkfifo(folder.path(".target.3.tilework-tmp").c_str(), 0600) == 0);
  size_t others = 5;
  if (geteuid() == 0) {
    ++others;
    folder.write(".target.4.tilework-tmp", "foreign");
    CHECK(chown(folder.path(".target.4.tilework-tmp").c_str(), 65534, 65534) == 0);
  } else {
    std::puts("Files of other users are not tested: this is not root.");
  }
  save(folder.path("target"), "new");
  CHECK(folder.read("target") == "new");
  CHECK(folder.read("elsewhere") == "linked");
  CHECK(folder.entries() == others + 1);
}

void test_names_run_out() {
  const TemporaryFolder folder;
  std::vector<std::unique_ptr<TemporaryFile>> files;
  std::string code;
  while (code.empty() && files.size() < 100) {
    code = code_of([&] { files.push_back(named(folder, "target")); });
  }
  CHECK(code == "EEXIST");
  CHECK(files.size() == 32);
  files.clear();
  CHECK(folder.entries() == 0);
}

void test_long_names() {
  const TemporaryFolder folder;
  // Three-byte characters, so that most cuts would split one.
  std::string text;
  while (text.size() < 252) text += "\xE2\x82\xAC";
  const std::string first = text + "a";
  const std::string second = text + "b";
  const auto one = named(folder, first);
  const auto two = named(folder, second);
  const std::vector<std::string> names = names_in(folder);
  CHECK(names.size() == 2);
  for (const std::string& name : names) {
    CHECK(name.size() <= 255 && name.ends_with(".tilework-tmp"));
    // Both have number 0: the hash distinguishes them. The shortened text has whole characters.
    const size_t end = name.find('.', 1);
    CHECK(name.size() - end == 1 + 16 + 13);
    CHECK((end - 1) % 3 == 0 && end > 200);
  }
  save(folder.path(std::string(255, 'n')), "longest");
  CHECK(folder.read(std::string(255, 'n')) == "longest");
  CHECK(code_of([&] { save(folder.path(std::string(256, 'n')), "x"); }) == "ENAMETOOLONG");
}

void test_many_saves_of_one_target() {
  const TemporaryFolder folder;
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        if (!code_of([&] {
               save(folder.path("target"), std::string(5000, static_cast<char>('a' + t)));
             }).empty())
          ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
  const std::string content = folder.read("target");
  CHECK(content.size() == 5000 && content == std::string(5000, content[0]));
  CHECK(folder.entries() == 1);
}

void test_end_of_process() {
  const TemporaryFolder folder;
  auto file = named(folder, "target");
  TemporaryFile::remove_all_names();
  CHECK(folder.entries() == 0);
  // The name belongs to another process now.
  folder.write(".target.tilework-tmp", "other");
  file.reset();
  CHECK(folder.entries() == 1);
}

int run_all() {
  test_killed_while_writing();
  test_killed_before_the_rename();
  test_killed_at_random();
  test_names_that_are_not_ours();
  test_names_run_out();
  test_long_names();
  test_many_saves_of_one_target();
  test_end_of_process();
  return result();
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  int worst = run_all();
#ifdef __linux__
  for (const Refused what : {Refused::kUnnamedFiles, Refused::kNamesForUnnamedFiles}) {
    const int status = status_of_child([what] {
      if (!refuse(what)) {
        std::puts("Refused calls are not tested: this system takes no filter for them.");
        _exit(0);
      }
      _exit(run_all());
    });
    if (!ended_with(status, 0)) {
      std::fprintf(stderr, "The above is with refusal %d.\n", static_cast<int>(what));
      worst = 1;
    }
  }
#endif
  return worst;
}
