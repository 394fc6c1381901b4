// Tile transposes in plain C++, for processors without a kernel of their own.
#include "reorder/kernels.h"
#include "reorder/listed_transpose.h"
#include "reorder/nest_walk.h"
#include "reorder/nibble_transpose.h"
#include "reorder/tile_kernel.h"

namespace tilework {
namespace {

// A block of `kSide` x `kSide` units. Rows are read one after the other, and scattered over memory that stays
// in the first-level cache; columns leave it as a whole. So each line of the source is read once, and each
// line of the destination written once, wherever they lie.
template <class T, int64_t kSide>
struct PlainBlock {
  using Unit = T;
  static constexpr int64_t kRows = kSide;
  static constexpr int64_t kColumns = kSide;
  static constexpr bool kMakesLines = false;
  static constexpr bool kLinesInRegisters = false;
  static constexpr bool kTransposesParts = false;
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

// A cache line each way, or 16 bytes.
template <class T>
using PlainTiles = TileKernel<PlainBlock<T, kLineBytes / sizeof(T)>, PlainBlock<T, 16 / sizeof(T)>>;

}  // namespace

void reorder_x8_tiles(const ReorderArguments& a) { walk_bytes<uint8_t, PlainTiles<uint8_t>>(a); }
void reorder_x16_tiles(const ReorderArguments& a) { walk_bytes<uint16_t, PlainTiles<uint16_t>>(a); }
void reorder_x32_tiles(const ReorderArguments& a) { walk_bytes<uint32_t, PlainTiles<uint32_t>>(a); }
void reorder_x64_tiles(const ReorderArguments& a) { walk_bytes<uint64_t, PlainTiles<uint64_t>>(a); }
void reorder_x128_tiles(const ReorderArguments& a) { walk_bytes<Unit128, PlainTiles<Unit128>>(a); }

void transpose_listed_x4(const NibblePlaces& places, const uint8_t* source, uint8_t* destination,
                         uint8_t* pairs) {
  transpose_nibbles(places, transpose_listed_x8, source, destination, pairs);
}
void transpose_listed_x8(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  transpose_listed<PlainBlock<uint8_t, kLineBytes / sizeof(uint8_t)>,
                   PlainBlock<uint8_t, 16 / sizeof(uint8_t)>>(places, source, destination);
}
void transpose_listed_x16(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  transpose_listed<PlainBlock<uint16_t, kLineBytes / sizeof(uint16_t)>,
                   PlainBlock<uint16_t, 16 / sizeof(uint16_t)>>(places, source, destination);
}
void transpose_listed_x32(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  transpose_listed<PlainBlock<uint32_t, kLineBytes / sizeof(uint32_t)>,
                   PlainBlock<uint32_t, 16 / sizeof(uint32_t)>>(places, source, destination);
}
void transpose_listed_x64(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  transpose_listed<PlainBlock<uint64_t, kLineBytes / sizeof(uint64_t)>,
                   PlainBlock<uint64_t, 16 / sizeof(uint64_t)>>(places, source, destination);
}

}  // namespace tilework
