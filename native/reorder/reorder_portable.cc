// Tile transposes in plain C++, for processors without a kernel of their own.
#include "reorder/kernels.h"
#include "reorder/leaf/byte_elements.h"
#include "reorder/leaf/leaves.h"
#include "reorder/leaf/nibble_leaves.h"

namespace tilework {
namespace {

// A block of `kSide` x `kSide` units. Rows are read one after the other, and scattered over memory that stays
// in the first-level cache; columns leave it as a whole. So each line of the source is read once, and each
// line of the destination written once, wherever they lie.
template <class T, int64_t kSide>
struct PlainBlock {
  using Unit = T;
  static constexpr int64_t kSourceSize = sizeof(T);
  static constexpr int64_t kRows = kSide;
  static constexpr int64_t kColumns = kSide;
  static constexpr bool kMakesLines = false;
  static constexpr bool kLinesInRegisters = false;
  static void store_line(uint8_t* destination, const uint8_t* line, Stores) {
    std::memcpy(destination, line, kLineBytes);
  }
  template <class Rows, class Columns>
  static void transpose(const uint8_t* source, Rows row_at, uint8_t* destination, Columns column_at) {
    Unit turned[kColumns][kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      Unit row[kColumns];
      std::memcpy(row, source + row_at(r), sizeof(row));
      for (int64_t c = 0; c < kColumns; ++c) turned[c][r] = row[c];
    }
    for (int64_t c = 0; c < kColumns; ++c) {
      std::memcpy(destination + column_at(c), turned[c], sizeof(turned[c]));
    }
  }
};

struct Portable {
  // Blocks of 16 bytes each way. Blocks of whole lines as well would double the code of what few CPUs run.
  template <class T>
  using Wide = PlainBlock<T, 16 / sizeof(T)>;
  template <class T>
  using Narrow = Wide<T>;
  template <class T>
  using Half = void;
  template <class T>
  using Thin = void;
  template <class T>
  using Special = NoSpecialTiles;
  using LaneTiles = AnyTile<PlainBlock<Unit128, 1>, PlainBlock<Unit128, 1>, NoSpecialTiles>;
  static constexpr bool kPacks = false;
};

constexpr Leaves kLeaves{PanelLeaves<Portable>::of, PanelLeaves<Portable>::of_runs,
                         NibbleLeaves<Portable>::of, NibbleLeaves<Portable>::of_runs};

}  // namespace

const Leaves& leaves() { return kLeaves; }

void reorder_tiles(const ReorderArguments& a) { run_programs(a, kLeaves); }

}  // namespace tilework
