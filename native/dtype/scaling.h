// Scalings: linear maps between real numbers and their quantized codes, and from images to features. An
// element has its own scale and offset or shares them with other elements.
//
// clang-format off
// | kind                       | result                                                      | arithmetic                                |
// |----------------------------|-------------------------------------------------------------|-------------------------------------------|
// | quantize to integers       | round(x / scale) + offset, clamped to the type; NaN: offset | quotient in float32; in float64 where x   |
// |                            |                                                             | is float64 or an integer from 32 bits on  |
// | quantize to float8, float4 | cast(x / scale)                                             | the same, then the cast of dtype/cast.h   |
// | dequantize                 | (x - offset) * scale                                        | both steps in the result's type, float32  |
// |                            |                                                             | or float64                                |
// | affine                     | x * scale + offset                                          | rounded once, to float32; to float64      |
// |                            |                                                             | where the quotient or the result is       |
// clang-format on
//
// The offset of a quantized type is its zero point, a whole number. These are QuantizeLinear and
// DequantizeLinear of ONNX, where round() goes to nearest even. The quantizers of Tengine follow
// QuantizeRules::kTmfile: round(x / scale + offset), halves away from zero, and int8 without -128.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cpu/isa.h"
#include "dtype/cast.h"

namespace tilework {

enum class ScalingKind : uint8_t { kQuantize, kDequantize, kAffine };

// Rounding rules of integer codes; see above.
enum class QuantizeRules : uint8_t { kOnnx, kTmfile };

// Description of a scaling; its kernels are not chosen yet.
struct ScalingDescription {
  ScalingKind kind = ScalingKind::kAffine;
  Dtype from = Dtype::kFloat32;
  Dtype to = Dtype::kFloat32;
  QuantizeRules rules = QuantizeRules::kOnnx;
  // For float8 targets.
  bool saturate = true;
  // Equal lengths: one entry for all elements, or one per block, row-major.
  std::vector<double> scales;
  std::vector<double> offsets;
  // Block extents along each axis of the source; the last block of an axis may be shorter. Unused if there is
  // a single scale.
  std::vector<int64_t> blocks;
};

// Consecutive elements and their parameters: element at + i uses entry index + i * stride of the tables.
struct ParameterRun {
  int64_t at = 0;
  int64_t count = 0;
  int64_t index = 0;
  int64_t stride = 0;
};

// Maps elements of the result to parameters.
class ParameterMap {
 public:
  virtual ~ParameterMap() = default;
  // Replaces `runs` by the runs of elements [first, last), in order and without gaps.
  virtual void find(int64_t first, int64_t last, std::vector<ParameterRun>& runs) const = 0;
};

// Arguments of a kernel. `scales` and `offsets` have the type in which the kernel computes: one entry for all
// elements if `stride` is 0, else one per element. Codes are clamped to [low, high].
struct ScalingArguments {
  const uint8_t* source;
  uint8_t* destination;
  int64_t count;
  const void* scales;
  const void* offsets;
  int64_t stride;
  double low;
  double high;
  QuantizeRules rules;
};

// One row of scalings.def.
struct ScalingKernel {
  ScalingKind kind;
  Dtype from;
  Dtype to;
  Isa isa;
  void (*run)(const ScalingArguments&);
};

// Name by native/NAMING.md, for example quantize_float32_to_int8_avx2.
std::string name_of(const ScalingKernel& kernel);
// All kernels; for each kind and pair of types the fastest first and the reference last.
std::span<const ScalingKernel> scaling_kernels();

// A kernel with its parameters. Immutable; any number of threads may run it.
class Scaling {
 public:
  // `from` and `to` have a row in scalings.def. Without `map` every element uses the first entry.
  Scaling(const ScalingDescription& description, Dtype from, Dtype to,
          std::shared_ptr<const ParameterMap> map);

  Dtype from() const { return kernel_->from; }
  Dtype to() const { return kernel_->to; }
  std::string kernels() const { return name_of(*kernel_); }
  // Whether parameters depend on the position of an element.
  bool depends_on_position() const { return map_ != nullptr; }
  // Whether zero maps to zero for all parameters.
  bool keeps_zero() const { return keeps_zero_; }
  // Bytes of the parameter tables.
  int64_t footprint() const { return static_cast<int64_t>(scales_.size() + offsets_.size()); }

  // For devices, which generate the same arithmetic.
  ScalingKind kind() const { return kernel_->kind; }
  QuantizeRules rules() const { return rules_; }
  // Smallest and largest code.
  double low() const { return low_; }
  double high() const { return high_; }
  // Parameter entries, as codes of the type in which the kernel computes.
  int64_t entries() const { return static_cast<int64_t>(scales_.size()) / number_bytes_; }
  uint64_t scale_code(int64_t entry) const { return code_in(scales_, entry); }
  uint64_t offset_code(int64_t entry) const { return code_in(offsets_, entry); }
  // Null if every element uses the first entry.
  const ParameterMap* parameter_map() const { return map_.get(); }

  // Scales `count` packed elements; the first is element `first` of the result.
  void run(const uint8_t* source, uint8_t* destination, int64_t first, int64_t count) const;

 private:
  void run_kernel(const uint8_t* source, uint8_t* destination, int64_t count, const ParameterRun& run) const;
  uint64_t code_in(const std::vector<uint8_t>& table, int64_t entry) const;
  // Converts to the type in which the kernel computes.
  std::vector<uint8_t> table_of(const std::vector<double>& numbers) const;

  const ScalingKernel* kernel_;
  int64_t number_bytes_;
  std::vector<uint8_t> scales_;
  std::vector<uint8_t> offsets_;
  std::shared_ptr<const ParameterMap> map_;
  bool keeps_zero_;
  double low_ = 0;
  double high_ = 0;
  QuantizeRules rules_;
};

// One step of a chain: see dtype/cast_chain.h.
using ElementStep = std::variant<Cast, Scaling>;

// The steps of a scaling: exact casts to and from the types of its kernel, and the final rounding. Errors:
// ERR_DTYPE for an unsuitable type, ERR_ARGUMENT for empty tables or tables of different lengths.
std::vector<ElementStep> scaling_steps(const ScalingDescription& description,
                                       std::shared_ptr<const ParameterMap> map);

}  // namespace tilework
