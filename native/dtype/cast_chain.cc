#include "dtype/cast_chain.h"

#include <algorithm>
#include <utility>

#include "error.h"

namespace tilework {
namespace {

constexpr int64_t kMaxElementBytes = 16;
// Buffer between two steps; two such buffers fit the L1 cache.
constexpr int64_t kBlockBytes = 8192;

Dtype from_of(const ElementStep& step) {
  return std::visit([](const auto& at) { return at.from(); }, step);
}

Dtype to_of(const ElementStep& step) {
  return std::visit([](const auto& at) { return at.to(); }, step);
}

// Elements of the widest intermediate type that fit a buffer; a multiple of 8, so that sub-byte blocks are
// whole bytes.
int64_t elements_of_block(const std::vector<ElementStep>& steps) {
  int64_t widest = 1;
  for (size_t i = 1; i < steps.size(); ++i) widest = std::max(widest, packed_bytes(from_of(steps[i]), 1));
  return kBlockBytes / widest;
}

// Buffer of a scaling; its result is then streamed.
constexpr int64_t kStreamedBytes = 4096;

void scale_streaming(const Scaling& scaling, const uint8_t* source, uint8_t* destination, int64_t first,
                     int64_t count) {
  alignas(64) uint8_t block[kStreamedBytes];
  const int64_t at_a_time = kStreamedBytes / packed_bytes(scaling.to(), 1);
  for (int64_t at = 0; at < count; at += at_a_time) {
    const int64_t size = std::min(at_a_time, count - at);
    scaling.run(source + packed_bytes(scaling.from(), at), block, first + at, size);
    copy_streaming(destination + packed_bytes(scaling.to(), at), block, packed_bytes(scaling.to(), size));
  }
}

void run_step(const ElementStep& step, const uint8_t* source, uint8_t* destination, int64_t first,
              int64_t count, Stores stores) {
  if (const auto* cast = std::get_if<Cast>(&step)) return cast->run(source, destination, count, stores);
  const Scaling& scaling = std::get<Scaling>(step);
  if (stores == Stores::kStreaming) return scale_streaming(scaling, source, destination, first, count);
  scaling.run(source, destination, first, count);
}

}  // namespace

CastChain::CastChain(std::vector<ElementStep> steps)
    : steps_(std::move(steps)), block_elements_(elements_of_block(steps_)) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (i == 0 || from_of(steps_[i]) == to_of(steps_[i - 1])) continue;
    throw Error(ErrorCode::kArgument, "A step takes " + std::string(info_of(from_of(steps_[i])).name) +
                                          " but the step before it gives " +
                                          std::string(info_of(to_of(steps_[i - 1])).name) + ".");
  }
  if (steps_.empty()) throw Error(ErrorCode::kArgument, "A chain of casts needs at least one step.");
}

Dtype CastChain::from() const { return from_of(steps_.front()); }

Dtype CastChain::to() const { return to_of(steps_.back()); }

int64_t CastChain::whole_elements() const {
  return std::max(elements_per_group(from()), elements_per_group(to()));
}

bool CastChain::keeps_zero_bits() const {
  const bool adds = std::any_of(steps_.begin(), steps_.end(), [](const ElementStep& step) {
    const auto* scaling = std::get_if<Scaling>(&step);
    return scaling != nullptr && !scaling->keeps_zero();
  });
  if (adds) return false;
  const uint8_t zero[kMaxElementBytes] = {};
  uint8_t result[kMaxElementBytes] = {};
  run(zero, result, 0, 1);
  return std::all_of(std::begin(result), std::end(result), [](uint8_t byte) { return byte == 0; });
}

bool CastChain::depends_on_position() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const ElementStep& step) {
    const auto* scaling = std::get_if<Scaling>(&step);
    return scaling != nullptr && scaling->depends_on_position();
  });
}

int64_t CastChain::footprint() const {
  int64_t bytes = 0;
  for (const ElementStep& step : steps_) {
    if (const auto* scaling = std::get_if<Scaling>(&step)) bytes += scaling->footprint();
  }
  return bytes;
}

std::string CastChain::kernels() const {
  std::string names;
  for (const ElementStep& step : steps_) {
    names += (names.empty() ? "" : ", ") + std::visit([](const auto& at) { return at.kernels(); }, step);
  }
  return names;
}

void CastChain::run(const uint8_t* source, uint8_t* destination, int64_t first, int64_t count,
                    Stores stores) const {
  if (steps_.size() == 1) return run_step(steps_[0], source, destination, first, count, stores);
  alignas(64) uint8_t blocks[2][kBlockBytes];
  for (int64_t at = 0; at < count; at += block_elements_) {
    const int64_t size = std::min(block_elements_, count - at);
    const uint8_t* input = source + packed_bytes(from(), at);
    for (size_t i = 0; i < steps_.size(); ++i) {
      const bool is_last = i + 1 == steps_.size();
      uint8_t* output = is_last ? destination + packed_bytes(to(), at) : blocks[i % 2];
      run_step(steps_[i], input, output, first + at, size, is_last ? stores : Stores::kCached);
      input = output;
    }
  }
}

}  // namespace tilework
