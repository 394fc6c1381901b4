#include "io/fault_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <cstdlib>
#include <thread>
#include <vector>

#include "check.h"
#include "child_process.h"
#include "io/input_file.h"
#include "temporary_folder.h"

namespace tilework::test {
namespace {

const auto kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

std::shared_ptr<InputFile> guarded(const std::string& path) {
  return InputFile::open(path, {.mapped = true, .guard = true}, nullptr);
}

bool all_are(const uint8_t* data, size_t size, uint8_t value) {
  return std::all_of(data, data + size, [value](uint8_t byte) { return byte == value; });
}

void test_truncated_file_reads_zeros(const TemporaryFolder& folder) {
  const size_t pages = 1000;
  const std::string path = folder.write("truncated", std::string(pages * kPage + 10, 'a'));
  const auto file = guarded(path);
  CHECK(all_are(file->data(), static_cast<size_t>(file->size()), 'a'));
  CHECK(code_of([&] { file->verify_unchanged(); }).empty());
  CHECK(truncate(path.c_str(), static_cast<off_t>(3 * kPage + 1)) == 0);
  CHECK(all_are(file->data(), 3 * kPage + 1, 'a'));
  CHECK(all_are(file->data() + 3 * kPage + 1, (pages - 3) * kPage + 9, 0));
  CHECK(code_of([&] { file->verify_unchanged(); }) == "ERR_FILE_CHANGED");
  // Truncated further, and a store this time.
  CHECK(truncate(path.c_str(), 0) == 0);
  file->data()[0] = 'b';
  CHECK(file->data()[0] == 'b' && file->data()[1] == 0);
}

void test_fault_is_remembered_without_descriptor(const TemporaryFolder& folder) {
  const std::string content(2 * kPage, 'a');
  const std::string path = folder.write("closed", content);
  const auto file = guarded(path);
  file->release_descriptor();
  CHECK(truncate(path.c_str(), 0) == 0);
  CHECK(code_of([&] { file->verify_unchanged(); }).empty());
  CHECK(file->data()[kPage] == 0);
  CHECK(code_of([&] { file->verify_unchanged(); }) == "ERR_FILE_CHANGED");
  // A mapping that reuses a table entry starts without faults.
  const auto other = guarded(folder.write("other", content));
  CHECK(code_of([&] { other->verify_unchanged(); }).empty());
}

// Guards are created and destroyed on some threads while others fault.
void test_threads(const TemporaryFolder& folder) {
  std::atomic<bool> stop{false};
  const std::string still = folder.write("still", std::string(kPage, 's'));
  std::thread churn([&] {
    while (!stop) {
      std::vector<std::shared_ptr<InputFile>> files;
      for (int i = 0; i < 400; ++i) files.push_back(guarded(still));
    }
  });
  std::vector<std::thread> readers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string path = folder.write("moving" + std::to_string(t), std::string(64 * kPage, 'm'));
        const auto file = guarded(path);
        if (truncate(path.c_str(), 0) != 0) ++wrong;
        if (!all_are(file->data(), 64 * kPage, 0)) ++wrong;
        if (code_of([&] { file->verify_unchanged(); }) != "ERR_FILE_CHANGED") ++wrong;
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  stop = true;
  churn.join();
  CHECK(wrong == 0);
}

#if !defined(__SANITIZE_ADDRESS__)
void test_other_faults_still_kill(const TemporaryFolder& folder) {
  const std::string path = folder.write("unguarded", std::string(2 * kPage, 'a'));
  const int status = status_of_child([&] {
    const auto watched = guarded(folder.write("watched", "abc"));
    const auto file = InputFile::open(path, {}, nullptr);
    if (truncate(path.c_str(), 0) != 0) _exit(1);
    volatile uint8_t byte = file->data()[kPage];
    (void)byte;
  });
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
  const int sent = status_of_child([&] {
    const auto watched = guarded(folder.write("watched", "abc"));
    raise(SIGBUS);
  });
  CHECK(WIFSIGNALED(sent) && WTERMSIG(sent) == SIGBUS);
}
#else
void test_other_faults_still_kill(const TemporaryFolder&) {
  std::puts(
      "Faults without a guard are not tested under the address sanitizer, which handles SIGBUS itself.");
}
#endif

sigjmp_buf host_state;
void host_handler(int, siginfo_t*, void*) { siglongjmp(host_state, 1); }
void plain_host_handler(int) { siglongjmp(host_state, 1); }

// The host's handler gets exactly the signals that are not ours. Handlers are installed once per process, so
// this runs in a child.
void test_host_handler(const TemporaryFolder& folder, bool with_details) {
  const int status = status_of_child([&] {
    struct sigaction host {};
    if (with_details) {
      host.sa_sigaction = host_handler;
      host.sa_flags = SA_SIGINFO;
    } else {
      host.sa_handler = plain_host_handler;
    }
    if (sigaction(SIGBUS, &host, nullptr) != 0) _exit(1);
    const std::string ours = folder.write("ours", std::string(2 * kPage, 'a'));
    const std::string theirs = folder.write("theirs", std::string(2 * kPage, 'a'));
    const auto file = guarded(ours);
    const auto unguarded = InputFile::open(theirs, {}, nullptr);
    if (truncate(ours.c_str(), 0) != 0 || truncate(theirs.c_str(), 0) != 0) _exit(2);
    if (sigsetjmp(host_state, 1) != 0) _exit(0);
    if (file->data()[kPage] != 0) _exit(3);
    volatile uint8_t byte = unguarded->data()[kPage];
    (void)byte;
    _exit(4);
  });
  CHECK(ended_with(status, 0));
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  const TemporaryFolder folder;
  // First: the handler is installed once per process, and children inherit it.
  test_host_handler(folder, true);
  test_host_handler(folder, false);
  test_other_faults_still_kill(folder);
  test_truncated_file_reads_zeros(folder);
  test_fault_is_remembered_without_descriptor(folder);
  test_threads(folder);
  return result();
}
