// Chooses the kernels of a cast. There are many more pairs of types than kernels. A pair without a kernel
// goes through a type that holds its values exactly, so that only the last step rounds.
#include "dtype/cast.h"

#include <algorithm>
#include <array>
#include <optional>

#include "dtype/casts.h"
#include "error.h"

namespace tilework {
namespace {

#define TILEWORK_RUN_kPortable cast_portable
#define TILEWORK_RUN_kAvx2 cast_avx2
#define TILEWORK_RUN_kNeon cast_neon
constexpr CastKernel kCastKernels[] = {
#define TILEWORK_CAST_KERNEL(from, to, isa, rounding)        \
  {Dtype::from, Dtype::to, Isa::isa, CastRounding::rounding, \
   TILEWORK_RUN_##isa<Dtype::from, Dtype::to, CastRounding::rounding>},
#define TILEWORK_CAST_REFERENCE(run) {{}, {}, Isa::kReference, CastRounding::kNearest, run},
#include "dtype/casts.def"
#undef TILEWORK_CAST_KERNEL
#undef TILEWORK_CAST_REFERENCE
};

const CastKernel& reference() { return *(std::end(kCastKernels) - 1); }

// Kernels in execution order; empty if the pair is left to the reference.
using Route = std::vector<const CastKernel*>;

const CastKernel* kernel_for(Dtype from, Dtype to, CastRounding rounding = CastRounding::kNearest) {
  const auto kernel =
      std::find_if(std::begin(kCastKernels), std::end(kCastKernels), [=](const CastKernel& at) {
        return at.from == from && at.to == to && at.rounding == rounding && can_run(at.isa);
      });
  return kernel == std::end(kCastKernels) ? nullptr : kernel;
}

// Number of bits up to which a type holds every integer exactly.
int significant_bits(const DtypeInfo& type) {
  switch (type.kind) {
    case DtypeKind::kBool:
      return 1;
    case DtypeKind::kInt:
      return type.bits - 1;
    case DtypeKind::kUint:
      return type.bits;
    case DtypeKind::kFloat:
    case DtypeKind::kComplex:
      return type.mantissa_bits + 1;
  }
  return 0;
}

// Whether `middle` holds every value of `from`. Floats below 64 bits, subnormals included, are exact in any
// wider float32 or float64.
bool holds_all(Dtype middle, Dtype from) {
  const DtypeInfo& wide = info_of(middle);
  const DtypeInfo& narrow = info_of(from);
  const bool has_sign =
      wide.kind != DtypeKind::kUint || narrow.kind == DtypeKind::kUint || from == Dtype::kBool;
  const bool has_fractions = is_float(middle) || !is_float(from);
  const bool is_wider = wide.bits > narrow.bits || from == Dtype::kBool;
  return is_wider && has_sign && has_fractions && significant_bits(wide) >= significant_bits(narrow);
}

// Whether a cast may go through `middle` without loss. Integers keep their low bits on the way to integers,
// so they must not become floats, which are clamped.
bool may_go_through(Dtype middle, Dtype from, Dtype to) {
  const bool are_integers = is_integer(from) && is_integer(to);
  if (are_integers && !is_integer(middle)) return false;
  const bool has_all_low_bits = are_integers && info_of(middle).bits >= info_of(to).bits;
  return holds_all(middle, from) || has_all_low_bits;
}

// Kernels from `from` to `to` through at most `steps` exact intermediate types; empty if there are none.
Route exact_route(Dtype from, Dtype to, int steps) {
  if (const CastKernel* kernel = kernel_for(from, to)) return {kernel};
  if (steps == 0) return {};
  constexpr std::array kMiddles{Dtype::kInt8, Dtype::kUint8, Dtype::kFloat32, Dtype::kFloat64};
  for (const Dtype middle : kMiddles) {
    const CastKernel* first = kernel_for(from, middle);
    if (first == nullptr || !may_go_through(middle, from, to)) continue;
    Route tail = exact_route(middle, to, steps - 1);
    if (tail.empty()) continue;
    tail.insert(tail.begin(), first);
    return tail;
  }
  return {};
}

// Types of ml_dtypes, which converts every source through float32.
bool is_of_ml_dtypes(Dtype dtype) {
  return is_float(dtype) && info_of(dtype).bits <= 16 && dtype != Dtype::kFloat16;
}

// To a narrow float through float32. Mode kOnnx rounds to nearest, which reproduces the double rounding of
// the published results. Mode kSpec rounds to odd, which keeps all that the last rounding needs.
Route route_through_float32(Dtype from, Dtype to, const CastOptions& options) {
  // A value beyond float32 would become an infinity, although rounding down needs to tell the largest power
  // of two from the next one.
  const bool tells_beyond = to == Dtype::kFloat8E8m0fnu && from == Dtype::kFloat64 && !options.saturate &&
                            options.round == ScaleRounding::kDown && options.mode == CastMode::kSpec;
  const bool is_narrow = is_float(to) && info_of(to).bits <= 16 && !tells_beyond;
  if (!is_narrow) return {};
  const CastRounding rounding = options.mode == CastMode::kSpec ? CastRounding::kOdd : CastRounding::kNearest;
  const CastKernel* first = kernel_for(from, Dtype::kFloat32, rounding);
  const CastKernel* second = kernel_for(Dtype::kFloat32, to);
  if (first == nullptr || second == nullptr) return {};
  return {first, second};
}

Route route(Dtype from, Dtype to, const CastOptions& options) {
  const bool rounds_twice = options.mode == CastMode::kOnnx && is_of_ml_dtypes(to) &&
                            !holds_all(Dtype::kFloat32, from) && from != Dtype::kFloat32;
  if (rounds_twice) return route_through_float32(from, to, options);
  // uint4 goes to float16 through uint8 and float32.
  constexpr int kExactSteps = 2;
  Route exact = exact_route(from, to, kExactSteps);
  // Only types of ml_dtypes round twice in mode kOnnx; float16 is numpy's, which rounds once.
  if (!exact.empty()) return exact;
  CastOptions once = options;
  once.mode = CastMode::kSpec;
  return route_through_float32(from, to, once);
}

// Elements of an intermediate result that stay in the L1 cache until the next step reads them.
constexpr int64_t kCastBlockElements = 1024;
constexpr int64_t kMaxCastBytes = 8;

}  // namespace

std::span<const CastKernel> cast_kernels() { return kCastKernels; }

std::string name_of(const CastKernel& kernel) {
  std::string name = "cast";
  if (kernel.from && kernel.to) {
    name += "_" + std::string(info_of(*kernel.from).name) + "_to_" + std::string(info_of(*kernel.to).name);
  }
  if (kernel.rounding == CastRounding::kOdd) name += "_odd";
  return name + kernel_suffix(kernel.isa);
}

Cast::Cast(Dtype from, Dtype to, const CastOptions& options) : from_(from), to_(to), options_(options) {
  if (is_complex(from) && !is_complex(to)) {
    throw Error(ErrorCode::kDtype, "A cast from " + std::string(info_of(from).name) + " to " +
                                       std::string(info_of(to).name) +
                                       " would drop the imaginary half; cast to a complex type.");
  }
  steps_ = route(from, to, options);
  if (steps_.empty()) steps_ = {&reference()};
}

std::string Cast::kernels() const {
  std::string names;
  for (const CastKernel* step : steps_) names += (names.empty() ? "" : ", ") + name_of(*step);
  return names;
}

void Cast::run(const uint8_t* source, uint8_t* destination, int64_t count, Stores stores) const {
  if (count == 0) return;
  if (steps_.size() == 1) return steps_[0]->run({source, destination, count, from_, to_, options_, stores});
  alignas(64) uint8_t blocks[2][kCastBlockElements * kMaxCastBytes];
  for (int64_t at = 0; at < count; at += kCastBlockElements) {
    const int64_t size = std::min(kCastBlockElements, count - at);
    const uint8_t* input = source + packed_bytes(from_, at);
    for (size_t i = 0; i < steps_.size(); ++i) {
      const bool is_last = i + 1 == steps_.size();
      uint8_t* output = is_last ? destination + packed_bytes(to_, at) : blocks[i % 2];
      const CastKernel& step = *steps_[i];
      step.run({input, output, size, *step.from, *step.to, options_, is_last ? stores : Stores::kCached});
      input = output;
    }
  }
}

}  // namespace tilework
