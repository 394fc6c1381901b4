// The one exception of the native core. The binding copies its fields onto a JavaScript Error.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "facts/error_codes.h"

namespace tilework {

// The name that JavaScript sees: "ERR_RANGE".
constexpr const char* name_of(ErrorCode code) { return kErrorCodeNames[static_cast<size_t>(code)]; }

class Error : public std::runtime_error {
 public:
  // `path` is the file that the error is about, where it is about one.
  Error(ErrorCode code, const std::string& message, std::string path = {})
      : Error(code, name_of(code), message, {}, std::move(path)) {}

  // kIo for a failed system call.
  ErrorCode code() const { return code_; }
  // Name of the code, or of the system's error number: "ENOENT".
  const char* name() const { return name_; }
  // The system call that failed; empty for an error that tilework found itself.
  const std::string& syscall() const { return syscall_; }
  const std::string& path() const { return path_; }

 private:
  friend Error system_error(int number, const std::string& syscall, const std::string& path);

  Error(ErrorCode code, const char* name, const std::string& message, std::string syscall, std::string path)
      : std::runtime_error(message),
        code_(code),
        name_(name),
        syscall_(std::move(syscall)),
        path_(std::move(path)) {}

  ErrorCode code_;
  const char* name_;
  std::string syscall_;
  std::string path_;
};

// The error of a failed system call, worded like Node's own: "ENOENT: no such file or directory, open 'x'".
Error system_error(int number, const std::string& syscall, const std::string& path);

}  // namespace tilework
