// The one exception of the native core. Codes are those of the table in lib/errors.ts, or the name of a
// system error number (ENOENT, ...); the binding copies the fields onto a JavaScript Error and decides
// nothing.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace tilework {

class Error : public std::runtime_error {
 public:
  Error(std::string code, const std::string& message, std::string syscall = {}, std::string path = {})
      : std::runtime_error(message),
        code_(std::move(code)),
        syscall_(std::move(syscall)),
        path_(std::move(path)) {}

  const std::string& code() const { return code_; }
  // The system call that failed; empty for an error that is tilework's own.
  const std::string& syscall() const { return syscall_; }
  const std::string& path() const { return path_; }

 private:
  std::string code_;
  std::string syscall_;
  std::string path_;
};

// The error of a failed system call, worded as Node words its own: "ENOENT: no such file ..., open 'x'".
Error system_error(int number, const std::string& syscall, const std::string& path);

}  // namespace tilework
