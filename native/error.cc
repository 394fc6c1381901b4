#include "error.h"

#include <cerrno>
#include <system_error>

namespace tilework {
namespace {

struct ErrorName {
  int number;
  const char* name;
};

// What opening, mapping and writing a file can answer; a number that is missing here is reported as ERR_IO.
constexpr ErrorName kNames[] = {
    {EACCES, "EACCES"},   {EAGAIN, "EAGAIN"}, {EBADF, "EBADF"},
    {EBUSY, "EBUSY"},     {EDQUOT, "EDQUOT"}, {EEXIST, "EEXIST"},
    {EFAULT, "EFAULT"},   {EFBIG, "EFBIG"},   {EINTR, "EINTR"},
    {EINVAL, "EINVAL"},   {EIO, "EIO"},       {EISDIR, "EISDIR"},
    {ELOOP, "ELOOP"},     {EMFILE, "EMFILE"}, {ENAMETOOLONG, "ENAMETOOLONG"},
    {ENFILE, "ENFILE"},   {ENODEV, "ENODEV"}, {ENOENT, "ENOENT"},
    {ENOMEM, "ENOMEM"},   {ENOSPC, "ENOSPC"}, {ENOTDIR, "ENOTDIR"},
    {ENOTSUP, "ENOTSUP"}, {ENXIO, "ENXIO"},   {EOVERFLOW, "EOVERFLOW"},
    {EPERM, "EPERM"},     {EROFS, "EROFS"},   {ESTALE, "ESTALE"},
    {ETXTBSY, "ETXTBSY"}, {EXDEV, "EXDEV"},
};

const char* name_of(int number) {
  for (const ErrorName& entry : kNames) {
    if (entry.number == number) return entry.name;
  }
  return "ERR_IO";
}

}  // namespace

Error system_error(int number, const std::string& syscall, const std::string& path) {
  const std::string name = name_of(number);
  std::string message = name + ": " + std::generic_category().message(number) + ", " + syscall;
  if (!path.empty()) message += " '" + path + "'";
  return Error(name, message, syscall, path);
}

}  // namespace tilework
