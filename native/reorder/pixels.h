// Uint8 pixels with interleaved channels to planes of normalised floats: the affine map of an image batch in
// one pass. Each row of the destination takes every third or fourth byte of the source, so a vector of pixels
// is deinterleaved in registers, converted and stored. The general way moves bytes through a buffer first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dtype/cast_chain.h"
#include "reorder/plan/plan.h"

namespace tilework {

// One row: `count` pixels from `source`, `channels` bytes apart.
struct PixelRow {
  const uint8_t* source;
  int64_t channels;
  uint8_t* destination;
  int64_t count;
  float scale;
  float offset;
  Stores stores;
};

// Reads no byte behind the last pixel. `channels` is 3 or 4.
void pixels_to_float32_avx2(const PixelRow& row);
void pixels_to_float16_avx2(const PixelRow& row);

class PixelCast {
 public:
  // Null where the moves are not dense rows of pixels, the chain is no affine map of uint8 to float32 or
  // float16, or the CPU has no kernel. `cast` must outlive the result.
  static std::unique_ptr<const PixelCast> make(const ReorderPlan& moves, const CastChain& cast);

  std::string kernel() const;
  // As ReorderPlan::run.
  void run(const ReorderArguments& arguments) const;

 private:
  PixelCast(const LoopNest& nest, const Scaling& scaling, int64_t bytes)
      : nest_(nest), scaling_(scaling), bytes_(bytes) {}
  void run_row(const uint8_t* source, uint8_t* destination, int64_t first, int64_t count,
               Stores stores) const;

  LoopNest nest_;
  const Scaling& scaling_;
  // Of a destination element.
  int64_t bytes_;
};

}  // namespace tilework
