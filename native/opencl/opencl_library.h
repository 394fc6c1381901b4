// The OpenCL library of the system, found at run time. It is loaded with the first question for devices, once
// a process, and never unloaded: drivers have threads of their own, which would go on in memory that is gone.
#pragma once

#include <string>

#include "error.h"
#include "opencl/opencl_api.h"

namespace tilework::cl {

struct Library {
  // Null where no library was found.
  const Api* api = nullptr;
  // Why not, for errors.
  std::string reason;
};

// The library that TILEWORK_OPENCL_LIBRARY names ("none" for none), else that of the system. Any thread.
const Library& library();

// The name of a status in the specification, or its number.
std::string status_name(Int status);

// The error of a call that failed. Codes: ERR_DEVICE_MEMORY where memory ran out, else ERR_DEVICE_LOST.
Error failure(Int status, const char* call);

inline void check(Int status, const char* call) {
  if (status != kSuccess) throw failure(status, call);
}

}  // namespace tilework::cl
