// Casts between element types: one pass, one rounding. A cast is chosen once and run often, by any number of
// threads.
//
// | from, to | rule |
// |---|---|
// | float to float | to nearest, ties to even, subnormals included; beyond the largest value an infinity, or
// NaN
//   where there is none, or the largest value in float8 with `saturate`; float4 always saturates |
// | NaN | stays NaN with its sign, quiet; float16, float32 and float64 keep the front of the payload |
// | float to integer of 8 bits and more | toward zero; clamped; NaN is 0 |
// | float to integer of 4 and 2 bits | to nearest even (kOnnx: toward zero), then the low bits; NaN and
// infinities 0 | | integer to integer | the low bits | | anything to bool | false for 0 and -0 | | complex to
// complex | each half; a real number becomes the real half; complex to real is refused |
//
// float8_e8m0fnu has powers of two only and rounds as `round` says. NaN to float4 is 6 (kOnnx: -0, of a
// negative NaN 0). Source: the ONNX notes on float8, float4 and e8m0 and the Cast operator; for kOnnx the
// published test data and the behaviour of onnx.reference, which takes all that becomes bfloat16, float8 or
// float4 through float32.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dtype/dtypes.h"
#include "memory/streaming_copy.h"

namespace tilework {

enum class CastMode : uint8_t { kSpec, kOnnx };

// How float8_e8m0fnu rounds: to the next power of two, to the nearest (1.5 * 2^k goes up), or to the last.
enum class ScaleRounding : uint8_t { kUp, kNearest, kDown };

struct CastOptions {
  CastMode mode = CastMode::kSpec;
  // For float8 types, which then have no number beyond.
  bool saturate = true;
  ScaleRounding round = ScaleRounding::kUp;
};

// What a kernel gets: `count` packed elements on both sides, which begin with whole bytes and lie at any
// address. Of a last byte that is not full the rest is written as zero. A kernel may take cached stores where
// streaming ones are asked for; after these, end_streaming (memory/streaming_copy.h) is left to the caller.
struct CastArguments {
  const uint8_t* source;
  uint8_t* destination;
  int64_t count;
  Dtype from;
  Dtype to;
  const CastOptions& options;
  Stores stores = Stores::kCached;
};

enum class CastIsa { kBaseline, kAvx2, kNeon };

enum class CastRounding { kNearest, kOdd };

// One line of casts.def.
struct CastKernel {
  Dtype from;
  Dtype to;
  CastIsa isa;
  CastRounding rounding;
  void (*run)(const CastArguments&);
};

// By the grammar of native/NAMING.md, for example cast_float32_to_float16__avx2.
std::string name_of(const CastKernel& kernel);

// All kernels for single pairs, fastest first. The reference, which casts every pair, is not among them.
std::span<const CastKernel> cast_kernels();
// Whether this CPU has what a kernel needs.
bool can_run(const CastKernel& kernel);
// Any pair, one element at a time through an exact number.
void cast_reference(const CastArguments& arguments);

class Cast {
 public:
  // Errors: ERR_DTYPE for a cast from a complex type to one that is not.
  Cast(Dtype from, Dtype to, const CastOptions& options);

  Dtype from() const { return from_; }
  Dtype to() const { return to_; }
  const CastOptions& options() const { return options_; }
  // Names of the kernels in the order in which they run: "cast_int4_to_float32__avx2, cast_...".
  std::string kernels() const;

  // Casts `count` elements; see CastArguments.
  void run(const uint8_t* source, uint8_t* destination, int64_t count, Stores stores = Stores::kCached) const;

 private:
  Dtype from_;
  Dtype to_;
  CastOptions options_;
  // More than one where exact steps on the way make a pair of fast kernels of a slow cast; none for the
  // reference.
  std::vector<const CastKernel*> steps_;
};

}  // namespace tilework
