// Converts JavaScript values to C++ and back. Checks types; the core checks values.
#pragma once

#include <napi.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "error.h"

namespace tilework::binding {

// Bytes of a Uint8Array; valid as long as `array` is held and its buffer is not detached.
struct Bytes {
  uint8_t* data = nullptr;
  size_t size = 0;
  Napi::Value array;
};

// A whole number from 0 to 2^53 - 1; `name` starts the message. Errors: ERR_ARGUMENT, ERR_OVERFLOW.
int64_t whole_number(const Napi::Value& value, const char* name);

// A whole number from -(2^53 - 1) to 2^53 - 1. Errors: ERR_ARGUMENT, ERR_OVERFLOW.
int64_t signed_number(const Napi::Value& value, const char* name);

// Errors: ERR_ARGUMENT.
Napi::Object object(const Napi::Value& value, const char* name);
std::string string(const Napi::Value& value, const char* name);
std::string path_text(const Napi::Value& value, const char* name);

// Properties of an object. Errors: ERR_ARGUMENT, ERR_OVERFLOW; for arrays of more than 1024 values too.
std::string word(const Napi::Object& owner, const char* name);
Napi::Array array_of(const Napi::Object& owner, const char* name);
std::vector<int64_t> numbers(const Napi::Object& owner, const char* name,
                             int64_t (*number)(const Napi::Value&, const char*) = whole_number);

// Which of several names a property has. Errors: ERR_ARGUMENT.
size_t choice_index(const Napi::Object& owner, const char* name, std::span<const char* const> known);

// The value of one of several names. Errors: ERR_ARGUMENT.
template <class Value, size_t kCount>
Value choice_of(const Napi::Object& owner, const char* name,
                const std::pair<const char*, Value> (&choices)[kCount]) {
  const char* known[kCount];
  for (size_t i = 0; i < kCount; ++i) known[i] = choices[i].first;
  return choices[choice_index(owner, name, known)].second;
}

// A Uint8Array with memory that stays in place unless its buffer is detached or transferred, which Node-API
// cannot prevent. Errors: ERR_ARGUMENT (also for a resizable buffer).
Bytes bytes(const Napi::Value& value, const char* name);

// As `bytes`, for use inside one synchronous call: nobody can shrink a buffer meanwhile, so resizable buffers
// are accepted.
Bytes bytes_during_call(const Napi::Value& value, const char* name);
// As above; absent for a value that is no Uint8Array. One call of Node-API answers both questions.
std::optional<Bytes> bytes_if_array(const Napi::Value& value);

template <class Number>
struct NumberArray {
  Number* data;
  int64_t count;
};

using FloatArray = NumberArray<float>;
using DoubleArray = NumberArray<double>;

// Bytes of a Float32Array or a Float64Array, during a call. Errors: ERR_ARGUMENT.
FloatArray float_array(const Napi::Value& value, const char* name);
DoubleArray double_array(const Napi::Value& value, const char* name);

// First element of an Int32Array, which other threads may set. Lifetime and errors as for `bytes`.
const int32_t* flag(const Napi::Value& value, const char* name);

// A JavaScript Error with the properties `code`, `syscall` and `path`.
Napi::Error to_javascript(Napi::Env env, const Error& error);
Napi::Error to_javascript(Napi::Env env, const std::exception_ptr& error);

// Calls `body` and converts exceptions of the core to JavaScript errors.
template <class Body>
auto guarded(Napi::Env env, Body body) -> std::invoke_result_t<Body> {
  try {
    return body();
  } catch (const Napi::Error&) {
    throw;
  } catch (...) {
    throw to_javascript(env, std::current_exception());
  }
}

}  // namespace tilework::binding
