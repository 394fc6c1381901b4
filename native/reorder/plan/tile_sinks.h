// What a walk over a program (tile_walk.h) hands its panels to: something that moves them, or that notes what
// they would do. Offsets are bytes, of 4-bit elements half bytes; those of the destination count from the
// beginning of the range that is written.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "reorder/cast/panel_conversion.h"
#include "reorder/plan/footprint.h"
#include "reorder/plan/panel.h"

namespace tilework {

class ByteSink;

class TileSink {
 public:
  virtual ~TileSink() = default;

  // A panel that lies in the range. It begins at its offsets, and has no addresses yet.
  virtual void move(Panel& panel, const Leaf& leaf) = 0;
  // `count` offsets from `s` and `d` on, which both sides keep together.
  virtual void copy(int64_t s, int64_t d, int64_t count) = 0;
  virtual void clear(int64_t d, int64_t count) = 0;

  // Panels have addresses of their own, so tiles may be put together in a buffer first.
  virtual bool has_addresses() const { return false; }
  virtual const ByteSink* as_bytes() const { return nullptr; }
  // What comes is of no interest any more.
  virtual bool is_full() const { return false; }
  // Whether panels of one tile come again and again, some steps of each, so that lines that they share stay
  // in the cache.
  virtual bool shares_lines() const { return true; }
};

// Elements of whole bytes.
class ByteSink final : public TileSink {
 public:
  ByteSink(const uint8_t* source, uint8_t* destination) : source_(source), destination_(destination) {}

  const uint8_t* source() const { return source_; }
  uint8_t* destination() const { return destination_; }
  bool has_addresses() const override { return true; }
  const ByteSink* as_bytes() const override { return this; }

  void move(Panel& panel, const Leaf& leaf) override;
  void copy(int64_t s, int64_t d, int64_t count) override;
  void clear(int64_t d, int64_t count) override;

 private:
  const uint8_t* source_;
  uint8_t* destination_;
};

// Elements of 4 bits.
class NibbleSink final : public TileSink {
 public:
  NibbleSink(const uint8_t* source, uint8_t* destination) : source_(source), destination_(destination) {}

  void move(Panel& panel, const Leaf& leaf) override;
  void copy(int64_t s, int64_t d, int64_t count) override;
  void clear(int64_t d, int64_t count) override;

 private:
  const uint8_t* source_;
  uint8_t* destination_;
};

// Elements that change their type. `origin`: where the range begins in the whole destination.
class CastSink final : public TileSink {
 public:
  CastSink(const PanelConversion& conversion, const Leaves& leaves, const uint8_t* source,
           uint8_t* destination, int64_t origin)
      : conversion_(conversion),
        leaves_(leaves),
        source_(source),
        destination_(destination),
        origin_(origin) {}

  void move(Panel& panel, const Leaf& leaf) override;
  void copy(int64_t s, int64_t d, int64_t count) override;
  void clear(int64_t d, int64_t count) override;

 private:
  const PanelConversion& conversion_;
  const Leaves& leaves_;
  const uint8_t* source_;
  uint8_t* destination_;
  int64_t origin_;
};

// Notes what would be read and written.
class FootprintSink final : public TileSink {
 public:
  explicit FootprintSink(const Footprint& footprint) : footprint_(footprint) {}

  void move(Panel& panel, const Leaf& leaf) override;
  void copy(int64_t s, int64_t d, int64_t count) override;
  void clear(int64_t d, int64_t count) override;
  bool shares_lines() const override { return false; }

 private:
  const Footprint& footprint_;
};

// Keeps the panels of a run, as long as they are few and all that it does.
class KeepingSink final : public TileSink {
 public:
  void move(Panel& panel, const Leaf& leaf) override;
  void copy(int64_t s, int64_t d, int64_t count) override;
  void clear(int64_t d, int64_t count) override;
  bool is_full() const override { return has_more_; }

  // None where a run does more.
  std::vector<PanelMove> take() { return has_more_ ? std::vector<PanelMove>() : std::move(panels_); }

 private:
  std::vector<PanelMove> panels_;
  bool has_more_ = false;
};

// Destination bytes, or half bytes, by the way in which they are moved.
using WayShares = std::map<Way, int64_t>;

// Asks the leaves of the first panels how they would move them.
class WaySink final : public TileSink {
 public:
  // `conversion` may be null.
  WaySink(const PanelConversion* conversion, bool has_addresses, WayShares& shares)
      : conversion_(conversion), has_addresses_(has_addresses), shares_(shares) {}

  void move(Panel& panel, const Leaf& leaf) override;
  void copy(int64_t s, int64_t d, int64_t count) override;
  void clear(int64_t d, int64_t count) override;
  bool has_addresses() const override { return has_addresses_; }
  bool is_full() const override;

 private:
  const PanelConversion* conversion_;
  bool has_addresses_;
  WayShares& shares_;
  int64_t panels_ = 0;
};

}  // namespace tilework
