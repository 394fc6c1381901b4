#include "dtype/scaling.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dtype/scalings.h"
#include "error.h"

namespace tilework {
namespace {

#define TILEWORK_SCALE_kReference scale_reference
#define TILEWORK_SCALE_kPortable scale_portable
#define TILEWORK_SCALE_kAvx2 scale_avx2
constexpr ScalingKernel kScalingKernels[] = {
#define TILEWORK_SCALING_KERNEL(kind, from, to, isa)    \
  {ScalingKind::kind, Dtype::from, Dtype::to, Isa::isa, \
   TILEWORK_SCALE_##isa<ScalingKind::kind, Dtype::from, Dtype::to>},
#include "dtype/scalings.def"
#undef TILEWORK_SCALING_KERNEL
};

// kFoundElements: elements per lookup of parameters. kSpreadElements: elements per kernel call with one entry
// each; their tables fit the L1 cache beside the elements.
constexpr int64_t kFoundElements = 4096;
constexpr int64_t kSpreadElements = 512;
// Shorter runs are spread to one entry per element, since a kernel call costs as much as several elements.
constexpr int64_t kDirectElements = 64;

// Types with values that float32 lacks; they are divided in float64.
bool is_wide(Dtype dtype) {
  const DtypeInfo& info = info_of(dtype);
  return info.bits >= 32 && dtype != Dtype::kFloat32;
}

bool is_wide_float(Dtype dtype) { return dtype == Dtype::kFloat64; }

Error wrong_type(const ScalingDescription& description) {
  constexpr const char* kNames[] = {"quantized", "dequantized", "scaled"};
  return Error(ErrorCode::kDtype, std::string(info_of(description.from).name) + " cannot be " +
                                      kNames[static_cast<size_t>(description.kind)] + " to " +
                                      std::string(info_of(description.to).name) + ".");
}

bool is_code_of_float(Dtype dtype) {
  return is_float(dtype) && info_of(dtype).bits <= 8 && dtype != Dtype::kFloat8E8m0fnu;
}

// Signed integers up to 32 bits and unsigned ones up to 16.
bool is_code_of_integer(Dtype dtype) {
  const int max_bits = info_of(dtype).kind == DtypeKind::kInt ? 32 : 16;
  return is_integer(dtype) && info_of(dtype).bits <= max_bits;
}

bool is_real(Dtype dtype) { return !is_complex(dtype); }

// Types of the kernel for a scaling between any two types.
struct KernelTypes {
  Dtype from;
  Dtype to;
};

KernelTypes quantizing_types(const ScalingDescription& description) {
  const auto [from, to] = std::pair{description.from, description.to};
  if (!is_real(from) || !(is_code_of_float(to) || is_code_of_integer(to))) throw wrong_type(description);
  const Dtype number = is_wide(from) || to == Dtype::kInt32 ? Dtype::kFloat64 : Dtype::kFloat32;
  if (is_float(to)) return {number, number};
  if (number == Dtype::kFloat64 || info_of(to).bits > 8) return {number, Dtype::kInt32};
  return {number, info_of(to).kind == DtypeKind::kInt ? Dtype::kInt8 : Dtype::kUint8};
}

// The type that the kernel starts from: holds the small integers of `from`.
Dtype byte_or_number(Dtype from, Dtype number) {
  const bool is_small = is_integer(from) && info_of(from).bits <= 8 && number == Dtype::kFloat32;
  if (!is_small) return number;
  return info_of(from).kind == DtypeKind::kInt ? Dtype::kInt8 : Dtype::kUint8;
}

KernelTypes dequantizing_types(const ScalingDescription& description) {
  const auto [from, to] = std::pair{description.from, description.to};
  const bool is_number = is_float(to) && info_of(to).bits >= 16;
  if (!is_number || !(is_code_of_float(from) || is_code_of_integer(from))) throw wrong_type(description);
  const Dtype number = is_wide_float(to) ? Dtype::kFloat64 : Dtype::kFloat32;
  return {byte_or_number(from, number), number};
}

KernelTypes affine_types(const ScalingDescription& description) {
  const auto [from, to] = std::pair{description.from, description.to};
  if (!is_real(from) || !is_float(to)) throw wrong_type(description);
  const Dtype number = is_wide(from) || is_wide_float(to) ? Dtype::kFloat64 : Dtype::kFloat32;
  return {byte_or_number(from, number), number};
}

KernelTypes kernel_types(const ScalingDescription& description) {
  switch (description.kind) {
    case ScalingKind::kQuantize:
      return quantizing_types(description);
    case ScalingKind::kDequantize:
      return dequantizing_types(description);
    case ScalingKind::kAffine:
      break;
  }
  return affine_types(description);
}

const ScalingKernel& kernel_for(ScalingKind kind, Dtype from, Dtype to) {
  const auto kernel =
      std::find_if(std::begin(kScalingKernels), std::end(kScalingKernels), [=](const ScalingKernel& at) {
        return at.kind == kind && at.from == from && at.to == to && can_run(at.isa);
      });
  if (kernel == std::end(kScalingKernels))
    throw Error(ErrorCode::kDtype, "No kernel scales " + std::string(info_of(from).name) + " to " +
                                       std::string(info_of(to).name) + ".");
  return *kernel;
}

// Range of integer codes: from -2^(bits - 1) or 0 to `high`.
void limits_of(Dtype dtype, QuantizeRules rules, double& low, double& high) {
  const DtypeInfo& info = info_of(dtype);
  const bool is_signed = info.kind == DtypeKind::kInt;
  high = static_cast<double>((int64_t{1} << (is_signed ? info.bits - 1 : info.bits)) - 1);
  low = is_signed ? -high - 1 : 0;
  if (dtype == Dtype::kInt8 && rules == QuantizeRules::kTmfile) low = -high;
}

uint8_t* bytes_of(double* numbers) { return reinterpret_cast<uint8_t*>(numbers); }

// Parameters of consecutive elements, one entry each.
class Spread {
 public:
  Spread(const uint8_t* scales, const uint8_t* offsets, int64_t size)
      : tables_{scales, offsets}, size_(size) {}

  int64_t count() const { return count_; }
  int64_t room() const { return kSpreadElements - count_; }
  void clear() { count_ = 0; }
  const void* scales() const { return numbers_[0]; }
  const void* offsets() const { return numbers_[1]; }

  void add(const ParameterRun& run, int64_t begin, int64_t end) {
    for (int table = 0; table < 2; ++table) {
      if (size_ == sizeof(float)) {
        add_to<float>(table, run, begin, end);
      } else {
        add_to<double>(table, run, begin, end);
      }
    }
    count_ += end - begin;
  }

 private:
  template <class Number>
  void add_to(int table, const ParameterRun& run, int64_t begin, int64_t end) {
    uint8_t* to = bytes_of(numbers_[table]) + count_ * static_cast<int64_t>(sizeof(Number));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t entry = run.index + i * run.stride;
      std::memcpy(to, tables_[table] + entry * static_cast<int64_t>(sizeof(Number)), sizeof(Number));
      to += sizeof(Number);
    }
  }

  const uint8_t* tables_[2];
  int64_t size_;
  int64_t count_ = 0;
  alignas(64) double numbers_[2][kSpreadElements];
};

}  // namespace

std::span<const ScalingKernel> scaling_kernels() { return kScalingKernels; }

std::string name_of(const ScalingKernel& kernel) {
  constexpr const char* kKinds[] = {"quantize_", "dequantize_", "affine_"};
  return kKinds[static_cast<size_t>(kernel.kind)] + std::string(info_of(kernel.from).name) + "_to_" +
         std::string(info_of(kernel.to).name) + kernel_suffix(kernel.isa);
}

Scaling::Scaling(const ScalingDescription& description, Dtype from, Dtype to,
                 std::shared_ptr<const ParameterMap> map)
    : kernel_(&kernel_for(description.kind, from, to)),
      number_bytes_(from == Dtype::kFloat64 ? sizeof(double) : sizeof(float)),
      scales_(table_of(description.scales)),
      offsets_(table_of(description.offsets)),
      map_(description.scales.size() == 1 ? nullptr : std::move(map)),
      keeps_zero_(std::all_of(description.offsets.begin(), description.offsets.end(),
                              [](double offset) { return offset == 0; })),
      rules_(description.rules) {
  if (is_integer(description.to)) limits_of(description.to, rules_, low_, high_);
}

std::vector<uint8_t> Scaling::table_of(const std::vector<double>& numbers) const {
  std::vector<uint8_t> table(numbers.size() * static_cast<size_t>(number_bytes_));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto narrow = static_cast<float>(numbers[i]);
    const bool is_float = number_bytes_ == sizeof(float);
    std::memcpy(table.data() + i * static_cast<size_t>(number_bytes_),
                is_float ? static_cast<const void*>(&narrow) : &numbers[i],
                static_cast<size_t>(number_bytes_));
  }
  return table;
}

uint64_t Scaling::code_in(const std::vector<uint8_t>& table, int64_t entry) const {
  uint64_t code = 0;
  std::memcpy(&code, table.data() + entry * number_bytes_, static_cast<size_t>(number_bytes_));
  return code;
}

void Scaling::run_kernel(const uint8_t* source, uint8_t* destination, int64_t count,
                         const ParameterRun& run) const {
  const int64_t entry = run.index * number_bytes_;
  kernel_->run({source, destination, count, scales_.data() + entry, offsets_.data() + entry, run.stride, low_,
                high_, rules_});
}

void Scaling::run(const uint8_t* source, uint8_t* destination, int64_t first, int64_t count) const {
  if (map_ == nullptr) return run_kernel(source, destination, count, {0, count, 0, 0});
  const int64_t from_bytes = info_of(from()).bits / 8;
  const int64_t to_bytes = info_of(to()).bits / 8;
  thread_local std::vector<ParameterRun> runs;
  Spread spread(scales_.data(), offsets_.data(), number_bytes_);
  // Elements before `at` are done; the spread holds the next ones.
  int64_t at = first;
  const auto flush = [&] {
    kernel_->run({source + (at - first) * from_bytes, destination + (at - first) * to_bytes, spread.count(),
                  spread.scales(), spread.offsets(), 1, low_, high_, rules_});
    at += spread.count();
    spread.clear();
  };
  for (int64_t found = first; found < first + count; found += kFoundElements) {
    map_->find(found, std::min(found + kFoundElements, first + count), runs);
    for (const ParameterRun& run : runs) {
      if (run.count >= kDirectElements && (run.stride == 0 || run.stride == 1)) {
        flush();
        run_kernel(source + (at - first) * from_bytes, destination + (at - first) * to_bytes, run.count, run);
        at += run.count;
        continue;
      }
      for (int64_t begin = 0; begin < run.count;) {
        const int64_t end = std::min(run.count, begin + spread.room());
        spread.add(run, begin, end);
        if (spread.room() == 0) flush();
        begin = end;
      }
    }
  }
  flush();
}

std::vector<ElementStep> scaling_steps(const ScalingDescription& description,
                                       std::shared_ptr<const ParameterMap> map) {
  if (description.scales.empty() || description.scales.size() != description.offsets.size()) {
    throw Error(ErrorCode::kArgument, "A scaling has " + std::to_string(description.scales.size()) +
                                          " scales and " + std::to_string(description.offsets.size()) +
                                          " offsets; it needs the same number of both, at least one.");
  }
  const auto [from, to] = kernel_types(description);
  CastOptions options;
  options.saturate = description.saturate;
  std::vector<ElementStep> steps;
  if (description.from != from) steps.emplace_back(Cast(description.from, from, options));
  steps.emplace_back(Scaling(description, from, to, std::move(map)));
  if (to != description.to) steps.emplace_back(Cast(to, description.to, options));
  return steps;
}

}  // namespace tilework
