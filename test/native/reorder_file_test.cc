// Plans with a source in a file, against the oracle and the same plan in memory: small ranges of random
// layouts, large ones with every way of reading, and files written by several threads.
#include "reorder/run/reorder_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "check.h"
#include "io/checked_math.h"
#include "parallel/thread_pool.h"
#include "reorder_case.h"
#include "temporary_folder.h"

namespace tilework::test {
namespace {

// The source does not start at the start of the file.
constexpr int64_t kOffset = 100;

std::shared_ptr<InputFile> file_with(const TemporaryFolder& folder, const std::vector<uint8_t>& bytes) {
  const std::string path =
      folder.write("source", std::string(kOffset, '?') + std::string(bytes.begin(), bytes.end()));
  return InputFile::open(path, {.mapped = false}, nullptr);
}

std::vector<uint8_t> random_bytes(int64_t size, std::mt19937_64& random) {
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

Side transposed(int64_t rows, int64_t columns) {
  Side side = row_major({rows, columns});
  std::swap(side.pieces[0].digits[0], side.pieces[0].digits[1]);
  return side;
}

// Room for a few elements of any width, so that small cases have many tiles of every kind.
constexpr TileLimits kSmallTiles{96, 160};

void test_random_layouts(int rounds) {
  std::mt19937_64 random(4711);
  RandomLayout layouts(random);
  const TemporaryFolder folder;
  FileScratch scratch;
  for (int i = 0; i < rounds && failures < 10; ++i) {
    const ReorderDescription description = random_description(layouts, i);
    if (!is_small(description)) continue;
    const auto plan = std::make_shared<const ReorderPlan>(description);
    const std::vector<uint8_t> source = random_bytes(plan->source_bytes(), random);
    const std::vector<uint8_t> expected = expected_of(description, *plan, source.data());
    const auto file = file_with(folder, source);
    const int64_t unit = std::max(description.element_bits / 8, 1);
    for (int64_t begin = 0; begin < plan->destination_bytes();) {
      const int64_t end = std::min(begin + unit * (1 + layouts.below(900)), plan->destination_bytes());
      const FileReorder reorder(plan, begin, end, layouts.below(4) == 0 ? kFileTileLimits : kSmallTiles);
      std::vector<uint8_t> part(static_cast<size_t>(end - begin), 0xA5);
      for (int64_t tile = 0; tile < reorder.tiles(); ++tile) {
        reorder.run_tile(tile, {*file, kOffset}, part.data(), scratch);
      }
      CHECK_IN(describe(description) + " range " + std::to_string(begin) + ".." + std::to_string(end),
               std::equal(part.begin(), part.end(), expected.begin() + begin));
      begin = end;
    }
  }
}

// A short range of a transpose is made of pieces of all rows of the source.
void test_short_ranges_are_packed() {
  const int64_t side = 1024;
  const auto plan = std::make_shared<const ReorderPlan>(
      ReorderDescription{32, {side, side}, row_major({side, side}), transposed(side, side)});
  CHECK(FileReorder(plan, 0, 32 * side * 4).is_packed());
  CHECK(FileReorder(plan, 100 * side * 4 + 400, 132 * side * 4).is_packed());
  // Whole iterations would be many times the range.
  CHECK(!FileReorder(plan, 5 * side * 4 - 8, 5 * side * 4 + 8).is_packed());
}

// No tile exceeds its memory limit, and together the tiles write each byte of a range once.
void test_tiles_are_bounded(int rounds) {
  std::mt19937_64 random(99);
  RandomLayout layouts(random);
  int cut = 0;
  for (int i = 0; i < rounds && failures < 10; ++i) {
    const ReorderDescription description = random_description(layouts, i);
    if (!is_small(description)) continue;
    const ReorderPlan plan(description);
    if (plan.programs().size() != 1) continue;
    const int64_t begin = layouts.below(plan.destination_bytes() + 1);
    const auto tiles = FileTiles::cut(plan.programs().front(), begin, plan.destination_bytes(), kSmallTiles);
    if (!tiles) continue;
    ++cut;
    CHECK_IN(describe(description), tiles->source_bytes() <= kSmallTiles.source);
    CHECK_IN(describe(description), tiles->destination_bytes() <= kSmallTiles.destination);
    std::vector<int> writes(static_cast<size_t>(plan.destination_bytes()), 0);
    for (int64_t number = 0; number < tiles->count(); ++number) {
      const FileTiles::Tile tile = tiles->at(number);
      for (const PackedPiece& piece : tile.written) {
        for (int64_t k = 0; k < piece.size; ++k) ++writes[static_cast<size_t>(piece.storage + k)];
      }
    }
    const bool once = std::all_of(writes.begin() + begin, writes.end(), [](int count) { return count == 1; });
    CHECK_IN(describe(description) + " from " + std::to_string(begin), once);
  }
  CHECK(cut > rounds / 10);
}

// Long runs on both sides, whichever side is blocked.
void test_runs_are_long() {
  const std::vector<int64_t> shape = {2, 64, 256, 256};
  const int64_t bytes = int64_t{2} * 64 * 256 * 256 * 4;
  const auto tiles_of = [&](const ReorderPlan& plan) {
    return *FileTiles::cut(plan.programs().front(), 0, bytes, kFileTileLimits);
  };
  const FileTiles blocks = tiles_of(ReorderPlan({32, shape, row_major(shape), feature_blocks(shape, 16)}));
  CHECK(blocks.source().repeats.size() == 1 && blocks.source().repeats[0].count == 16);
  CHECK(blocks.destination().repeats.empty());
  const FileTiles planes = tiles_of(ReorderPlan({32, shape, feature_blocks(shape, 16), row_major(shape)}));
  CHECK(planes.source().repeats.empty());
  CHECK(planes.destination().repeats.size() == 1 && planes.destination().repeats[0].count == 16);
  const int64_t side = 16384;
  const FileTiles square =
      tiles_of(ReorderPlan({32, {side, side}, row_major({side, side}), transposed(side, side)}));
  CHECK(square.source().length >= 256 && square.destination().length >= 256);
  for (const FileTiles* tiles : {&blocks, &planes, &square}) {
    CHECK(tiles->source_bytes() <= kFileTileLimits.source);
    CHECK(tiles->destination_bytes() <= kFileTileLimits.destination * 9 / 8);
  }
}

// Writes a range of a plan's destination to a file, like the addon.
class ToFileJob : public TileJob {
 public:
  ToFileJob(FileReorder reorder, const InputFile& source, OutputFile& output)
      : TileJob(reorder.tiles()), reorder_(std::move(reorder)), source_(source), output_(output) {}

  std::future<void> ended() { return promise_.get_future(); }

 protected:
  void run_tile(int64_t tile) override {
    const FileScratchPool::Lease scratch(*pool_);
    reorder_.run_tile(tile, {source_, kOffset}, output_, 7, *scratch);
  }
  void finish(std::exception_ptr error) noexcept override {
    if (error != nullptr) {
      promise_.set_exception(error);
    } else {
      promise_.set_value();
    }
  }

 private:
  FileReorder reorder_;
  const InputFile& source_;
  OutputFile& output_;
  std::shared_ptr<FileScratchPool> pool_ = FileScratchPool::share();
  std::promise<void> promise_;
};

void write_to_file(const std::shared_ptr<const ReorderPlan>& plan, const InputFile& source,
                   const std::string& path, size_t threads, int64_t begin, int64_t end) {
  const auto output = OutputFile::create(path, end - begin + 7);
  const auto job = std::make_shared<ToFileJob>(FileReorder(plan, begin, end), source, *output);
  auto ended = job->ended();
  ThreadPool pool(threads);
  pool.submit(job);
  ended.get();
  output->begin_commit();
  output->commit();
}

struct Case {
  const char* name;
  ReorderDescription description;
};

// Each case has several MiB and another way of reading.
std::vector<Case> large_cases() {
  const std::vector<int64_t> image = {2, 35, 130, 200};
  const std::vector<int64_t> cube = {3, 700, 900};
  const std::vector<int64_t> odd = {3, 150, 300};
  Side fused = row_major(odd);
  fused.pieces[0].digits = {{{0}, 3, 1}, {{1, 2}, 2813, 16}, {{1, 2}, 16, 1}};
  fused.elements = 3 * 2813 * 16;
  const Slice strided{{9, 1500, 900}, {8, 3, 899}, {-3, 2, -1}};
  Side padded = row_major(odd);
  padded.lower = {0, 1, 2};
  padded.upper = {0, 0, 1};
  padded.pieces[0].digits = {{{2}, 303, 1}, {{0}, 3, 1}, {{1}, 151, 1}};
  padded.elements = 303 * 3 * 151;
  return {
      {"planes to blocks", {32, image, row_major(image), feature_blocks(image, 16)}},
      {"blocks to planes", {32, image, feature_blocks(image, 16), row_major(image)}},
      {"nibbles to blocks", {4, image, row_major(image), feature_blocks(image, 32)}},
      {"transpose of near rows", {16, {900, 1100}, row_major({900, 1100}), transposed(900, 1100)}},
      {"transpose of far rows", {64, {500, 1500}, row_major({500, 1500}), transposed(500, 1500)}},
      {"reversed and strided", {32, cube, row_major(strided.shape), row_major(cube), strided}},
      {"one range",
       {32, {1, 700, 900}, row_major(cube), row_major({1, 700, 900}), Slice{cube, {1, 0, 0}, {1, 1, 1}}}},
      {"offsets without a table", {8, odd, padded, fused}},
  };
}

void run_all(const std::shared_ptr<const ReorderPlan>& plan, const InputFile& file,
             std::vector<uint8_t>& result) {
  FileScratch scratch;
  const FileReorder reorder(plan, 0, plan->destination_bytes());
  for (int64_t tile = 0; tile < reorder.tiles(); ++tile) {
    reorder.run_tile(tile, {file, kOffset}, result.data(), scratch);
  }
}

void test_large_cases() {
  std::mt19937_64 random(11);
  const TemporaryFolder folder;
  for (const Case& each : large_cases()) {
    const auto plan = std::make_shared<const ReorderPlan>(each.description);
    const std::vector<uint8_t> source = random_bytes(plan->source_bytes(), random);
    std::vector<uint8_t> expected(static_cast<size_t>(plan->destination_bytes()));
    plan->run(source.data(), expected.data(), 0, plan->destination_bytes());
    const auto file = file_with(folder, source);
    std::vector<uint8_t> whole(expected.size(), 0xA5);
    run_all(plan, *file, whole);
    CHECK_IN(each.name, whole == expected);
    for (size_t threads : {1, 2, 7}) {
      const int64_t begin = threads == 1 ? 0 : 16 * 999;
      const int64_t end = plan->destination_bytes() - (threads == 7 ? 160 : 0);
      write_to_file(plan, *file, folder.path("result"), threads, begin, end);
      const std::string result = folder.read("result");
      const bool equal =
          std::equal(result.begin() + 7, result.end(), expected.begin() + begin, expected.begin() + end,
                     [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
      CHECK_IN(std::string(each.name) + " on " + std::to_string(threads) + " threads", equal);
    }
  }
}

// Buffers live as long as the jobs that use the pool.
void test_pool_is_shared() {
  std::shared_ptr<FileScratchPool> pool = FileScratchPool::share();
  CHECK(FileScratchPool::share() == pool);
  const std::weak_ptr<FileScratchPool> watched = pool;
  {
    const FileScratchPool::Lease first(*pool);
    const FileScratchPool::Lease second(*pool);
    CHECK(&*first != &*second);
  }
  pool.reset();
  CHECK(watched.expired());
}

void test_errors() {
  const TemporaryFolder folder;
  const auto plan = std::make_shared<const ReorderPlan>(
      ReorderDescription{32, {700, 900}, row_major({700, 900}), transposed(700, 900)});
  std::vector<uint8_t> result(static_cast<size_t>(plan->destination_bytes()));
  const auto file = file_with(folder, std::vector<uint8_t>(result.size()));
  CHECK(code_of([&] { run_all(plan, *file, result); }).empty());
  CHECK(truncate(folder.path("source").c_str(), 10000) == 0);
  CHECK(code_of([&] { run_all(plan, *file, result); }) == "ERR_FILE_CHANGED");
  CHECK(code_of([&] { write_to_file(plan, *file, folder.path("short"), 2, 0, plan->destination_bytes()); }) ==
        "ERR_FILE_CHANGED");
  CHECK(truncate(folder.path("source").c_str(), static_cast<off_t>(result.size()) + kOffset) == 0);
  const auto output = OutputFile::create(folder.path("aborted"), 10);
  output->abort();
  FileScratch scratch;
  const FileReorder reorder(plan, 0, 400);
  CHECK(code_of([&] { reorder.run_tile(0, {*file, kOffset}, *output, 0, scratch); }) == "ERR_CLOSED");
}

}  // namespace
}  // namespace tilework::test

// The argument is the number of random rounds.
int main(int count, char** arguments) {
  using namespace tilework::test;
  test_random_layouts(count > 1 ? std::atoi(arguments[1]) : 600);
  test_tiles_are_bounded(3000);
  test_runs_are_long();
  test_short_ranges_are_packed();
  test_large_cases();
  test_pool_is_shared();
  test_errors();
  return result();
}
