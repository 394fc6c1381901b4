// Compares every plan and every kernel that fits it with the oracle: random layouts, all element widths, the
// whole destination and ranges of it, on one thread and on several. Buffers have the exact size, and padding
// of 8- and 16-byte sources is poisoned, so that the address sanitizer reports a kernel that reads far into
// it.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "check.h"
#include "policy/thresholds.h"
#include "reorder/kernels.h"
#include "reorder_case.h"

namespace tilework::test {
namespace {

// Splits the destination into random ranges and writes each into a separate buffer.
template <class Run>
void check_ranges(const ReorderDescription& description, const ReorderPlan& plan, Run run,
                  const std::vector<uint8_t>& expected, RandomLayout& layouts) {
  const int64_t unit = std::max(plan.element_bits() / 8, 1);
  int64_t begin = 0;
  while (begin < plan.destination_bytes()) {
    const int64_t most = layouts.below(2) == 0 ? 200 : plan.destination_bytes() / unit + 1;
    const int64_t end = std::min(begin + unit * (1 + layouts.below(most)), plan.destination_bytes());
    const Storage part(end - begin);
    std::memset(part.data.get(), 0xA5, static_cast<size_t>(part.size));
    run(part.data.get(), begin, end);
    const bool equal =
        std::memcmp(part.data.get(), expected.data() + begin, static_cast<size_t>(part.size)) == 0;
    CHECK_IN(describe(description) + " range " + std::to_string(begin) + ".." + std::to_string(end), equal);
    begin = end;
  }
}

// Every kernel that fits the plan, not only the chosen one, with cached and with streaming stores.
void check_kernels(const ReorderDescription& description, const ReorderPlan& plan, const Storage& source,
                   const std::vector<uint8_t>& expected, RandomLayout& layouts) {
  for (const ReorderKernel& kernel : reorder_kernels()) {
    if (!fits(kernel, plan)) continue;
    for (Stores stores : {Stores::kCached, Stores::kStreaming}) {
      const auto run = [&](uint8_t* part, int64_t begin, int64_t end) {
        if (begin < end) kernel.run({plan, source.data.get(), part, begin, end, stores});
      };
      const Storage whole(plan.destination_bytes());
      std::memset(whole.data.get(), 0xA5, static_cast<size_t>(whole.size));
      run(whole.data.get(), 0, whole.size);
      const bool equal = std::equal(expected.begin(), expected.end(), whole.data.get());
      CHECK_IN(std::string(kernel.name) + ": " + describe(description), equal);
      check_ranges(description, plan, run, expected, layouts);
    }
  }
}

void check_reorder(const ReorderDescription& description, std::mt19937_64& random) {
  RandomLayout layouts(random);
  const ReorderPlan plan(description);
  CHECK_IN(describe(description), plan.range_unit(1 << 20) >= 64 && plan.range_unit(1) == 64);
  const Storage source(plan.source_bytes());
  for (int64_t i = 0; i < source.size; ++i) source.data[i] = static_cast<uint8_t>(random());
  const std::vector<uint8_t> expected = expected_of(description, plan, source.data.get());
  poison_holes(description, source);
  for (Stores stores : {Stores::kCached, Stores::kStreaming}) {
    const auto run = [&](uint8_t* part, int64_t begin, int64_t end) {
      plan.run(source.data.get(), part, begin, end, stores);
    };
    const Storage destination(plan.destination_bytes());
    std::memset(destination.data.get(), 0xA5, static_cast<size_t>(destination.size));
    run(destination.data.get(), 0, plan.destination_bytes());
    CHECK_IN(describe(description), std::equal(expected.begin(), expected.end(), destination.data.get()));
    check_ranges(description, plan, run, expected, layouts);
  }
  check_kernels(description, plan, source, expected, layouts);
}

void test_random_layouts(int rounds) {
  std::mt19937_64 random(20240117);
  RandomLayout layouts(random);
  for (int i = 0; i < rounds && failures < 10; ++i) {
    const ReorderDescription description = random_description(layouts, i);
    if (is_small(description)) check_reorder(description, random);
  }
}

// Blocks that are mostly padding, whose rows are read from zeros: as long as those zeros, and around that.
// Every destination byte counts, those of the last block too, which is not complete.
void test_long_rows_of_padding() {
  std::mt19937_64 random(20261128);
  for (const int bits : {8, 16, 32, 64}) {
    const int64_t zeros = kZeroBytes.value * 8 / bits;
    for (const int64_t pixels : {zeros - 1, zeros, zeros + 1, zeros + 9}) {
      for (const auto& [batch, features] : {std::pair<int64_t, int64_t>{8, 2}, {8, 4}, {16, 2}}) {
        const std::vector<int64_t> shape = {2, 1, 1, pixels};
        ReorderDescription description{bits, shape, row_major(shape), row_major(shape)};
        // bs_fs_yx_bsv<batch>_fsv<features>
        description.to.pieces[0].digits = {{{0}, 1, batch},  {{1}, 1, features}, {{2}, 1, 1},
                                           {{3}, pixels, 1}, {{0}, batch, 1},    {{1}, features, 1}};
        description.to.elements = batch * features * pixels;
        check_reorder(description, random);
      }
    }
  }
}

// Rows that get padding are runs, of other units than their tile has: a run is moved together.
void test_long_rows_with_padding() {
  std::mt19937_64 random(20261129);
  for (const int bits : {4, 8, 16, 32, 64, 128}) {
    for (const auto& shape : {std::vector<int64_t>{1, 5003}, {7, 1025}, {300, 5}}) {
      ReorderDescription description{bits, shape, row_major(shape), row_major(shape)};
      description.to.upper[1] = 3;
      description.to.pieces[0].digits[1].radix += 3;
      description.to.elements = shape[0] * (shape[1] + 3);
      check_reorder(description, random);
      std::swap(description.from, description.to);
      check_reorder(description, random);
    }
  }
}

// Extents larger than the register blocks of the kernels, at multiples of them and one off.
void test_random_tiles(int rounds) {
  static constexpr int64_t kExtents[] = {3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 100, 131};
  static constexpr int64_t kBlocks[] = {1, 2, 3, 4, 8, 16, 32, 64};
  std::mt19937_64 random(20240229);
  RandomLayout layouts(random);
  const auto blocked = [&](const std::vector<int64_t>& shape) {
    Side side = row_major(shape);
    std::vector<Digit>& digits = side.pieces[0].digits;
    std::shuffle(digits.begin(), digits.end(), random);
    const int64_t first = layouts.below(3);
    for (int64_t blocks = layouts.below(3); blocks > 0; --blocks) {
      const int axis = static_cast<int>((first + blocks) % 3);
      const int64_t block = kBlocks[layouts.below(8)];
      for (Digit& digit : digits) {
        if (digit.axes[0] != axis) continue;
        digit.radix = (digit.radix + block - 1) / block;
        digit.weight = block;
        digits.push_back({{axis}, block, 1});
        break;
      }
    }
    side.elements = 1;
    for (const Digit& digit : digits) side.elements *= digit.radix;
    return side;
  };
  static constexpr int kBits[] = {8, 16, 32, 64, 128, 4};
  for (int i = 0; i < rounds && failures < 10; ++i) {
    ReorderDescription description;
    description.element_bits = kBits[i % 6];
    description.shape = {1 + layouts.below(3), kExtents[layouts.below(18)], kExtents[layouts.below(18)]};
    std::shuffle(description.shape.begin(), description.shape.end(), random);
    if (i % 4 == 0) description.slice = layouts.slice(description.shape);
    description.from = blocked(description.slice ? description.slice->shape : description.shape);
    description.to = blocked(description.shape);
    if (description.from.elements <= 100000 && description.to.elements <= 100000) {
      check_reorder(description, random);
    }
  }
}

// Images of few channels, in blocks with padding and in full blocks, in both directions. The widths lie
// around multiples of a cache line of the source.
void test_blocks_of_pixels() {
  static constexpr int64_t kPixels[] = {7, 16, 33, 64, 67, 131};
  // Enough pixels for kernels that read several streams of the source at once.
  static constexpr int64_t kManyPixels = 4200;
  std::mt19937_64 random(20240302);
  for (int64_t block : {4, 8, 16, 32}) {
    for (int64_t channels : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, block, block + 3}) {
      for (int64_t pixels : kPixels) {
        const std::vector<int64_t> shape = {2, channels, 1, pixels};
        const Side plain = row_major(shape);
        const Side blocks = feature_blocks(shape, block);
        for (int bits : {8, 16, 32}) {
          check_reorder({bits, shape, plain, blocks}, random);
          check_reorder({bits, shape, blocks, plain}, random);
        }
      }
    }
    const std::vector<int64_t> image = {1, 3, 1, kManyPixels};
    for (int bits : {8, 16, 32}) {
      check_reorder({bits, image, feature_blocks(image, block), row_major(image)}, random);
    }
  }
}

// Channel counts that are not multiples of a block, to and from channels-last.
void test_odd_channels() {
  std::mt19937_64 random(20240303);
  for (int64_t channels : {5, 7, 9, 11, 17, 19, 22, 31, 35, 49, 150}) {
    for (int64_t pixels : {64, 131, 700}) {
      const std::vector<int64_t> shape = {2, channels, 1, pixels};
      const Side plain = row_major(shape);
      const Side last = channels_last(shape);
      for (int bits : {8, 16, 32, 64}) {
        check_reorder({bits, shape, plain, last}, random);
        check_reorder({bits, shape, last, plain}, random);
        check_reorder({bits, shape, last, feature_blocks(shape, 16)}, random);
        check_reorder({bits, shape, feature_blocks(shape, 16), last}, random);
      }
    }
  }
}

// Both directions, with tails on either axis, and windows from one element to more than a packed buffer
// holds.
void test_interleaved_weights(int rounds) {
  static constexpr int64_t kOutputs[] = {5, 16, 17, 32, 47};
  static constexpr int64_t kInputs[] = {3, 8, 31, 32, 37, 64};
  static constexpr int64_t kWindows[] = {1, 2, 3, 5, 7};
  static constexpr int kBits[] = {8, 16, 32, 64};
  std::mt19937_64 random(20240301);
  RandomLayout layouts(random);
  for (int i = 0; i < rounds && failures < 10; ++i) {
    const std::vector<int64_t> shape = {kOutputs[layouts.below(5)], kInputs[layouts.below(6)],
                                        kWindows[layouts.below(5)], kWindows[layouts.below(5)]};
    const Side plain = row_major(shape);
    const Side blocks = interleaved_blocks(shape, int64_t{1} << layouts.below(4),
                                           int64_t{4} << layouts.below(4), int64_t{1} << layouts.below(4));
    const int bits = kBits[i % 4];
    check_reorder({bits, shape, plain, blocks}, random);
    check_reorder({bits, shape, blocks, plain}, random);
  }
  // Several tiles per iteration, where the last tiles overlap the ones before.
  const std::vector<int64_t> odd = {32, 40, 3, 3};
  for (int64_t blocks : {1, 2}) {
    for (int bits : kBits) {
      for (int64_t rows : {4, 8}) {
        check_reorder({bits, odd, row_major(odd), interleaved_blocks(odd, blocks, 16, rows)}, random);
      }
    }
  }
  // Windows of 9 to 15 bytes, of which whole lanes are read, or written; the last ones end with the storage.
  for (const auto& [y, x] : {std::pair<int64_t, int64_t>{3, 3}, {2, 5}, {11, 1}, {3, 5}, {4, 4}}) {
    for (int64_t inputs : {16, 32, 41}) {
      const std::vector<int64_t> windows = {32, inputs, y, x};
      for (int64_t blocks : {1, 4, 8}) {
        const Side interleaved = interleaved_blocks(windows, blocks, 16, 4);
        check_reorder({8, windows, row_major(windows), interleaved}, random);
        check_reorder({8, windows, interleaved, row_major(windows)}, random);
      }
    }
  }
  // 3 x 3 windows, a line of one tap at a time: with inputs or outputs innermost; and with inputs outside, so
  // that windows are not side by side.
  for (const std::vector<int64_t>& windows : {std::vector<int64_t>{32, 64, 3, 3}, {19, 35, 3, 3}}) {
    for (int bits : {8, 16, 32}) {
      for (const auto& [blocks, outputs, rows] :
           {std::array<int64_t, 3>{8, 16, 4}, {4, 32, 2}, {8, 8, 1}, {16, 16, 1}, {4, 16, 1}}) {
        const Side interleaved = interleaved_blocks(windows, blocks, outputs, rows);
        for (const Side& plain : {row_major(windows), plain_order(windows, {1, 0, 2, 3})}) {
          check_reorder({bits, windows, plain, interleaved}, random);
          check_reorder({bits, windows, interleaved, plain}, random);
        }
      }
    }
  }
  const std::vector<int64_t> shape = {32, 64, 3, 3};
  // Lower padding of the inputs in source and destination: the first block starts with padding.
  Side padded_blocks = interleaved_blocks(shape, 8, 16, 4);
  Side padded_plain = row_major(shape);
  padded_blocks.lower[1] = padded_plain.lower[1] = 2;
  for (int bits : kBits) {
    check_reorder({bits, {32, 62, 3, 3}, padded_blocks, padded_plain}, random);
    check_reorder({bits, {32, 62, 3, 3}, padded_plain, padded_blocks}, random);
  }
}

// Activations b, f, y, x in blocks of batches and of features: bs_fs_yx_bsv<b>_fsv<f>, or b_fs_yx_fsv<f>.
Side batch_blocks(const std::vector<int64_t>& shape, int64_t b, int64_t f) {
  Side side = row_major(shape);
  const int64_t batches = (shape[0] + b - 1) / b;
  const int64_t features = (shape[1] + f - 1) / f;
  side.pieces[0].digits = {{{0}, batches, b},  {{1}, features, f}, {{2}, shape[2], 1},
                           {{3}, shape[3], 1}, {{0}, b, 1},        {{1}, f, 1}};
  side.elements = batches * b * features * f * shape[2] * shape[3];
  return side;
}

// Full blocks, which give runs and chains of runs, and blocks with tails.
void test_block_to_block(int rounds) {
  static constexpr int64_t kBatches[] = {1, 3, 16, 32, 33};
  static constexpr int64_t kFeatures[] = {16, 31, 32, 64};
  static constexpr int64_t kRows[] = {1, 3, 8};
  static constexpr int64_t kPixels[] = {1, 5, 16};
  static constexpr int kBits[] = {8, 16, 32, 64};
  std::mt19937_64 random(20240302);
  RandomLayout layouts(random);
  const auto block = [&] { return int64_t{1} << (layouts.below(2) * (2 + layouts.below(4))); };
  for (int i = 0; i < rounds && failures < 10; ++i) {
    const std::vector<int64_t> shape = {kBatches[layouts.below(5)], kFeatures[layouts.below(4)],
                                        kRows[layouts.below(3)], kPixels[layouts.below(3)]};
    const Side from = batch_blocks(shape, block(), block());
    const Side to = batch_blocks(shape, block(), block());
    check_reorder({kBits[i % 4], shape, from, to}, random);
  }
}

// Blocks of images and channels to and from planes of more pixels than are packed at a time, with full
// blocks, and with blocks that padding completes.
void test_blocks_of_images() {
  std::mt19937_64 random(20261124);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{16, 32, 1, 260}, {16, 19, 7, 41}, {18, 16, 1, 300}, {32, 32, 4, 64}}) {
    for (int bits : {8, 16, 32}) {
      check_reorder({bits, shape, row_major(shape), batch_blocks(shape, 16, 16)}, random);
      check_reorder({bits, shape, batch_blocks(shape, 16, 16), row_major(shape)}, random);
    }
  }
}

// Pixels of more channels than a strip has columns, and more of them than a panel holds.
void test_pixels_of_many_channels() {
  std::mt19937_64 random(20261125);
  for (int64_t channels : {64, 67, 130}) {
    for (int64_t pixels : {300, 1001}) {
      const std::vector<int64_t> shape = {1, channels, 1, pixels};
      for (int bits : {8, 16, 32}) {
        check_reorder({bits, shape, channels_last(shape), row_major(shape)}, random);
        check_reorder({bits, shape, row_major(shape), channels_last(shape)}, random);
      }
    }
  }
}

// Blocks of 16 one-byte channels, moved as units, merged into larger blocks and split again; with offsets
// that are not multiples of a cache line, and sizes that end within a line.
void test_units_of_lanes() {
  std::mt19937_64 random(20240303);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{1, 64, 4, 4}, {2, 128, 5, 7}, {3, 64, 1, 3}, {32, 64, 3, 5}, {33, 32, 2, 2}}) {
    for (int64_t block : {32, 64}) {
      check_reorder({8, shape, feature_blocks(shape, block), feature_blocks(shape, 16)}, random);
      check_reorder({8, shape, feature_blocks(shape, 16), feature_blocks(shape, block)}, random);
      check_reorder({8, shape, batch_blocks(shape, 16, 16), batch_blocks(shape, block, block)}, random);
      check_reorder({8, shape, batch_blocks(shape, block, block), batch_blocks(shape, 16, 16)}, random);
    }
  }
}

// Weights o, i, y, x as y, x, i, o.
Side outputs_last(const std::vector<int64_t>& shape) { return plain_order(shape, {2, 3, 1, 0}); }

// Blocks whose tiles span several loops, in both directions, with and without tails. Power-of-two strides
// cause set conflicts and so make the tiles use a packed buffer.
void test_transposed_blocks() {
  const auto blocks_of_both = [](const std::vector<int64_t>& shape) {
    Side side = row_major(shape);
    side.pieces[0].digits = {{{1}, shape[1], 1},           {{2}, shape[2], 1}, {{3}, (shape[3] + 1) / 2, 2},
                             {{0}, (shape[0] + 7) / 8, 8}, {{3}, 2, 1},        {{0}, 8, 1}};
    side.elements = shape[1] * shape[2] * ((shape[3] + 1) / 2) * 2 * ((shape[0] + 7) / 8) * 8;
    return side;
  };
  const auto pairs_of_inputs = [](const std::vector<int64_t>& shape) {
    return interleaved_blocks(shape, 8, 16, 2);
  };
  std::mt19937_64 random(20240311);
  const auto check_both = [&](int bits, const std::vector<int64_t>& shape, const Side& blocks) {
    check_reorder({bits, shape, row_major(shape), blocks}, random);
    check_reorder({bits, shape, blocks, row_major(shape)}, random);
  };
  for (int bits : {4, 8, 16, 32, 64}) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{32, 32, 4, 8}, {37, 33, 3, 7}}) {
      check_both(bits, shape, blocks_of_both(shape));
      check_both(bits, shape, outputs_last(shape));
      check_both(bits, shape, pairs_of_inputs(shape));
    }
  }
  const std::vector<int64_t> conflicting = {64, 16, 8, 8};
  check_both(4, conflicting, outputs_last(conflicting));
  for (int bits : {8, 16, 32, 64}) {
    const std::vector<int64_t> lines = {int64_t{72} * 8 / bits * 4, 64, 8, 8};
    check_both(bits, lines, outputs_last(lines));
    check_both(bits, {128, 64, 8, 8}, pairs_of_inputs({128, 64, 8, 8}));
  }
}

// Pieces of a few bytes at distances that are not multiples of their size: a narrow part of each row, in the
// source or in the destination.
void test_narrow_slices() {
  std::mt19937_64 random(20261123);
  for (int bits : {4, 8, 16, 32}) {
    for (int64_t bytes : {1, 2, 4, 8, 16}) {
      const int64_t elements = bytes * 8 / bits;
      if (elements == 0) continue;
      for (int64_t gap : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24}) {
        const std::vector<int64_t> shape = {70, elements};
        const std::vector<int64_t> whole = {70, elements + gap};
        const Slice slice{whole, {0, gap / 2}, {1, 1}};
        check_reorder({bits, shape, row_major(whole), row_major(shape), slice}, random);
        Side padded = row_major(whole);
        padded.upper[1] = gap;
        check_reorder({bits, shape, row_major(shape), padded}, random);
        check_reorder({bits, shape, padded, padded}, random);
      }
    }
  }
}

// Slices with steps, forwards and backwards, over more and less than one register: rows are merged, packed by
// shuffles, or gathered one by one. The slice begins and ends with the memory of the source, so that a
// sanitizer sees a read outside of it.
void test_steps_of_slices() {
  std::mt19937_64 random(20261124);
  for (int bits : {4, 8, 16, 32, 64}) {
    for (int64_t step = 2; step <= 17; ++step) {
      for (int64_t columns : {5, 31, 33, 70}) {
        for (int64_t rows : {1, 4, 16, 36}) {
          const std::vector<int64_t> shape = {rows, columns};
          const std::vector<int64_t> whole = {rows, (columns - 1) * step + 1};
          for (const Slice& slice :
               {Slice{whole, {0, 0}, {1, step}}, Slice{whole, {0, whole[1] - 1}, {1, -step}}}) {
            check_reorder({bits, shape, row_major(whole), row_major(shape), slice}, random);
            check_reorder({bits, shape, row_major(whole), plain_order(shape, {1, 0}), slice}, random);
          }
        }
      }
    }
  }
}

// The pixels of windows of odd size in groups of two or four: each window ends with padding, so every block
// has a hole.
void test_blocks_with_holes() {
  const auto blocks_of_pixels = [](const std::vector<int64_t>& shape, int64_t pixels) {
    const int64_t inputs = shape[1];
    const int64_t outputs = (shape[0] + 15) / 16;
    const int64_t windows = (shape[2] * shape[3] + pixels - 1) / pixels;
    Side side = row_major(shape);
    side.pieces[0].digits = {
        {{1}, inputs, 1}, {{2, 3}, windows, pixels}, {{0}, outputs, 16}, {{2, 3}, pixels, 1}, {{0}, 16, 1}};
    side.elements = inputs * windows * outputs * pixels * 16;
    return side;
  };
  std::mt19937_64 random(20261122);
  for (int bits : {4, 8, 16, 32, 64}) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{48, 40, 3, 3}, {37, 19, 5, 5}, {32, 33, 1, 7}}) {
      for (int64_t pixels : {2, 4}) {
        const Side blocks = blocks_of_pixels(shape, pixels);
        check_reorder({bits, shape, row_major(shape), blocks}, random);
        check_reorder({bits, shape, blocks, row_major(shape)}, random);
      }
    }
  }
  const std::vector<int64_t> shape = {48, 40, 3, 3};
  for (int bits : {8, 16, 32, 64}) {
    const ReorderPlan back({bits, shape, blocks_of_pixels(shape, 2), row_major(shape)});
    // A block that a range splits is moved element by element, so ranges end at block boundaries.
    const int64_t window = 9 * bits / 8;
    CHECK(back.range_unit(1 << 20) > 64 && back.range_unit(1 << 20) % window == 0);
  }
}

// Writes a window of a destination far larger than memory. Kernels must not visit blocks of padding outside
// the window: that would take days.
void test_windows_of_huge_padding() {
  constexpr int64_t kRow = int64_t{1} << 50;
  const std::vector<int64_t> shape = {3, 4};
  Side padded = row_major(shape);
  padded.upper = {0, kRow - 4};
  padded.pieces[0].digits[1].radix = kRow;
  padded.elements = 3 * kRow;
  const ReorderPlan plan({8, shape, row_major(shape), padded});
  const uint8_t source[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  for (const ReorderKernel& kernel : reorder_kernels()) {
    if (!fits(kernel, plan) || std::string(kernel.name).ends_with("_reference")) continue;
    for (int64_t row : {0, 1, 2}) {
      for (int64_t before : {0, 1, 100, 5000}) {
        const int64_t begin = std::max(row * kRow - before, int64_t{0});
        std::vector<uint8_t> expected(6000);
        std::copy(source + row * 4, source + row * 4 + 4, expected.begin() + (row * kRow - begin));
        std::vector<uint8_t> window(expected.size(), 0xA5);
        kernel.run({plan, source, window.data(), begin, begin + 6000, Stores::kCached});
        CHECK_IN(std::string(kernel.name) + " row " + std::to_string(row), window == expected);
      }
    }
  }
}

// Rows 4 KiB apart, which alias in L1: square tiles of whole cache lines, each line read and written once;
// and rows shorter than a line that are not multiples of a block.
void test_conflicting_lines() {
  std::mt19937_64 random(20240313);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{64, 64, 8, 8}, {16, 512, 3, 8}}) {
    const Side pairs_of_inputs = interleaved_blocks(shape, 1, 16, 2);
    for (int bits : {8, 16, 32}) {
      const ReorderDescription to_pairs{bits, shape, row_major(shape), pairs_of_inputs};
      check_reorder(to_pairs, random);
      check_reorder({bits, shape, pairs_of_inputs, row_major(shape)}, random);
    }
  }
}

// Channels-last images with reversed channels: a slice of all channels, and one that omits the first.
void test_reversed_channels() {
  std::mt19937_64 random(20240314);
  for (int64_t channels : {2, 3, 4, 8, 19, 33}) {
    const std::vector<int64_t> shape = {2, channels, 7, 11};
    for (int64_t omitted : {0, 1}) {
      const std::vector<int64_t> whole = {2, channels + omitted, 7, 11};
      const Side pixels = channels_last(whole);
      const Slice slice{whole, {0, channels + omitted - 1, 0, 0}, {1, -1, 1, 1}};
      for (int bits : {8, 16, 32, 64, 128}) {
        const ReorderDescription description{bits, shape, pixels, row_major(shape), slice};
        check_reorder(description, random);
      }
    }
  }
}

// Steps along both axes into a padded destination.
void test_steps_into_padding() {
  std::mt19937_64 random(20240312);
  const std::vector<int64_t> shape = {5, 7};
  Side padded = plain_order(shape, {1, 0});
  padded.upper = {2, 1};
  padded.pieces[0].digits = {{{1}, 8, 1}, {{0}, 7, 1}};
  padded.elements = 56;
  for (int bits : {8, 16, 32, 64, 128}) {
    for (const Slice& slice : {Slice{{5, 14}, {0, 1}, {1, 2}}, Slice{{10, 14}, {8, 13}, {-2, -2}}}) {
      const ReorderDescription description{bits, shape, row_major(slice.shape), padded, slice};
      check_reorder(description, random);
    }
  }
}

// Tiles whose rows and columns have a set conflict go through a packed buffer in chunks that overlap: plain
// tiles, chains, and tiles with trailing zeros. Chains of full blocks repeat, also where a range splits them.
void test_conflicting_tiles() {
  const auto blocks_of_inputs = [](const std::vector<int64_t>& shape, int64_t block) {
    Side side = row_major(shape);
    const int64_t inputs = (shape[1] + block - 1) / block;
    const int64_t outputs = (shape[0] + block - 1) / block;
    side.pieces[0].digits = {{{0}, outputs, block}, {{1}, inputs, block}, {{2}, shape[2], 1},
                             {{3}, shape[3], 1},    {{1}, block, 1},      {{0}, block, 1}};
    side.elements = outputs * inputs * shape[2] * shape[3] * block * block;
    return side;
  };
  std::mt19937_64 random(20240313);
  const auto check_both = [&](int bits, const std::vector<int64_t>& shape, const Side& to) {
    check_reorder({bits, shape, row_major(shape), to}, random);
    check_reorder({bits, shape, to, row_major(shape)}, random);
  };
  check_both(64, {260, 256, 1, 1}, outputs_last({260, 256, 1, 1}));
  for (int bits : {8, 16, 32, 64}) {
    check_both(bits, {200, 64, 3, 3}, outputs_last({200, 64, 3, 3}));
    check_both(bits, {64, 16, 8, 8}, outputs_last({64, 16, 8, 8}));
    check_both(bits, {1, 1000, 4, 4}, batch_blocks({1, 1000, 4, 4}, 1, 1024));
    for (int64_t block : {8, 16}) {
      check_both(bits, {32, 176, 3, 3}, blocks_of_inputs({32, 176, 3, 3}, block));
      check_both(bits, {33, 35, 3, 3}, blocks_of_inputs({33, 35, 3, 3}, block));
      check_both(bits, {16, 3, 7, 7}, blocks_of_inputs({16, 3, 7, 7}, block));
    }
  }
}

// Steps, reversals and reversed channels of 1- to 4-byte elements, for which some processors have shuffles.
void test_shuffles() {
  std::mt19937_64 random(20240312);
  for (int bits : {8, 16, 32}) {
    for (int64_t channels : {1, 2, 3, 4, 5}) {
      for (int64_t step : {-1, 2, -2, 3, -4}) {
        const std::vector<int64_t> pixels = {7, 61, channels};
        const int64_t width = 1 + 60 * std::abs(step);
        const Slice columns{{7, width, channels}, {0, step < 0 ? width - 1 : 0, 0}, {1, step, 1}};
        const Slice reversed{pixels, {0, 0, channels - 1}, {1, 1, -1}};
        check_reorder({bits, pixels, row_major(columns.shape), row_major(pixels), columns}, random);
        check_reorder({bits, pixels, row_major(pixels), row_major(pixels), reversed}, random);
      }
    }
  }
}

// Interleaved planes become planes of one fused axis that ends in a hole: its guard covers the planes too, so
// each is a panel of one column, and the next plane is the next column of the source.
void test_fused_planes_with_a_hole(std::mt19937_64& random) {
  for (const int bits : {8, 16, 32, 64}) {
    for (const int64_t channels : {2, 3, 4}) {
      const std::vector<int64_t> shape = {7, 5, channels};
      Side planes = row_major(shape);
      planes.elements = 35 * channels + 1;
      planes.pieces[0].digits = {{{2, 0, 1}, planes.elements, 1}};
      check_reorder({bits, shape, row_major(shape), planes}, random);
    }
  }
}

void test_identity() {
  const std::vector<int64_t> shape = {2, 32, 3, 5};
  const Side row = row_major(shape);
  const ReorderPlan same({32, shape, row, row});
  CHECK(same.moves() == Moves::kRange);
  CHECK(std::string(same.kernel().name).starts_with("copy_"));
  // Equal blocked layouts are a copy too, unless they have padding, which must be written as zeros.
  const Side blocked = feature_blocks(shape, 16);
  CHECK(ReorderPlan({8, shape, blocked, blocked}).moves() == Moves::kRange);
  const Side holed = feature_blocks(shape, 24);
  CHECK(ReorderPlan({8, shape, holed, holed}).moves() == Moves::kTiles);
  CHECK(ReorderPlan({8, shape, row, blocked}).moves() == Moves::kTiles);
  // One pixel: blocked and plain order are the same bytes.
  const std::vector<int64_t> pixel = {3, 32, 1, 1};
  CHECK(ReorderPlan({8, pixel, row_major(pixel), feature_blocks(pixel, 16)}).moves() == Moves::kRange);
}

// The bits behind the last element are zero, though a source, or a slice of it, has others there; so such a
// copy is no view.
void test_unused_bits_of_copies() {
  struct Copied {
    int bits;
    int64_t count;
    uint8_t last;
  };
  // Elements of the last byte, of which all bits are set in the source.
  for (const auto& [bits, count, last] : {Copied{4, 3, 0x0F},
                                          {4, 4, 0xFF},
                                          {2, 5, 0x03},
                                          {2, 6, 0x0F},
                                          {2, 7, 0x3F},
                                          {2, 8, 0xFF},
                                          {6, 2, 0x0F},
                                          {6, 4, 0xFF}}) {
    const std::vector<int64_t> shape = {count};
    const std::vector<int64_t> longer = {count + 8};
    const ReorderPlan all({bits, shape, row_major(shape), row_major(shape)});
    const ReorderPlan first({bits, shape, row_major(longer), row_major(shape), Slice{longer, {0}, {1}}});
    const std::vector<uint8_t> source(static_cast<size_t>(first.source_bytes()), 0xFF);
    for (const ReorderPlan* plan : {&all, &first}) {
      std::vector<uint8_t> copied(static_cast<size_t>(plan->destination_bytes()), 0xA5);
      CHECK(plan->copy_offset() == 0 && plan->view_offset().has_value() == (last == 0xFF));
      plan->run(source.data(), copied.data(), 0, plan->destination_bytes());
      CHECK_IN(std::to_string(bits) + " bits", copied.front() == (copied.size() > 1 ? 0xFF : last));
      CHECK_IN(std::to_string(bits) + " bits", copied.back() == last);
    }
  }
}

// Long runs of 4-bit elements that start in the low or the high half of a byte, in source and destination;
// and steps too long to unpack all elements in between.
void test_runs_of_half_bytes() {
  std::mt19937_64 random(20240315);
  const std::vector<int64_t> rows = {6, 131};
  const std::vector<int64_t> steps = {7, 9};
  for (int64_t start : {0, 1}) {
    const Slice part{{6, 150}, {0, start}, {1, 1}};
    const ReorderDescription runs{4, rows, row_major(part.shape), row_major(rows), part};
    check_reorder(runs, random);
    for (int64_t step : {12, -12}) {
      const Slice far{{7, 110}, {0, step > 0 ? start : 109 - start}, {1, step}};
      check_reorder({4, steps, row_major(far.shape), plain_order(steps, {1, 0}), far}, random);
    }
  }
}

std::optional<int64_t> copy_offset(int bits, const std::vector<int64_t>& whole, const Slice& slice,
                                   const std::vector<int64_t>& shape,
                                   Side (*layout)(const std::vector<int64_t>&)) {
  const ReorderPlan plan({bits, shape, layout(whole), layout(shape), slice});
  CHECK(plan.copy_offset().has_value() == (plan.moves() == Moves::kRange));
  return plan.copy_offset();
}

void test_views() {
  const auto fsv16 = [](const std::vector<int64_t>& shape) { return feature_blocks(shape, 16); };
  const std::vector<int64_t> whole = {6, 32, 3, 5};
  const std::vector<int64_t> ones = {1, 1, 1, 1};
  // Batches are contiguous, plain and blocked.
  CHECK(copy_offset(32, whole, {whole, {2, 0, 0, 0}, ones}, {3, 32, 3, 5}, row_major) == 2 * 480 * 4);
  CHECK(copy_offset(32, whole, {whole, {2, 0, 0, 0}, ones}, {3, 32, 3, 5}, fsv16) == 2 * 480 * 4);
  // One batch, one slice of features, a few rows.
  CHECK(copy_offset(8, whole, {whole, {4, 16, 1, 0}, ones}, {1, 16, 2, 5}, fsv16) == 4 * 480 + 240 + 80);
  CHECK(copy_offset(8, whole, {whole, {4, 7, 1, 0}, ones}, {1, 1, 2, 5}, row_major) == 4 * 480 + 7 * 15 + 5);
  // Two rows of each channel are not contiguous.
  CHECK(!copy_offset(8, whole, {whole, {4, 7, 1, 0}, ones}, {1, 2, 2, 5}, row_major));
  CHECK(!copy_offset(8, whole, {whole, {5, 0, 0, 0}, {-1, 1, 1, 1}}, {6, 32, 3, 5}, row_major));
  // Padding of the destination must be zero; padding of the source can have any value.
  CHECK(!copy_offset(8, {6, 19, 3, 5}, {{6, 19, 3, 5}, {2, 0, 0, 0}, ones}, {3, 19, 3, 5}, fsv16));
  // 4 bit: whole bytes only.
  CHECK(copy_offset(4, {7, 6}, {{7, 6}, {3, 0}, {1, 1}}, {2, 6}, row_major) == 9);
  CHECK(copy_offset(4, {8, 5}, {{8, 5}, {2, 0}, {1, 1}}, {2, 5}, row_major) == 5);
  CHECK(!copy_offset(4, {8, 5}, {{8, 5}, {1, 0}, {1, 1}}, {2, 5}, row_major));
  CHECK(copy_offset(4, {8, 5}, {{8, 5}, {2, 0}, {1, 1}}, {3, 5}, row_major) == 5);
  const ReorderPlan view({8, {2, 5}, row_major({8, 5}), row_major({2, 5}), Slice{{8, 5}, {3, 0}, {1, 1}}});
  CHECK(view.moves() == Moves::kRange);
  CHECK(view.reason() == "the destination is one range of the source, from byte 15 on");
}

// A step along a plain axis, or one that divides the block, becomes a stride; other steps need a lookup
// table.
void test_strides_of_slices() {
  const std::vector<int64_t> whole = {4, 64, 8, 10};
  const auto nest_of = [&](const std::vector<int64_t>& shape, std::vector<int64_t> start,
                           std::vector<int64_t> step, const Side& from) {
    const ReorderPlan plan(
        {32, shape, from, row_major(shape), Slice{whole, std::move(start), std::move(step)}});
    CHECK(plan.nests().size() == 1);
    return plan.nests().front();
  };
  const LoopNest steps = nest_of({4, 64, 8, 3}, {0, 0, 0, 1}, {1, 1, 1, 4}, row_major(whole));
  CHECK(steps.lookups.empty() && steps.source_base == 1);
  CHECK(steps.nodes.back().source_stride == 4 && steps.nodes.front().source_stride == 10);
  const LoopNest back = nest_of({4, 64, 8, 10}, {3, 63, 7, 9}, {-1, -1, -1, -1}, row_major(whole));
  CHECK(back.nodes.size() == 1 && back.nodes[0].source_stride == -1 && back.source_base == 4 * 64 * 80 - 1);
  const Side blocked = feature_blocks(whole, 16);
  CHECK(nest_of({4, 16, 8, 10}, {0, 1, 0, 0}, {1, 4, 1, 1}, blocked).lookups.empty());
  CHECK(nest_of({4, 4, 8, 10}, {0, 5, 0, 0}, {1, 16, 1, 1}, blocked).lookups.empty());
  CHECK(nest_of({4, 64, 8, 10}, {0, 63, 0, 0}, {1, -1, 1, 1}, blocked).lookups.empty());
  // Inside one block, at any start.
  CHECK(nest_of({4, 7, 8, 10}, {0, 21, 0, 0}, {1, 1, 1, 1}, blocked).lookups.empty());
  // Also across blocks, if the destination is not blocked: the loops start at the first block.
  CHECK(nest_of({4, 30, 8, 10}, {0, 5, 0, 0}, {1, 1, 1, 1}, blocked).lookups.empty());
  CHECK(nest_of({4, 30, 8, 10}, {0, 40, 0, 0}, {1, -1, 1, 1}, blocked).lookups.empty());
  const std::vector<int64_t> part = {4, 30, 8, 10};
  const ReorderPlan across(
      {32, part, blocked, feature_blocks(part, 16), Slice{whole, {0, 5, 0, 0}, {1, 1, 1, 1}}});
  CHECK(across.nests()[0].lookups.size() == 1 && across.nests()[0].lookups[0].table.size() <= 30);
}

void test_slices_are_checked() {
  const std::vector<int64_t> shape = {2, 3};
  const std::vector<int64_t> whole = {6, 7};
  const auto code = [&](std::vector<int64_t> extents, std::vector<int64_t> start, std::vector<int64_t> step,
                        const std::vector<int64_t>& result) {
    const Slice slice{std::move(extents), std::move(start), std::move(step)};
    return code_of([&] { ReorderPlan plan({8, result, row_major(whole), row_major(result), slice}); });
  };
  CHECK(code(whole, {4, 0}, {1, 3}, shape).empty());
  CHECK(code(whole, {5, 6}, {-5, -3}, shape).empty());
  CHECK(code(whole, {5, 0}, {1, 1}, shape) == "ERR_RANGE");
  CHECK(code(whole, {0, 6}, {1, -4}, shape) == "ERR_RANGE");
  CHECK(code(whole, {0, -1}, {1, 1}, shape) == "ERR_RANGE");
  CHECK(code(whole, {0, 7}, {1, 1}, {2, 1}) == "ERR_RANGE");
  CHECK(code(whole, {0, 0}, {1, 0}, shape) == "ERR_ARGUMENT");
  CHECK(code(whole, {0}, {1, 1}, shape) == "ERR_ARGUMENT");
  CHECK(code({6}, {0, 0}, {1, 1}, shape) == "ERR_ARGUMENT");
  CHECK(code({6, 8}, {0, 0}, {1, 1}, shape) == "ERR_ARGUMENT");
  CHECK(code(whole, {0, 0}, {INT64_MAX, 1}, shape) == "ERR_RANGE");
  CHECK(code(whole, {5, 0}, {INT64_MIN, 1}, shape) == "ERR_RANGE");
  // One element uses no step, and an empty result uses no index.
  CHECK(code(whole, {0, 0}, {INT64_MIN, 1}, {1, 3}).empty());
  CHECK(code(whole, {9, 0}, {1, 1}, {0, 3}).empty());
}

// The step times the padded extent overflows an offset.
void test_far_offsets_are_refused() {
  const int64_t many = int64_t{1} << 40;
  Side to = row_major({2});
  to.upper = {many - 2};
  to.elements = many;
  to.pieces[0].digits = {{{0}, many, 1}};
  Side from = row_major({int64_t{1} << 30});
  const Slice slice{{int64_t{1} << 30}, {0}, {(int64_t{1} << 30) - 1}};
  CHECK(code_of([&] { ReorderPlan plan({8, {2}, from, to, slice}); }) == "ERR_OVERFLOW");
}

// What explanations say of common reorders.
void test_reasons() {
  const std::vector<int64_t> shape = {2, 32, 30, 50};
  const Side pixels = channels_last(shape);
  const auto ends_with = [](const ReorderPlan& plan, std::string_view end) {
    CHECK_IN(plan.reason(), plan.reason().ends_with(end));
  };
  ends_with(ReorderPlan({32, shape, row_major(shape), feature_blocks(shape, 16)}),
            "; 16 x 16 units of 4 bytes at a time");
  // Features are kept together: a unit.
  ends_with(ReorderPlan({32, shape, pixels, feature_blocks(shape, 16)}),
            "; 4 x 2 units of 64 bytes at a time");
  ends_with(
      ReorderPlan({32, {10, 6}, row_major({10, 12}), row_major({10, 6}), Slice{{10, 12}, {0, 0}, {1, 2}}}),
      "; 60 x 1 units of 4 bytes at a time");
}

// The way that moves most of a reorder.
void test_ways() {
  const std::vector<int64_t> shape = {2, 32, 30, 50};
  const auto way_of = [](const ReorderPlan& plan, Stores stores = Stores::kCached) {
    const WayShares shares = plan.ways(stores);
    const auto most = std::max_element(shares.begin(), shares.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return std::string(most == shares.end() ? "none" : row_of(most->first).name);
  };
  const ReorderPlan blocks({32, shape, row_major(shape), feature_blocks(shape, 16)});
  CHECK_IN(way_of(blocks), way_of(blocks) == "blocks");
  CHECK(way_of(ReorderPlan({32, shape, channels_last(shape), feature_blocks(shape, 16)})) ==
        "chains of runs, column by column");
  const ReorderPlan every(
      {32, {10, 10}, row_major({10, 90}), row_major({10, 10}), Slice{{10, 90}, {0, 0}, {1, 9}}});
  CHECK_IN(way_of(every), way_of(every) == "units");
  CHECK(way_of(ReorderPlan({32, shape, row_major(shape), row_major(shape)})) == "none");
  // Instruction sets have ways of their own past the caches, all of which stream.
  const std::string streamed = way_of(blocks, Stores::kStreaming);
  CHECK_IN(streamed, streamed == "streamed blocks" || streamed == "blocks, line by line");
}

// Ranges for threads end where tiles end, even if those are not multiples of a line.
void test_range_units() {
  const auto unit_of = [](const std::vector<int64_t>& shape, int64_t most, int bits = 32) {
    return ReorderPlan({bits, shape, channels_last(shape), row_major(shape)}).range_unit(most);
  };
  CHECK(unit_of({1, 64, 100, 10}, 1 << 20) == 64 * 4000);
  CHECK(unit_of({1, 3, 100, 10}, 1 << 20) == 3 * 4000);
  CHECK(unit_of({1, 64, 100, 10}, 1000) == 64);
  CHECK(unit_of({1, 64, 100, 10}, 1 << 20, 4) % 500 == 0);
  CHECK(unit_of({1, 64, 1, 1}, 1 << 20, 8) == 64);
}

void test_merging() {
  const std::vector<int64_t> shape = {2, 32, 30, 50};
  const ReorderPlan plan({32, shape, row_major(shape), feature_blocks(shape, 16)});
  // b merges with f/16, and y with x: three loops remain of six digits.
  CHECK(plan.nests().size() == 1);
  CHECK(plan.nests()[0].nodes.size() == 3);
  CHECK(plan.nests()[0].lookups.empty());
}

// Threads write adjacent ranges of one destination; no element belongs to two ranges.
void test_threads() {
  const std::vector<int64_t> shape = {3, 19, 65, 33};
  for (int bits : {4, 8, 32}) {
    const ReorderPlan plan({bits, shape, row_major(shape), feature_blocks(shape, 16)});
    Storage source(plan.source_bytes());
    for (int64_t i = 0; i < source.size; ++i) source.data[i] = static_cast<uint8_t>(i * 7 + i / 251);
    Storage whole(plan.destination_bytes());
    plan.run(source.data.get(), whole.data.get(), 0, whole.size);
    Storage split(plan.destination_bytes());
    constexpr int64_t kTile = 4096;
    std::atomic<int64_t> next{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int64_t begin = next.fetch_add(kTile); begin < split.size; begin = next.fetch_add(kTile)) {
          const int64_t end = std::min(begin + kTile, split.size);
          plan.run(source.data.get(), split.data.get() + begin, begin, end);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(std::memcmp(whole.data.get(), split.data.get(), static_cast<size_t>(whole.size)) == 0);
  }
}

// A period longer than the largest lookup table is computed arithmetically.
void test_large_periods(std::mt19937_64& random) {
  const std::vector<int64_t> shape = {3, 101, 97};
  Side fused = row_major(shape);
  fused.pieces[0].digits = {{{0}, 3, 1}, {{1, 2}, 4899, 2}, {{1, 2}, 2, 1}};
  fused.elements = 3 * 4899 * 2;
  Side padded = row_major(shape);
  padded.lower = {0, 1, 2};
  padded.upper = {0, 0, 1};
  padded.pieces[0].digits = {{{2}, 100, 1}, {{0}, 3, 1}, {{1}, 102, 1}};
  padded.elements = 100 * 3 * 102;
  check_reorder({8, shape, padded, fused}, random);
  check_reorder({8, shape, fused, padded}, random);
  check_reorder({4, shape, fused, padded}, random);
}

void test_ranges_are_checked() {
  const std::vector<int64_t> shape = {4, 4};
  const ReorderPlan plan({32, shape, row_major(shape), row_major(shape)});
  CHECK(code_of([&] { plan.check_range(0, 64); }).empty());
  CHECK(code_of([&] { plan.check_range(2, 64); }) == "ERR_ARGUMENT");
  CHECK(code_of([&] { plan.check_range(0, 68); }) == "ERR_ARGUMENT");
  CHECK(code_of([&] { plan.check_range(-4, 8); }) == "ERR_ARGUMENT");
  CHECK(code_of([&] { plan.check_range(8, 4); }) == "ERR_ARGUMENT");
}

// The first kernel that fits is chosen, so kernels of an instruction set precede the portable kernel that
// moves the same, which must exist.
void test_kernel_table() {
  const std::span<const ReorderKernel> kernels = reorder_kernels();
  CHECK(!kernels.empty());
  for (size_t i = 0; i < kernels.size(); ++i) {
    const auto is_baseline_of = [&kernel = kernels[i]](const ReorderKernel& other) {
      return other.isa == Isa::kPortable && other.moves == kernel.moves;
    };
    const auto at = kernels.begin() + static_cast<std::ptrdiff_t>(i);
    CHECK_IN(kernels[i].name, std::any_of(at, kernels.end(), is_baseline_of));
    if (kernels[i].isa != Isa::kPortable) {
      CHECK_IN(kernels[i].name, std::none_of(kernels.begin(), at, is_baseline_of));
    }
    CHECK_IN(kernels[i].name, kernels[i].reason[0] != 0);
  }
}

}  // namespace
}  // namespace tilework::test

// An argument is the number of random rounds.
int main(int count, char** arguments) {
  using namespace tilework::test;
  std::mt19937_64 random(7);
  test_random_layouts(count > 1 ? std::atoi(arguments[1]) : 20000);
  test_random_tiles(count > 1 ? std::atoi(arguments[1]) / 10 : 1500);
  test_long_rows_of_padding();
  test_long_rows_with_padding();
  test_blocks_of_pixels();
  test_odd_channels();
  test_blocks_of_images();
  test_pixels_of_many_channels();
  test_interleaved_weights(count > 1 ? std::atoi(arguments[1]) / 100 : 200);
  test_block_to_block(count > 1 ? std::atoi(arguments[1]) / 100 : 200);
  test_large_periods(random);
  test_units_of_lanes();
  test_transposed_blocks();
  test_narrow_slices();
  test_steps_of_slices();
  test_blocks_with_holes();
  test_windows_of_huge_padding();
  test_conflicting_tiles();
  test_conflicting_lines();
  test_reversed_channels();
  test_steps_into_padding();
  test_shuffles();
  test_fused_planes_with_a_hole(random);
  test_identity();
  test_unused_bits_of_copies();
  test_runs_of_half_bytes();
  test_views();
  test_strides_of_slices();
  test_slices_are_checked();
  test_far_offsets_are_refused();
  test_reasons();
  test_ways();
  test_range_units();
  test_merging();
  test_threads();
  test_ranges_are_checked();
  test_kernel_table();
  return result();
}
