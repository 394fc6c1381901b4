#include "plain_tensors.h"

#include <algorithm>
#include <string>

#include "arguments.h"
#include "facts/limits.h"
#include "input_file.h"
#include "wire/plain_tensors.h"
#include "wire/wire_window.h"

namespace tilework::binding {
namespace {

uint32_t field_number(const Napi::Object& rules, const char* name) {
  const int64_t number = whole_number(rules.Get(name), name);
  if (number > 0 && number <= kMaxFieldNumber) return static_cast<uint32_t>(number);
  throw Error(ErrorCode::kArgument, std::string("'") + name + "' is " + std::to_string(number) +
                                        "; field numbers are from 1 to " + std::to_string(kMaxFieldNumber) +
                                        ".");
}

PlainTensorRules rules_of(const Napi::Object& rules, const Bytes& element_bits) {
  PlainTensorRules result;
  result.list = field_number(rules, "list");
  result.dims = field_number(rules, "dims");
  result.data_type = field_number(rules, "dataType");
  result.name = field_number(rules, "name");
  result.raw_data = field_number(rules, "rawData");
  result.doc_string = field_number(rules, "docString");
  result.data_location = field_number(rules, "dataLocation");
  result.element_bits = {element_bits.data, element_bits.size};
  result.max_axes = static_cast<size_t>(whole_number(rules.Get("maxAxes"), "maxAxes"));
  return result;
}

Napi::Object to_object(Napi::Env env, const PlainTensors& found) {
  Napi::Float64Array offsets = Napi::Float64Array::New(env, kPlainTensorNumbers * found.tensors.size());
  double* next = offsets.Data();
  for (const PlainTensor& tensor : found.tensors) {
    *next++ = static_cast<double>(tensor.values);
    *next++ = static_cast<double>(tensor.end);
    *next++ = static_cast<double>(tensor.header_end);
  }
  Napi::Uint8Array headers = Napi::Uint8Array::New(env, found.headers.size());
  std::copy(found.headers.begin(), found.headers.end(), headers.Data());
  Napi::Object result = Napi::Object::New(env);
  result.Set("position", static_cast<double>(found.position));
  result.Set("bytesRead", static_cast<double>(found.bytes_read));
  result.Set("valueBytes", static_cast<double>(found.value_bytes));
  result.Set("offsets", offsets);
  result.Set("headers", headers);
  return result;
}

}  // namespace

Napi::Value plain_tensors(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const auto file = InputFileObject::file_of(info[0], "file");
    const Napi::Object rules = object(info[1], "rules");
    const Bytes element_bits = bytes_during_call(rules.Get("elementBits"), "elementBits");
    const int64_t start = whole_number(info[2], "start");
    const int64_t end = whole_number(info[3], "end");
    const auto max_tensors = static_cast<size_t>(whole_number(info[4], "maxTensors"));
    check_range(*file, start, end);
    return to_object(info.Env(),
                     tilework::plain_tensors(*file, rules_of(rules, element_bits), start, end, max_tensors));
  });
}

}  // namespace tilework::binding
