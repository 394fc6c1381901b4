// Panels whose elements change their type on the way: in registers (cast_tiles.h), else by way of a buffer in
// the L1 cache: rows are cast into it and moved from there, or columns are moved into it and cast from there.
// Offsets of a panel count bytes (half bytes of 4-bit elements) of the base type, which is the one that is
// moved: the target type in the first case, the source type in the second.
#pragma once

#include <cstdint>

#include "dtype/cast_chain.h"
#include "reorder/cast/cast_tiles.h"
#include "reorder/plan/panel.h"

namespace tilework {

class PanelConversion {
 public:
  enum class Order : uint8_t { kCastFirst, kMoveFirst };

  // `chain` must outlive the result. Its target has 8 or more bits, and so has its source if it is cast
  // first.
  PanelConversion(const CastChain& chain, Order order);

  Order order() const { return order_; }
  // Whether panels of whole register blocks are cast in registers.
  bool has_registers() const { return in_registers_.run != nullptr; }
  // Bits of an element of the base type.
  int base_bits() const { return info_of(order_ == Order::kCastFirst ? chain_.to() : chain_.from()).bits; }

  // `panel.source` is the storage, `panel.destination` the range that is written; all offsets of the panel
  // are set.
  void run(const Panel& panel, const Leaves& leaves) const;
  // How that is done.
  Way way_of(const Panel& panel) const;
  // Bytes of the destination before a base offset.
  int64_t destination_bytes(int64_t offset) const { return elements_of(offset) * destination_bytes_; }
  // `count` base offsets from `s` and `d` on, which both sides keep together. `destination` has the offset
  // `origin`.
  void move(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t count, int64_t origin,
            Stores stores = Stores::kCached) const;
  void clear(uint8_t* destination, int64_t d, int64_t count) const;

 private:
  // Elements of a number of base offsets.
  int64_t elements_of(int64_t offsets) const { return offsets / base_offsets_; }
  int64_t source_bytes(int64_t offset) const { return elements_of(offset) * source_bits_ / 8; }

  // What of a panel passes through the buffer at a time. A row of the buffer (of moved elements a column)
  // begins `stride` base offsets behind the one before; dense ones are cast together.
  struct Room {
    bool is_dense;
    int64_t rows;
    int64_t columns;
    int64_t stride;
  };
  // Its rows and columns, and the offsets where the panel begins at this step.
  struct Piece {
    int64_t source;
    int64_t destination;
    int64_t row;
    int64_t rows;
    int64_t column;
    int64_t columns;
  };

  Panel in_bytes(const Panel& panel) const;
  bool fits_registers(const Panel& panel) const;
  bool fits_buffer(const Panel& panel) const;
  Room room_for_rows(const Panel& panel) const;
  Room room_for_columns(const Panel& panel) const;
  template <class Body>
  static void each_piece(const Panel& panel, const Room& room, Body body);

  void move_from_high_half(const uint8_t* source, int64_t s, uint8_t* destination, int64_t d, int64_t count,
                           int64_t origin) const;
  void move_units(const Panel& panel) const;
  void fetch(const uint8_t* source, int64_t s, int64_t count) const;
  void cast_rows(const Panel& panel, const Leaves& leaves) const;
  int64_t cast_rows_of(const Panel& panel, const Piece& piece, const Room& room, uint8_t* buffer,
                       int64_t* row_at) const;
  void cast_columns(const Panel& panel, const Leaves& leaves) const;
  void cast_columns_of(const Panel& panel, const Piece& piece, const Room& room, const uint8_t* buffer) const;
  void cast_run(const Panel& panel, const Leaves& leaves) const;
  void cast_from_buffer(const uint8_t* buffer, const Panel& panel, int64_t d, int64_t count) const;
  void clear_holes(const Panel& panel, int64_t first_row, int64_t rows, int64_t d) const;

  const CastChain& chain_;
  Order order_;
  // Base offsets of an element: bytes, or half bytes.
  int64_t base_offsets_;
  int64_t source_bits_;
  int64_t destination_bytes_;
  bool keeps_zero_bits_;
  // Null pointers where the chain has no such leaf.
  CastLeaf in_registers_;
};

}  // namespace tilework
