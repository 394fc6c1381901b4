// JavaScript values to C++ and back. Types are checked here; what the values mean is checked by the core.
#pragma once

#include <napi.h>

#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>

#include "error.h"

namespace tilework::binding {

// Bytes of a Uint8Array. They live as long as `array` is held and its buffer is not detached.
struct Bytes {
  uint8_t* data = nullptr;
  size_t size = 0;
  Napi::Value array;
};

// A whole number from 0 to 2^53 - 1. Errors: ERR_ARGUMENT, ERR_OVERFLOW; `name` is the subject of the
// sentence.
int64_t whole_number(const Napi::Value& value, const char* name);

// A whole number from -(2^53 - 1) to 2^53 - 1. Errors: ERR_ARGUMENT, ERR_OVERFLOW.
int64_t signed_number(const Napi::Value& value, const char* name);

// Errors: ERR_ARGUMENT.
Napi::Object object(const Napi::Value& value, const char* name);
std::string string(const Napi::Value& value, const char* name);
std::string path_text(const Napi::Value& value, const char* name);

// A Uint8Array whose memory stays where it is, but for its buffer being detached or transferred: nothing in
// Node-API holds that up. Errors: ERR_ARGUMENT (also for a resizable buffer).
Bytes bytes(const Napi::Value& value, const char* name);

// As `bytes`, for a call that ends before JavaScript goes on: nobody can shrink a buffer meanwhile, so a
// resizable one will do.
Bytes bytes_during_call(const Napi::Value& value, const char* name);

// The first element of an Int32Array, which other threads may set. Lifetime and errors as for `bytes`.
const int32_t* flag(const Napi::Value& value, const char* name);

// Error with `code`, `syscall` and `path` as a property each.
Napi::Error to_javascript(Napi::Env env, const Error& error);
Napi::Error to_javascript(Napi::Env env, const std::exception_ptr& error);

// Calls `body`; exceptions of the core become JavaScript ones.
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
