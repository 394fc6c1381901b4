// Casts between element types: one pass over the data, one rounding. A cast chooses its kernels once; any
// number of threads may run it.
//
// clang-format off
// | from        | to                       | rule                                                                       |
// |-------------|--------------------------|----------------------------------------------------------------------------|
// | float       | float                    | to nearest, ties to even, subnormals included                              |
// | too large   | float with infinities    | infinity; in float8 with `saturate` the largest finite value               |
// | too large   | float without infinities | NaN; in float8 with `saturate`, always in float6 and float4, the largest   |
// | NaN         | float                    | quiet NaN with the same sign; float16, float32 and float64 keep the upper  |
// |             |                          | bits of the payload. float4 has no NaN: 6, nor has float6: -0 (kOnnx, both:|
// |             |                          | -0, for a negative NaN 0)                                                  |
// | float       | integer, 8 bits and more | toward zero, clamped; NaN gives 0                                          |
// | float       | integer, 4 and 2 bits    | to nearest even (kOnnx: toward zero), then the low bits; NaN and           |
// |             |                          | infinities give 0                                                          |
// | integer     | integer                  | the low bits                                                               |
// | any         | bool                     | false for 0 and -0, else true                                              |
// | complex     | complex                  | each half by itself                                                        |
// | real        | complex                  | the value becomes the real half                                            |
// | complex     | real                     | refused                                                                    |
// | any         | float8_e8m0fnu           | powers of two only, rounded as `round` says                                |
// clang-format on
//
// Sources: the ONNX notes on float8, float6, float4 and e8m0 and the Cast operator. For kOnnx: the published
// test data and the behaviour of onnx.reference, which converts to bfloat16, float8, float6 and float4
// through float32.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cpu/isa.h"
#include "dtype/dtypes.h"
#include "memory/streaming_copy.h"

namespace tilework {

enum class CastMode : uint8_t { kSpec, kOnnx };

// Rounding to float8_e8m0fnu: to the next power of two, to the nearest one (1.5 * 2^k rounds up), or to the
// previous one.
enum class ScaleRounding : uint8_t { kUp, kNearest, kDown };

struct CastOptions {
  CastMode mode = CastMode::kSpec;
  // Values that are too large for a float8 type become its largest finite value.
  bool saturate = true;
  ScaleRounding round = ScaleRounding::kUp;
};

// Arguments of a kernel: `count` packed elements on both sides, at any byte address. Unused bits of the last
// byte are written as zero. A kernel may use cached stores where streaming ones are requested. After
// streaming stores the caller calls end_streaming (memory/streaming_copy.h).
struct CastArguments {
  const uint8_t* source;
  uint8_t* destination;
  int64_t count;
  Dtype from;
  Dtype to;
  const CastOptions& options;
  Stores stores = Stores::kCached;
};

enum class CastRounding { kNearest, kOdd };

// One row of casts.def.
struct CastKernel {
  // Absent in the reference, which casts every pair.
  std::optional<Dtype> from;
  std::optional<Dtype> to;
  Isa isa;
  CastRounding rounding;
  void (*run)(const CastArguments&);
};

// Name by native/NAMING.md, for example cast_float32_to_float16_avx2.
std::string name_of(const CastKernel& kernel);

// All kernels, for each pair the fastest first; the reference stands last.
std::span<const CastKernel> cast_kernels();
// Casts any pair of types, one element at a time through an exact number.
void cast_reference(const CastArguments& arguments);

class Cast {
 public:
  // Errors: ERR_DTYPE for a cast from a complex to a real type.
  Cast(Dtype from, Dtype to, const CastOptions& options);

  Dtype from() const { return from_; }
  Dtype to() const { return to_; }
  const CastOptions& options() const { return options_; }
  // Names of the kernels in execution order: "cast_int4_to_float32_avx2, cast_...".
  std::string kernels() const;

  // Casts `count` elements; see CastArguments.
  void run(const uint8_t* source, uint8_t* destination, int64_t count, Stores stores = Stores::kCached) const;

 private:
  Dtype from_;
  Dtype to_;
  CastOptions options_;
  // At least one; several if exact intermediate types replace one slow kernel by fast ones.
  std::vector<const CastKernel*> steps_;
};

}  // namespace tilework
