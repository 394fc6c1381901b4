#include "arguments.h"

#include <cerrno>
#include <cmath>
#include <new>

#include "environment.h"
#include "io/checked_math.h"

namespace tilework::binding {
namespace {

[[noreturn]] void refuse(const char* name, const char* wanted) {
  throw Error(ErrorCode::kArgument, std::string("'") + name + "' must be " + wanted + ".");
}

// Length in elements.
struct Memory {
  void* data = nullptr;
  size_t length = 0;
};

Memory memory_of(const Napi::Value& value, napi_typedarray_type type, const char* name, const char* wanted) {
  if (!value.IsTypedArray()) refuse(name, wanted);
  napi_typedarray_type found = napi_int8_array;
  Memory memory;
  napi_value buffer = nullptr;
  const auto look = [&] {
    return napi_get_typedarray_info(value.Env(), value, &found, &memory.length, &memory.data, &buffer,
                                    nullptr);
  };
  if (look() != napi_ok || found != type) refuse(name, wanted);
  // Shrinking a resizable buffer would free memory under a running job.
  if (Environment::of(value.Env()).is_resizable(Napi::Value(value.Env(), buffer)))
    refuse(name, "on a buffer with a fixed length");
  // Read the address again: user code may have run since.
  if (look() != napi_ok) refuse(name, wanted);
  return memory;
}

}  // namespace

int64_t whole_number(const Napi::Value& value, const char* name) {
  if (!value.IsNumber()) refuse(name, "a number");
  const double number = value.As<Napi::Number>().DoubleValue();
  if (!(number >= 0) || std::isinf(number) || number != std::floor(number))
    refuse(name, "a whole number, 0 or more");
  if (number > static_cast<double>(kMaxSafeInteger)) throw_overflow(std::string("'") + name + "'");
  return static_cast<int64_t>(number);
}

int64_t signed_number(const Napi::Value& value, const char* name) {
  if (!value.IsNumber()) refuse(name, "a number");
  const double number = value.As<Napi::Number>().DoubleValue();
  if (std::isnan(number) || std::isinf(number) || number != std::floor(number))
    refuse(name, "a whole number");
  if (std::abs(number) > static_cast<double>(kMaxSafeInteger)) throw_overflow(std::string("'") + name + "'");
  return static_cast<int64_t>(number);
}

Napi::Object object(const Napi::Value& value, const char* name) {
  if (!value.IsObject()) refuse(name, "an object");
  return value.As<Napi::Object>();
}

std::string string(const Napi::Value& value, const char* name) {
  if (!value.IsString()) refuse(name, "a string");
  return value.As<Napi::String>().Utf8Value();
}

std::string word(const Napi::Object& owner, const char* name) { return string(owner.Get(name), name); }

Napi::Array array_of(const Napi::Object& owner, const char* name) {
  // Longer arrays are refused before they are read; the limits of the core are tighter.
  constexpr uint32_t kMaxArrayLength = 1024;
  const Napi::Value value = owner.Get(name);
  if (!value.IsArray() || value.As<Napi::Array>().Length() > kMaxArrayLength) {
    throw Error(ErrorCode::kArgument, std::string("'") + name + "' must be an array of at most " +
                                          std::to_string(kMaxArrayLength) + " values.");
  }
  return value.As<Napi::Array>();
}

std::vector<int64_t> numbers(const Napi::Object& owner, const char* name,
                             int64_t (*number)(const Napi::Value&, const char*)) {
  const Napi::Array array = array_of(owner, name);
  std::vector<int64_t> result;
  for (uint32_t i = 0; i < array.Length(); ++i) result.push_back(number(array.Get(i), name));
  return result;
}

size_t choice_index(const Napi::Object& owner, const char* name, std::span<const char* const> known) {
  const std::string text = word(owner, name);
  for (size_t i = 0; i < known.size(); ++i) {
    if (text == known[i]) return i;
  }
  std::string names;
  for (const char* each : known) names += (names.empty() ? "" : ", ") + std::string(each);
  throw Error(ErrorCode::kArgument,
              std::string("'") + name + "' is '" + text + "'; expected one of: " + names + ".");
}

std::string path_text(const Napi::Value& value, const char* name) {
  std::string text = string(value, name);
  // The operating system would silently stop at the null character.
  if (text.find('\0') != std::string::npos) refuse(name, "a path without null characters");
  return text;
}

Bytes bytes(const Napi::Value& value, const char* name) {
  const Memory memory = memory_of(value, napi_uint8_array, name, "a Uint8Array");
  return {static_cast<uint8_t*>(memory.data), memory.length, value};
}

std::optional<Bytes> bytes_if_array(const Napi::Value& value) {
  Bytes bytes;
  void* data = nullptr;
  napi_typedarray_type type = napi_int8_array;
  const napi_status status =
      napi_get_typedarray_info(value.Env(), value, &type, &bytes.size, &data, nullptr, nullptr);
  if (status != napi_ok || type != napi_uint8_array) return std::nullopt;
  bytes.data = static_cast<uint8_t*>(data);
  bytes.array = value;
  return bytes;
}

Bytes bytes_during_call(const Napi::Value& value, const char* name) {
  const std::optional<Bytes> found = bytes_if_array(value);
  if (!found) refuse(name, "a Uint8Array");
  return *found;
}

template <class Number>
NumberArray<Number> number_array(const Napi::Value& value, const char* name) {
  const Bytes memory = bytes_during_call(value, name);
  const bool is_aligned = reinterpret_cast<uintptr_t>(memory.data) % alignof(Number) == 0;
  if (!is_aligned || memory.size % sizeof(Number) != 0) {
    throw Error(ErrorCode::kArgument, "'" + std::string(name) + "' must be the bytes of a Float" +
                                          std::to_string(8 * sizeof(Number)) + "Array.");
  }
  return {reinterpret_cast<Number*>(memory.data), static_cast<int64_t>(memory.size / sizeof(Number))};
}

FloatArray float_array(const Napi::Value& value, const char* name) {
  return number_array<float>(value, name);
}

DoubleArray double_array(const Napi::Value& value, const char* name) {
  return number_array<double>(value, name);
}

const int32_t* flag(const Napi::Value& value, const char* name) {
  const char* wanted = "an Int32Array with at least one element";
  const Memory memory = memory_of(value, napi_int32_array, name, wanted);
  if (memory.length == 0) refuse(name, wanted);
  return static_cast<const int32_t*>(memory.data);
}

Napi::Error to_javascript(Napi::Env env, const Error& error) {
  Napi::Error result = Napi::Error::New(env, error.what());
  result.Set("code", Napi::String::New(env, error.name()));
  if (!error.syscall().empty()) result.Set("syscall", Napi::String::New(env, error.syscall()));
  if (!error.path().empty()) result.Set("path", Napi::String::New(env, error.path()));
  return result;
}

Napi::Error to_javascript(Napi::Env env, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return to_javascript(env, known);
  } catch (const std::bad_alloc&) {
    return to_javascript(env, system_error(ENOMEM, "malloc", {}));
  } catch (const std::system_error& refused) {
    // Only std::thread throws these.
    return to_javascript(env, system_error(refused.code().value(), "pthread_create", {}));
  } catch (const std::exception& unexpected) {
    return to_javascript(env,
                         Error(ErrorCode::kInternal, std::string("internal error: ") + unexpected.what()));
  }
}

}  // namespace tilework::binding
