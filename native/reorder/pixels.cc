#include "reorder/pixels.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <variant>

#include "cpu/isa.h"
#include "policy/thresholds.h"

namespace tilework {
namespace {

bool is_dense(const LoopNest& nest, int64_t elements) {
  if (nest.all_zero || nest.nodes.empty() || nest.destination_base != 0 || !nest.lookups.empty())
    return false;
  int64_t covered = 1;
  for (size_t level = nest.nodes.size(); level-- > 0;) {
    const Node& node = nest.nodes[level];
    if (node.variable != kNone || node.lookup != kNone || node.destination_stride != covered) return false;
    covered *= node.count;
  }
  return covered == elements;
}

// The affine map that is the whole chain but for a last rounding to float16; null for another chain.
const Scaling* affine_of(const CastChain& cast) {
  const std::vector<ElementStep>& steps = cast.steps();
  const auto* scaling = std::get_if<Scaling>(&steps.front());
  const bool is_affine = scaling != nullptr && scaling->kind() == ScalingKind::kAffine &&
                         scaling->from() == Dtype::kUint8 && scaling->to() == Dtype::kFloat32;
  if (!is_affine) return nullptr;
  if (steps.size() == 1) return scaling;
  const auto* last = std::get_if<Cast>(&steps[1]);
  const bool is_half = steps.size() == 2 && last != nullptr && last->to() == Dtype::kFloat16;
  return is_half ? scaling : nullptr;
}

float number_of(uint64_t code) { return std::bit_cast<float>(static_cast<uint32_t>(code)); }

}  // namespace

std::unique_ptr<const PixelCast> PixelCast::make(const ReorderPlan& moves, const CastChain& cast) {
#if defined(__x86_64__)
  if (moves.element_bits() != 8 || moves.nests().size() != 1 || !can_run(Isa::kAvx2)) return nullptr;
  const LoopNest& nest = moves.nests().front();
  const Scaling* scaling = affine_of(cast);
  if (scaling == nullptr || !is_dense(nest, moves.destination_elements())) return nullptr;
  const Node& pixels = nest.nodes.back();
  const bool is_interleaved = pixels.source_stride == 3 || pixels.source_stride == 4;
  if (!is_interleaved || pixels.count < kLeastPixels) return nullptr;
  const int64_t bytes = cast.to() == Dtype::kFloat16 ? 2 : 4;
  return std::unique_ptr<const PixelCast>(new PixelCast(nest, *scaling, bytes));
#else
  static_cast<void>(moves);
  static_cast<void>(cast);
  return nullptr;
#endif
}

std::string PixelCast::kernel() const {
  return bytes_ == 2 ? "pixels_to_float16_avx2" : "pixels_to_float32_avx2";
}

void PixelCast::run(const ReorderArguments& all) const {
  TILEWORK_WAY("pixels");
  const int64_t row_pixels = nest_.nodes.back().count;
  const int64_t last = all.end / bytes_;
  for (int64_t at = all.begin / bytes_; at < last;) {
    const int64_t in_row = at % row_pixels;
    const int64_t count = std::min(row_pixels - in_row, last - at);
    int64_t offset = nest_.source_base + in_row * nest_.nodes.back().source_stride;
    int64_t row = at / row_pixels;
    for (size_t level = nest_.nodes.size() - 1; level-- > 0;) {
      const Node& node = nest_.nodes[level];
      offset += row % node.count * node.source_stride;
      row /= node.count;
    }
    run_row(all.source + offset, all.destination + (at * bytes_ - all.begin), at, count, all.stores);
    at += count;
  }
  if (all.stores == Stores::kStreaming) end_streaming();
}

void PixelCast::run_row(const uint8_t* source, uint8_t* destination, int64_t first, int64_t count,
                        Stores stores) const {
  const int64_t channels = nest_.nodes.back().source_stride;
  const auto run_pixels = [&](int64_t at, int64_t pixels, int64_t entry) {
    const PixelRow row{source + at * channels,
                       channels,
                       destination + at * bytes_,
                       pixels,
                       number_of(scaling_.scale_code(entry)),
                       number_of(scaling_.offset_code(entry)),
                       stores};
#if defined(__x86_64__)
    return bytes_ == 2 ? pixels_to_float16_avx2(row) : pixels_to_float32_avx2(row);
#else
    static_cast<void>(row);
#endif
  };
  if (scaling_.parameter_map() == nullptr) return run_pixels(0, count, 0);
  std::vector<ParameterRun> runs;
  scaling_.parameter_map()->find(first, first + count, runs);
  for (const ParameterRun& run : runs) {
    if (run.stride == 0) {
      run_pixels(run.at - first, run.count, run.index);
      continue;
    }
    for (int64_t i = 0; i < run.count; ++i) run_pixels(run.at - first + i, 1, run.index + i * run.stride);
  }
}

}  // namespace tilework
