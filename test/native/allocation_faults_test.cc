// Fails the n-th allocation of each kind of work, for every n up to 250 and then fewer and fewer. The failure
// ends as std::bad_alloc, as an error of the system, or in work that does without; nothing leaks, and the
// next run gives the right result.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <new>
#include <vector>

#include "check.h"
#include "dlpack/exchange.h"
#include "dtype/statistics.h"
#include "io/folder.h"
#include "io/output_file.h"
#include "parallel/thread_pool.h"
#include "reorder/cast/fused_cast.h"
#include "reorder/run/parts.h"
#include "reorder/run/reorder_file.h"
#include "reorder_case.h"
#include "temporary_folder.h"
#include "wire/plain_tensors.h"

namespace {

std::atomic<int64_t> made{0};
std::atomic<int64_t> live{0};
// Number of the allocation that fails; 0 means none.
std::atomic<int64_t> failing{0};

void* allocate(size_t size, size_t alignment) {
  if (made.fetch_add(1) + 1 == failing.load()) throw std::bad_alloc();
  const size_t whole = (std::max<size_t>(size, 1) + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  ++live;
  return memory;
}

void* allocate_or_null(size_t size, size_t alignment) noexcept {
  try {
    return allocate(size, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void release(void* memory) {
  if (memory == nullptr) return;
  --live;
  std::free(memory);
}

constexpr size_t kAlignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
size_t bytes_of(std::align_val_t alignment) { return static_cast<size_t>(alignment); }

}  // namespace

void* operator new(size_t size) { return allocate(size, kAlignment); }
void* operator new[](size_t size) { return allocate(size, kAlignment); }
void* operator new(size_t size, std::align_val_t to) { return allocate(size, bytes_of(to)); }
void* operator new[](size_t size, std::align_val_t to) { return allocate(size, bytes_of(to)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate_or_null(size, kAlignment); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, kAlignment);
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { release(memory); }

namespace tilework::test {
namespace {

using Work = std::function<void()>;

// How the work ended with the n-th allocation failing.
enum class End { kNotReached, kFailed, kWorked, kWrongError };

End run_with_fault(const Work& work, int64_t n) {
  made = 0;
  failing = n;
  End end = End::kWorked;
  try {
    work();
  } catch (const std::bad_alloc&) {
    end = End::kFailed;
  } catch (const Error& error) {
    end = std::string(error.name()) == "ENOMEM" ? End::kFailed : End::kWrongError;
  } catch (...) {
    end = End::kWrongError;
  }
  failing = 0;
  return made < n ? End::kNotReached : end;
}

// `work` checks its own results. The first round meets what a process makes once, such as tables and buffers
// of threads; the second one finds leaks.
constexpr int64_t kEveryAllocation = 250;
int64_t faults = 0;
void fail_every_allocation(const std::string& name, const Work& work) {
  int64_t held = 0;
  for (int round = 0; round < 2; ++round) {
    // Work that allocates for each of many tiles repeats the same allocations; a growing step skips them.
    for (int64_t n = 1; failures < 10; n += 1 + n / kEveryAllocation) {
      const End end = run_with_fault(work, n);
      CHECK_IN(name + ", allocation " + std::to_string(n), end != End::kWrongError);
      if (end == End::kNotReached) break;
      ++faults;
      work();
      // Nothing may be alive here that the first round did not leave.
      if (round == 1) CHECK_IN(name + ", leak at allocation " + std::to_string(n), live == held);
    }
    work();
    held = live;
  }
}

struct Case {
  ReorderDescription description;
  std::vector<uint8_t> source;
  std::vector<uint8_t> expected;
  std::vector<uint8_t> found;

  explicit Case(ReorderDescription described) : description(std::move(described)) {
    const ReorderPlan plan(description);
    source.resize(static_cast<size_t>(plan.source_bytes()));
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 89 + i / 251);
    // Numbers without NaN, whatever they are read as.
    for (size_t i = 3; i < source.size(); i += 4) source[i] &= 0x3F;
    found.resize(static_cast<size_t>(plan.destination_bytes()));
    expected.resize(found.size());
    plan.run(source.data(), expected.data(), 0, plan.destination_bytes());
  }

  void check() {
    CHECK(found == expected);
    std::memset(found.data(), 0xA5, found.size());
  }
};

std::vector<ReorderDescription> descriptions() {
  const std::vector<int64_t> shape = {2, 37, 11, 13};
  std::vector<ReorderDescription> all;
  for (const int bits : {4, 8, 16, 32, 64}) {
    all.push_back({bits, shape, row_major(shape), feature_blocks(shape, 16)});
    all.push_back({bits, shape, channels_last(shape), row_major(shape)});
  }
  all.push_back({8, shape, interleaved_blocks(shape, 2, 8, 4), row_major(shape)});
  ReorderDescription cast{32, shape, row_major(shape), feature_blocks(shape, 16)};
  cast.casts.emplace_back(Cast(Dtype::kFloat32, Dtype::kFloat16, {}));
  all.push_back(std::move(cast));
  ReorderDescription two_casts{32, shape, row_major(shape), channels_last(shape)};
  two_casts.casts.emplace_back(Cast(Dtype::kFloat32, Dtype::kBfloat16, {}));
  two_casts.casts.emplace_back(Cast(Dtype::kBfloat16, Dtype::kInt8, {}));
  all.push_back(std::move(two_casts));
  std::mt19937_64 random(2026);
  RandomLayout layouts(random);
  while (all.size() < 24) {
    ReorderDescription description = random_description(layouts, static_cast<int>(all.size()));
    if (is_small(description)) all.push_back(std::move(description));
  }
  return all;
}

void test_plans() {
  for (const ReorderDescription& description : descriptions()) {
    Case each(description);
    fail_every_allocation("plan, " + describe(description), [&] {
      const ReorderPlan plan(each.description);
      plan.run(each.source.data(), each.found.data(), 0, plan.destination_bytes());
      each.check();
    });
  }
}

const std::vector<int64_t> kLargeShape = {1, 64, 64, 64};

void test_parts_on_threads() {
  Case each({32, kLargeShape, row_major(kLargeShape), feature_blocks(kLargeShape, 16)});
  fail_every_allocation("parts on threads", [&] {
    ThreadPool pool(3);
    const auto plan = std::make_shared<const ReorderPlan>(each.description);
    const ReorderParts parts(plan, pool.threads(), {1, 4096, 65536, 1});
    pool.run(parts.count(), [&](int64_t part) { parts.run(part, each.source.data(), each.found.data()); });
    pool.set_threads(1);
    pool.set_threads(2);
    each.check();
  });
}

// Reads its tiles from a file, like the jobs of the binding.
class FileJob : public TileJob {
 public:
  FileJob(const FileReorder& reorder, const InputFile& file, std::vector<uint8_t>& found)
      : TileJob(reorder.tiles()), reorder_(reorder), file_(file), found_(found) {}

  std::promise<void> ended;

 protected:
  void run_tile(int64_t tile) override {
    const FileScratchPool::Lease scratch(*scratches_);
    reorder_.run_tile(tile, {file_, 0}, found_.data(), *scratch);
  }
  void finish(std::exception_ptr error) noexcept override {
    if (error != nullptr)
      ended.set_exception(error);
    else
      ended.set_value();
  }

 private:
  const FileReorder& reorder_;
  const InputFile& file_;
  std::vector<uint8_t>& found_;
  std::shared_ptr<FileScratchPool> scratches_ = FileScratchPool::share();
};

void test_files() {
  const TemporaryFolder folder;
  Case each({32, kLargeShape, row_major(kLargeShape), feature_blocks(kLargeShape, 16)});
  const std::string path = folder.write("source", std::string(each.source.begin(), each.source.end()));
  const std::string target = folder.path("target");
  const std::string folder_path = folder_of(path);
  fail_every_allocation("tiles of a file on threads", [&] {
    ThreadPool pool(2);
    const auto file = InputFile::open(path, {.mapped = false}, nullptr);
    const auto plan = std::make_shared<const ReorderPlan>(each.description);
    const FileReorder reorder(plan, 0, plan->destination_bytes(), {65536, 65536});
    const auto job = std::make_shared<FileJob>(reorder, *file, each.found);
    auto ended = job->ended.get_future();
    pool.submit(job);
    ended.get();
    each.check();
  });
  fail_every_allocation("file to file", [&] {
    const auto folder_below = Folder::open(folder_path, folder_path);
    const auto file = InputFile::open(path, {.mapped = true, .guard = true}, nullptr);
    const auto plan = std::make_shared<const ReorderPlan>(each.description);
    const FileReorder reorder(plan, 0, plan->destination_bytes());
    const auto output = OutputFile::create(target, plan->destination_bytes());
    FileScratch scratch;
    output->begin_write();
    bool written = false;
    try {
      for (int64_t tile = 0; tile < reorder.tiles(); ++tile)
        reorder.run_tile(tile, {*file, 0}, *output, 0, scratch);
      written = true;
    } catch (...) {
      output->end_write(written);
      throw;
    }
    output->end_write(written);
    output->begin_commit();
    output->commit();
  });
  CHECK(folder.read("target") == std::string(each.expected.begin(), each.expected.end()));
  CHECK(folder.entries() == 2);
}

void test_statistics() {
  std::vector<float> numbers(1000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  fail_every_allocation("statistics", [&] {
    Statistics first(Dtype::kFloat32, 20);
    Statistics second(Dtype::kFloat32, 20);
    first.add(reinterpret_cast<const uint8_t*>(numbers.data()), 500);
    second.add(reinterpret_cast<const uint8_t*>(numbers.data() + 500), 500);
    first.merge(second);
    CHECK(first.count() == 1000 && first.mean() == 499.5);
  });
}

void test_wire() {
  static constexpr std::array<uint8_t, 3> kElementBits = {0, 32, 8};
  const PlainTensorRules rules{.list = 5,
                               .dims = 1,
                               .data_type = 2,
                               .name = 8,
                               .raw_data = 9,
                               .doc_string = 12,
                               .data_location = 14,
                               .element_bits = kElementBits,
                               .max_axes = 3};
  // 100 tensors: one extent of 4, type 2, name "n", 4 bytes.
  const std::string tensor("\x08\x04\x10\x02\x42\x01n\x4a\x04vals", 13);
  std::string message;
  for (int i = 0; i < 100; ++i) message += "\x2a" + std::string(1, static_cast<char>(tensor.size())) + tensor;
  const TemporaryFolder folder;
  const std::string path = folder.write("message", message);
  fail_every_allocation("wire", [&] {
    const auto file = InputFile::open(path, {.mapped = false}, nullptr);
    const PlainTensors found = plain_tensors(*file, rules, 0, file->size(), 1000);
    CHECK(found.tensors.size() == 100 && found.position == file->size());
  });
}

void test_dlpack() {
  std::vector<int64_t> shape = {3, 5};
  std::vector<int64_t> strides = {1, 3};
  std::vector<float> values(15, 1.5F);
  int deleted = 0;
  fail_every_allocation("dlpack", [&] {
    int64_t calls = deleted;
    const auto given = std::make_unique<DLManagedTensorVersioned>();
    given->version = {1, 0};
    given->manager_ctx = &deleted;
    given->deleter = [](DLManagedTensorVersioned* managed) { ++*static_cast<int*>(managed->manager_ctx); };
    given->flags = 0;
    given->dl_tensor = {values.data(), {kDLCPU, 0}, 2, {2, 32, 1}, shape.data(), strides.data(), 0};
    {
      DlpackImport imported = from_dlpack(given.get(), 1000);
      imported.take();
    }
    CHECK(deleted == calls + 1);
    DLManagedTensorVersioned* back =
        to_dlpack(share_or_copy(reinterpret_cast<const uint8_t*>(values.data()), 60, Dtype::kFloat32, {3, 5},
                                DlpackForm::kVersioned));
    CHECK(std::memcmp(back->dl_tensor.data, values.data(), 60) == 0);
    back->deleter(back);
  });
}

}  // namespace
}  // namespace tilework::test

int main() {
  tilework::test::test_plans();
  tilework::test::test_parts_on_threads();
  tilework::test::test_files();
  tilework::test::test_statistics();
  tilework::test::test_wire();
  tilework::test::test_dlpack();
  std::printf("%lld failing allocations\n", static_cast<long long>(tilework::test::faults));
  return tilework::test::result();
}
