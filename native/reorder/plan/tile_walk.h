// The walk over the loops around a tile, in segments of one guard state, that hands panels to a sink.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "memory/streaming_copy.h"
#include "reorder/plan/tile_program.h"
#include "reorder/plan/tile_sinks.h"
#include "reorder/plan/tile_state.h"

namespace tilework {

class TileWalk {
 public:
  // Over destination bytes [begin, end) of a program, which must outlive the walk.
  TileWalk(const TileProgram& program, int64_t begin, int64_t end, Stores stores, const OuterRange& range);

  // Where the loops of the nest begin, if not with their first iterations.
  void start_at(const TilePosition& position) { position_ = position; }

  void run(TileSink& sink);

  // The states that the walk finds, each once, as far as they are few.
  std::vector<std::shared_ptr<const TileState>> foresee();

  // Iterations of the loops that the walk takes one by one.
  int64_t iterations() const;
  // Whether all states that it came through are the program's.
  bool has_foreseen_states_only() const { return kept_.empty(); }

 private:
  // Ends before iteration `to`.
  struct Segment {
    int64_t to;
    // Every tile lies inside of the range.
    bool is_whole;
  };
  // Steps at which bytes lie in the range, and those at which a part of them does; both in a row.
  struct Inside {
    int64_t first = 0;
    int64_t last = 0;
    int64_t touched_first = 0;
    int64_t touched_last = 0;
  };
  // Columns [first, last) of a panel.
  struct Columns {
    int64_t first;
    int64_t last;
    int64_t count() const { return last - first; }
  };

  void foresee_at(size_t level, bool hole);
  const TileLoop& block_of(const Tiling::Outer& outer) const;
  int64_t blocks_of(const Tiling::Outer& outer) const;
  int64_t block_index(const Tiling::Outer& outer) const;
  std::pair<int64_t, int64_t> iterations_at(size_t level, int64_t d) const;
  Segment segment_at(size_t level, int64_t i, int64_t hi, int64_t d, int64_t span) const;
  void cut_segment(Segment& segment, size_t level, int64_t i, int64_t d, int64_t span) const;
  void step(const Tiling::Outer& outer, int64_t iterations);

  void walk(size_t level, int64_t s, int64_t d, bool hole);
  void strips(size_t level, std::pair<int64_t, int64_t> iterations, int64_t s, int64_t d, bool hole,
              const Steps& around, bool is_whole);
  bool can_pair() const;
  void pairs(size_t level, std::pair<int64_t, int64_t> iterations, int64_t s, int64_t d, bool hole);

  void run_tiles(const TileState& state, int64_t s, int64_t d, const Steps& inner, const Steps& outer,
                 bool is_whole);
  bool is_staged(const TileState& state) const;
  void run_staged(const TileState& state, int64_t s, int64_t d, const Steps& inner, const Steps& outer);
  void run_state(const TileState& state, int64_t s, int64_t d, const Steps& inner, const Steps& outer);
  Panel placed(const Panel& panel, int64_t s, int64_t d, const Steps& inner, const Steps& outer) const;

  void run_cut(const TileState& state, int64_t s, int64_t d, const Steps& steps);
  void run_cut_panel(const PanelMove& move, const Panel& panel, const Steps& steps);
  Inside steps_inside(int64_t d, int64_t bytes, const Steps& steps) const;
  void run_columns(const PanelMove& move, const Panel& panel, Columns columns, const Inside& inside,
                   const Steps& steps);
  void move_units(const Panel& panel, int64_t c, int64_t step, const Steps& steps);
  void move_bytes(int64_t s, int64_t d, int64_t bytes, bool has_source);

  const TileState& state_now(bool hole);

  const TileProgram& program_;
  const LoopNest& nest_;
  const Tiling& tiling_;
  // Of the range in the storage; offsets of the destination count from here. Of 4-bit elements, both count
  // half bytes.
  int64_t origin_;
  int64_t end_;
  Stores stores_;
  OuterRange range_;
  TilePosition position_;
  TileSink* sink_ = nullptr;
  std::vector<std::shared_ptr<const TileState>> kept_;
  const TileState* last_ = nullptr;
  int foreseen_ = 0;
  size_t next_ = 0;
};

}  // namespace tilework
