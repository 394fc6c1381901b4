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

// How integer codes are made; see above.
enum class QuantizeRules : uint8_t { kOnnx, kTmfile };

// What a scaling does, before its kernels are chosen.
struct ScalingDescription {
  ScalingKind kind = ScalingKind::kAffine;
  Dtype from = Dtype::kFloat32;
  Dtype to = Dtype::kFloat32;
  QuantizeRules rules = QuantizeRules::kOnnx;
  // For what becomes a float8.
  bool saturate = true;
  // As many of one as of the other: one for all elements, or one for each block, row-major.
  std::vector<double> scales;
  std::vector<double> offsets;
  // Elements of a block along each axis of the source; the last of an axis may have fewer. Where there is one
  // scale alone it means nothing.
  std::vector<int64_t> blocks;
};

// Elements side by side and their parameters: element at + i has entry index + i * stride of the tables.
struct ParameterRun {
  int64_t at = 0;
  int64_t count = 0;
  int64_t index = 0;
  int64_t stride = 0;
};

// Which parameters belong to which place of the result.
class ParameterPlaces {
 public:
  virtual ~ParameterPlaces() = default;
  // Replaces `runs` by those of elements [first, last), in their order and without gaps.
  virtual void find(int64_t first, int64_t last, std::vector<ParameterRun>& runs) const = 0;
};

// What a kernel gets. `scales` and `offsets` are numbers of the type in which it computes, one for all
// elements where `stride` is 0, else one each. Codes are clamped to [low, high].
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

// One line of scalings.def.
struct ScalingKernel {
  ScalingKind kind;
  Dtype from;
  Dtype to;
  Isa isa;
  void (*run)(const ScalingArguments&);
};

// By the grammar of native/NAMING.md, for example quantize_float32_to_int8__avx2.
std::string name_of(const ScalingKernel& kernel);
// All kernels; of each kind and pair of types the fastest first and the reference last.
std::span<const ScalingKernel> scaling_kernels();

// One kernel with its parameters. Immutable; any number of threads may run it.
class Scaling {
 public:
  // `from` and `to` have a line in scalings.def. Without `places` every element has the first entry.
  Scaling(const ScalingDescription& description, Dtype from, Dtype to,
          std::shared_ptr<const ParameterPlaces> places);

  Dtype from() const { return kernel_->from; }
  Dtype to() const { return kernel_->to; }
  std::string kernels() const { return name_of(*kernel_); }
  // Whether elements differ in their parameters, so that it matters which ones are given.
  bool depends_on_place() const { return places_ != nullptr; }
  // Whether zero becomes zero everywhere.
  bool keeps_zero() const { return keeps_zero_; }
  // Bytes of the tables.
  int64_t footprint() const { return static_cast<int64_t>(scales_.size() + offsets_.size()); }

  // For those who do the same elsewhere: a device.
  ScalingKind kind() const { return kernel_->kind; }
  QuantizeRules rules() const { return rules_; }
  // Limits of codes.
  double low() const { return low_; }
  double high() const { return high_; }
  // Pairs of scale and offset, as codes of the type in which the kernel computes.
  int64_t entries() const { return static_cast<int64_t>(scales_.size()) / number_bytes_; }
  uint64_t scale_code(int64_t entry) const { return code_in(scales_, entry); }
  uint64_t offset_code(int64_t entry) const { return code_in(offsets_, entry); }
  // Null where every element has the first entry.
  const ParameterPlaces* places() const { return places_.get(); }

  // Scales `count` packed elements, of which the first is element `first` of the result.
  void run(const uint8_t* source, uint8_t* destination, int64_t first, int64_t count) const;

 private:
  void run_kernel(const uint8_t* source, uint8_t* destination, int64_t count, const ParameterRun& run) const;
  uint64_t code_in(const std::vector<uint8_t>& table, int64_t entry) const;
  // Numbers of the type in which the kernel computes.
  std::vector<uint8_t> table_of(const std::vector<double>& numbers) const;

  const ScalingKernel* kernel_;
  int64_t number_bytes_;
  std::vector<uint8_t> scales_;
  std::vector<uint8_t> offsets_;
  std::shared_ptr<const ParameterPlaces> places_;
  bool keeps_zero_;
  double low_ = 0;
  double high_ = 0;
  QuantizeRules rules_;
};

// One step of a chain: see dtype/cast_chain.h.
using ElementStep = std::variant<Cast, Scaling>;

// The steps that do a scaling: exact casts to and from the types of its kernel, and what rounds after it.
// Errors: ERR_DTYPE where the type is none for this, ERR_ARGUMENT for tables without entries or of two
// lengths.
std::vector<ElementStep> scaling_steps(const ScalingDescription& description,
                                       std::shared_ptr<const ParameterPlaces> places);

}  // namespace tilework
