#include "block_codes.h"

#include <string>

#include "arguments.h"
#include "dtype/block_codes.h"
#include "dtype/magnitudes.h"
#include "error.h"
#include "io/checked_math.h"

namespace tilework::binding {
namespace {

int64_t count_in(const Napi::Object& from, const char* name) { return whole_number(from.Get(name), name); }

bool flag_in(const Napi::Object& from, const char* name) { return from.Get(name).ToBoolean(); }

BlockRule rule_of(const Napi::Value& value) {
  const Napi::Object rule = object(value, "rule");
  const std::string formula = string(rule.Get("formula"), "formula");
  const int64_t bits = count_in(rule, "bits");
  if (bits != 2 && bits != 4 && bits != 8) throw Error(ErrorCode::kArgument, "'bits' must be 2, 4 or 8.");
  const auto formula_of = [&] {
    if (formula == "matmulnbits") return BlockFormula::kMatMulNBits;
    if (formula == "dequantizelinear") return BlockFormula::kDequantizeLinear;
    if (formula == "gather") return BlockFormula::kGatherBlocks;
    throw Error(ErrorCode::kArgument, "'formula' must be matmulnbits, dequantizelinear or gather.");
  };
  return {formula_of(), static_cast<int>(bits), flag_in(rule, "symmetric"), flag_in(rule, "halfScales")};
}

BlockedNumbers matrix_of(const FloatArray& numbers, const Napi::Value& value) {
  const Napi::Object matrix = object(value, "matrix");
  const BlockedNumbers of{numbers.data, count_in(matrix, "rows"), count_in(matrix, "columns"),
                          count_in(matrix, "blockSize"), flag_in(matrix, "down")};
  if (of.block == 0) throw Error(ErrorCode::kArgument, "'blockSize' must be at least 1.");
  if (numbers.count != checked_mul(of.rows, of.columns, "The size of 'numbers'"))
    throw Error(ErrorCode::kArgument, "'numbers' must have rows * columns numbers.");
  return of;
}

void check_size(int64_t size, int64_t needed, const char* name) {
  if (size == needed) return;
  throw Error(ErrorCode::kArgument, "'" + std::string(name) + "' has " + std::to_string(size) + " entries; " +
                                        std::to_string(needed) + " are needed.");
}

// Memory of the results, of which the sizes are checked.
struct Results {
  Bytes codes;
  FloatArray scales;
  Bytes zeros;

  explicit Results(const Napi::Object& target)
      : codes(bytes_during_call(target.Get("codes"), "codes")),
        scales(float_array(target.Get("scales"), "scales")),
        zeros(bytes_during_call(target.Get("zeros"), "zeros")) {}

  void check(int64_t code_bytes, int64_t entries, bool symmetric) const {
    check_size(static_cast<int64_t>(codes.size), code_bytes, "codes");
    check_size(scales.count, entries, "scales");
    if (!symmetric) check_size(static_cast<int64_t>(zeros.size), entries, "zeros");
  }
};

}  // namespace

Napi::Value quantize_blocks(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const FloatArray numbers = float_array(info[0], "numbers");
    const BlockRule rule = rule_of(info[1]);
    const BlockedNumbers matrix = matrix_of(numbers, info[2]);
    const Napi::Object target = object(info[3], "target");
    const Results results(target);
    const auto times = [](int64_t a, int64_t b) { return checked_mul(a, b, "The size of the codes"); };
    if (target.Has("blocks")) {
      const LineTarget lines{results.codes.data, results.scales.data, results.zeros.data,
                             count_in(target, "blocks"), count_in(target, "first")};
      if (matrix.block % 8 != 0) throw Error(ErrorCode::kArgument, "'blockSize' must be a multiple of 8.");
      const int64_t entries = times(matrix.lines(), lines.blocks);
      results.check(times(entries, times(matrix.block, rule.bits) / 8), entries, rule.symmetric);
      if (lines.first > lines.blocks || matrix.line_blocks() > lines.blocks - lines.first)
        throw Error(ErrorCode::kArgument, "'first' leaves no room for the blocks of 'numbers'.");
      tilework::quantize_blocks(rule, matrix, lines);
    } else {
      results.check(ceil_div(times(numbers.count, rule.bits), 8), times(matrix.lines(), matrix.line_blocks()),
                    rule.symmetric);
      tilework::quantize_blocks(rule, matrix,
                                ElementTarget{results.codes.data, results.scales.data, results.zeros.data});
    }
    return info.Env().Undefined();
  });
}

Napi::Value quantize_bnb4(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const FloatArray numbers = float_array(info[0], "numbers");
    const std::string kind = string(info[1], "kind");
    const int64_t block = whole_number(info[2], "blockSize");
    const Bytes codes = bytes_during_call(info[3], "codes");
    const FloatArray magnitudes = float_array(info[4], "magnitudes");
    if (kind != "nf4" && kind != "fp4") throw Error(ErrorCode::kArgument, "'kind' must be nf4 or fp4.");
    if (block == 0 || block % 2 != 0) throw Error(ErrorCode::kArgument, "'blockSize' must be even.");
    check_size(static_cast<int64_t>(codes.size), ceil_div(numbers.count, 2), "codes");
    check_size(magnitudes.count, ceil_div(numbers.count, block), "magnitudes");
    tilework::quantize_bnb4(kind == "nf4" ? Bnb4Kind::kNf4 : Bnb4Kind::kFp4, numbers.data, numbers.count,
                            block, codes.data, magnitudes.data);
    return info.Env().Undefined();
  });
}

Napi::Value clip_magnitudes(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const FloatArray numbers = float_array(info[0], "numbers");
    const auto limit = [&](size_t at) { return info[at].ToNumber().FloatValue(); };
    const ClipCounts counts = tilework::clip_magnitudes(numbers.data, numbers.count, limit(1), limit(2));
    Napi::Object result = Napi::Object::New(info.Env());
    result.Set("clipped", static_cast<double>(counts.clipped));
    result.Set("lifted", static_cast<double>(counts.lifted));
    return result;
  });
}

}  // namespace tilework::binding
