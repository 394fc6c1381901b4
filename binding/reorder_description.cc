#include "reorder_description.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"

namespace tilework::binding {
namespace {

int axis_number(const Napi::Value& value) {
  const int64_t axis = whole_number(value, "axis");
  return static_cast<int>(std::min<int64_t>(axis, INT32_MAX));
}

Digit digit_of(const Napi::Value& value) {
  const Napi::Object source = object(value, "digit");
  Digit digit;
  const Napi::Array axes = array_of(source, "axes");
  for (uint32_t i = 0; i < axes.Length(); ++i) digit.axes.push_back(axis_number(axes.Get(i)));
  digit.radix = whole_number(source.Get("radix"), "radix");
  digit.weight = whole_number(source.Get("weight"), "weight");
  return digit;
}

Side side_of(const Napi::Object& owner, const char* name) {
  const Napi::Object source = object(owner.Get(name), name);
  Side side;
  side.lower = numbers(source, "lower");
  side.upper = numbers(source, "upper");
  side.elements = whole_number(source.Get("elements"), "elements");
  const Napi::Array pieces = array_of(source, "pieces");
  for (uint32_t i = 0; i < pieces.Length(); ++i) {
    const Napi::Object from = object(pieces.Get(i), "piece");
    Piece piece{axis_number(from.Get("axis")),
                whole_number(from.Get("lo"), "lo"),
                whole_number(from.Get("hi"), "hi"),
                {}};
    const Napi::Array digits = array_of(from, "digits");
    for (uint32_t d = 0; d < digits.Length(); ++d) piece.digits.push_back(digit_of(digits.Get(d)));
    side.pieces.push_back(std::move(piece));
  }
  return side;
}

std::optional<Slice> slice_of(const Napi::Value& value) {
  if (value.IsUndefined()) return std::nullopt;
  const Napi::Object source = object(value, "slice");
  return Slice{numbers(source, "shape"), numbers(source, "start"), numbers(source, "step", signed_number)};
}

Cast cast_of(const Napi::Object& cast) {
  constexpr std::pair<const char*, CastMode> kModes[] = {{"spec", CastMode::kSpec},
                                                         {"onnx", CastMode::kOnnx}};
  constexpr std::pair<const char*, ScaleRounding> kRounds[] = {
      {"up", ScaleRounding::kUp}, {"nearest", ScaleRounding::kNearest}, {"down", ScaleRounding::kDown}};
  CastOptions options;
  options.mode = choice_of(cast, "mode", kModes);
  options.saturate = cast.Get("saturate").ToBoolean().Value();
  options.round = choice_of(cast, "round", kRounds);
  return {dtype_of(word(cast, "from")), dtype_of(word(cast, "to")), options};
}

std::vector<double> doubles_of(const Napi::Object& owner, const char* name) {
  const Napi::Value value = owner.Get(name);
  const bool are_doubles =
      value.IsTypedArray() && value.As<Napi::TypedArray>().TypedArrayType() == napi_float64_array;
  if (!are_doubles) throw Error(ErrorCode::kArgument, std::string("'") + name + "' must be a Float64Array.");
  const Napi::Float64Array array = value.As<Napi::Float64Array>();
  return {array.Data(), array.Data() + array.ElementLength()};
}

ScalingDescription scaling_of(const Napi::Object& source) {
  constexpr std::pair<const char*, ScalingKind> kKinds[] = {{"quantize", ScalingKind::kQuantize},
                                                            {"dequantize", ScalingKind::kDequantize},
                                                            {"affine", ScalingKind::kAffine}};
  constexpr std::pair<const char*, QuantizeRules> kRules[] = {{"onnx", QuantizeRules::kOnnx},
                                                              {"tmfile", QuantizeRules::kTmfile}};
  ScalingDescription scaling;
  scaling.kind = choice_of(source, "kind", kKinds);
  scaling.from = dtype_of(word(source, "from"));
  scaling.to = dtype_of(word(source, "to"));
  scaling.rules = choice_of(source, "rules", kRules);
  scaling.saturate = source.Get("saturate").ToBoolean().Value();
  scaling.scales = doubles_of(source, "scales");
  scaling.offsets = doubles_of(source, "offsets");
  scaling.blocks = numbers(source, "blocks");
  return scaling;
}

// Entries without a `kind` are casts.
std::vector<ElementChange> casts_of(const Napi::Object& owner) {
  std::vector<ElementChange> changes;
  if (owner.Get("casts").IsUndefined()) return changes;
  const Napi::Array array = array_of(owner, "casts");
  for (uint32_t i = 0; i < array.Length(); ++i) {
    const Napi::Object change = object(array.Get(i), "cast");
    if (change.Get("kind").IsUndefined()) {
      changes.emplace_back(cast_of(change));
    } else {
      changes.emplace_back(scaling_of(change));
    }
  }
  return changes;
}

}  // namespace

ReorderDescription description_of(const Napi::Value& value) {
  const Napi::Object source = object(value, "description");
  ReorderDescription description;
  description.element_bits =
      static_cast<int>(std::min<int64_t>(whole_number(source.Get("elementBits"), "elementBits"), INT32_MAX));
  description.shape = numbers(source, "shape");
  description.from = side_of(source, "from");
  description.to = side_of(source, "to");
  description.slice = slice_of(source.Get("slice"));
  description.casts = casts_of(source);
  return description;
}

}  // namespace tilework::binding
