// Tiles of a reorder between files. A range of the destination may be made of single elements from all over
// the source (a transpose), or of every n-th element of a range n times its size (blocks to planes). So a
// tile is a block of each loop: cut so that both the runs that are read and the runs that are written are
// long, and packed, without the gaps between them, into two small buffers. All tiles are run by one program,
// whose loops have the strides of the buffers, each from another position on; only tails have programs of
// their own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "reorder/plan/tile_program.h"

namespace tilework {

// Bytes of a tile: of the destination, for which a buffer may be an eighth larger, and the buffer of the
// source.
struct TileLimits {
  int64_t destination = 0;
  int64_t source = 0;
};

// Runs of equal length in a storage, and one after the other in a buffer. In elements.
struct Runs {
  int64_t length = 0;
  // From one run to the next in the buffer.
  int64_t spacing = 0;
  // How often and how far apart runs repeat in the storage, widest first.
  std::vector<Repeat> repeats;

  // Elements of the buffer.
  int64_t size() const;
};

// Bytes that a tile has in a row in its storage and in its buffer.
struct PackedPiece {
  int64_t storage;
  int64_t packed;
  int64_t size;
};

class FileTiles {
 public:
  struct Tile {
    std::shared_ptr<const TileProgram> program;
    TilePosition position;
    // Storage elements of the first runs; a run begins with the byte of its first element, which may come
    // `lead` elements later.
    int64_t source = 0;
    int64_t destination = 0;
    int64_t lead = 0;
    // In the order of the buffers. What is read comes with short gaps, some of which may lie beyond the
    // storage.
    std::vector<PackedPiece> read;
    std::vector<PackedPiece> written;
  };

  // Tiles that together have destination bytes [begin, end) of a program. None for lookups, where 4-bit
  // runs begin inside a byte, and where two elements would not fit.
  static std::optional<FileTiles> cut(std::shared_ptr<const TileProgram> program, int64_t begin, int64_t end,
                                      TileLimits limits);

  int64_t count() const;
  Tile at(int64_t tile) const;
  // Bytes of whole iterations of the loops that reach into the range.
  int64_t cut_bytes() const {
    int64_t elements = 1;
    for (const Iterations& loop : loops_) elements *= loop.count();
    return bytes_of(elements);
  }

  const Runs& source() const { return source_; }
  const Runs& destination() const { return destination_; }
  // Bytes of the buffers.
  int64_t source_bytes() const { return bytes_of(source_.size()); }
  int64_t destination_bytes() const { return bytes_of(destination_.size()); }

 private:
  // Iterations of a loop.
  struct Iterations {
    int64_t begin;
    int64_t end;
    int64_t count() const { return end - begin; }
  };

  explicit FileTiles(std::shared_ptr<const TileProgram> program) : program_(std::move(program)) {}
  void cut_loops(int64_t begin, int64_t end);
  void pack();
  std::shared_ptr<const TileProgram> program_of(const std::vector<Iterations>& block, int64_t lead) const;
  void find_pieces(Tile& tile) const;
  bool fills_runs(const Tile& tile) const;
  std::vector<PackedPiece> pieces(const Runs& runs, int64_t first,
                                  const std::vector<ByteRange>& touched) const;
  int64_t bytes_of(int64_t elements) const;

  // Of the storages.
  std::shared_ptr<const TileProgram> program_;
  // By loop of its nest: the iterations that are cut, and how many of them a tile has.
  std::vector<Iterations> loops_;
  std::vector<int64_t> blocks_;
  // By loop: strides in the buffers.
  std::vector<int64_t> source_strides_;
  std::vector<int64_t> destination_strides_;
  Runs source_;
  Runs destination_;
  // Of tiles that have whole blocks, as the first one.
  Tile first_;
};

}  // namespace tilework
