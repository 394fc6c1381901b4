#include "parallel/thread_count.h"

#include <filesystem>

#include "check.h"
#include "temporary_folder.h"

namespace tilework::test {
namespace {

void put(const TemporaryFolder& folder, const std::string& name, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(folder.path(name)).parent_path());
  folder.write(name, content);
}

void test_version_2() {
  const TemporaryFolder root;
  put(root, "proc/self/cgroup", "0::/a/b\n");
  CHECK(quota_threads(root.path("")) == 0);
  put(root, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  CHECK(quota_threads(root.path("")) == 0);
  put(root, "sys/fs/cgroup/a/b/cpu.max", "350000 100000\n");
  CHECK(quota_threads(root.path("")) == 4);
  // The parent group has a smaller quota.
  put(root, "sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  CHECK(quota_threads(root.path("")) == 1);
}

void test_version_1() {
  const TemporaryFolder root;
  put(root, "proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/job\n2:cpuset:/s\n");
  put(root, "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  put(root, "sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  CHECK(quota_threads(root.path("")) == 0);
  put(root, "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "200000\n");
  CHECK(quota_threads(root.path("")) == 2);
}

void test_strange_files() {
  const TemporaryFolder root;
  CHECK(quota_threads(root.path("")) == 0);
  put(root, "proc/self/cgroup", "nonsense\n0::\n0::relative\n:\n0::/x\n");
  put(root, "sys/fs/cgroup/x/cpu.max", "many 100000\n");
  put(root, "sys/fs/cgroup/cpu.max", "1e300 1\n");
  CHECK(quota_threads(root.path("")) == kMaxThreads);
}

void test_text() {
  CHECK(parse_threads(nullptr) == 0);
  CHECK(parse_threads("") == 0);
  CHECK(parse_threads("8") == 8);
  CHECK(parse_threads("8 ") == 0);
  CHECK(parse_threads("-8") == 0);
  CHECK(parse_threads("0x8") == 0);
  CHECK(parse_threads("1024") == 1024);
  CHECK(parse_threads("1025") == 0);
  CHECK(parse_threads("99999999999999999999999") == 0);
  CHECK(default_threads() >= 1);
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  test_version_2();
  test_version_1();
  test_strange_files();
  test_text();
  return result();
}
