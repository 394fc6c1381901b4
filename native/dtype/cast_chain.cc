#include "dtype/cast_chain.h"

#include <algorithm>
#include <utility>

#include "error.h"

namespace tilework {
namespace {

// Elements between two casts: their bytes stay in the first-level cache.
constexpr int64_t kBlockElements = 512;
constexpr int64_t kMaxElementBytes = 16;

}  // namespace

CastChain::CastChain(std::vector<Cast> casts) : casts_(std::move(casts)) {
  for (size_t i = 0; i < casts_.size(); ++i) {
    if (i == 0 || casts_[i].from() == casts_[i - 1].to()) continue;
    throw Error("ERR_ARGUMENT", "A cast takes " + std::string(info_of(casts_[i].from()).name) +
                                    " and is given " + std::string(info_of(casts_[i - 1].to()).name) + ".");
  }
  if (casts_.empty()) throw Error("ERR_ARGUMENT", "A chain of casts needs one at least.");
}

int64_t CastChain::whole_elements() const {
  return std::max(elements_per_byte(from()), elements_per_byte(to()));
}

bool CastChain::keeps_zero_bits() const {
  const uint8_t zero[kMaxElementBytes] = {};
  uint8_t result[kMaxElementBytes] = {};
  run(zero, result, 1);
  return std::all_of(std::begin(result), std::end(result), [](uint8_t byte) { return byte == 0; });
}

std::string CastChain::kernels() const {
  std::string names;
  for (const Cast& cast : casts_) names += (names.empty() ? "" : ", ") + cast.kernels();
  return names;
}

void CastChain::run(const uint8_t* source, uint8_t* destination, int64_t count) const {
  if (casts_.size() == 1) return casts_[0].run(source, destination, count);
  alignas(64) uint8_t blocks[2][kBlockElements * kMaxElementBytes];
  for (int64_t at = 0; at < count; at += kBlockElements) {
    const int64_t size = std::min(kBlockElements, count - at);
    const uint8_t* input = source + packed_bytes(from(), at);
    for (size_t i = 0; i < casts_.size(); ++i) {
      const bool is_last = i + 1 == casts_.size();
      uint8_t* output = is_last ? destination + packed_bytes(to(), at) : blocks[i % 2];
      casts_[i].run(input, output, size);
      input = output;
    }
  }
}

}  // namespace tilework
