#include "error.h"

#include <cerrno>
#include <system_error>

namespace tilework {
namespace {

struct SystemErrorName {
  int number;
  const char* name;
};

// The error numbers of opening, mapping and writing files; any other number is reported as ERR_IO.
constexpr SystemErrorName kSystemErrorNames[] = {
    {EACCES, "EACCES"},       {EAGAIN, "EAGAIN"},
    {EBADF, "EBADF"},         {EBUSY, "EBUSY"},
    {EEXIST, "EEXIST"},       {EFAULT, "EFAULT"},
    {EFBIG, "EFBIG"},         {EINTR, "EINTR"},
    {EINVAL, "EINVAL"},       {EIO, "EIO"},
    {EISDIR, "EISDIR"},       {ELOOP, "ELOOP"},
    {EMFILE, "EMFILE"},       {ENAMETOOLONG, "ENAMETOOLONG"},
    {ENFILE, "ENFILE"},       {ENODEV, "ENODEV"},
    {ENOENT, "ENOENT"},       {ENOMEM, "ENOMEM"},
    {ENOSPC, "ENOSPC"},       {ENOTDIR, "ENOTDIR"},
    {ENOTSUP, "ENOTSUP"},     {ENXIO, "ENXIO"},
    {EOVERFLOW, "EOVERFLOW"}, {EPERM, "EPERM"},
    {EROFS, "EROFS"},         {ETXTBSY, "ETXTBSY"},
    {EXDEV, "EXDEV"},
#ifndef _WIN32
    {EDQUOT, "EDQUOT"},       {ESTALE, "ESTALE"},
#endif
};

const char* name_of_number(int number) {
  for (const SystemErrorName& entry : kSystemErrorNames) {
    if (entry.number == number) return entry.name;
  }
  return name_of(ErrorCode::kIo);
}

}  // namespace

Error system_error(int number, const std::string& syscall, const std::string& path) {
  const char* name = name_of_number(number);
  std::string message = name;
  message += ": " + std::generic_category().message(number) + ", " + syscall;
  if (!path.empty()) message += " '" + path + "'";
  return Error(ErrorCode::kIo, name, message, syscall, path);
}

}  // namespace tilework
