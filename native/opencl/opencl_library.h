// The OpenCL library of the system, loaded at the first query for devices, once per process, and never
// unloaded: threads of the drivers would continue in unmapped code.
#pragma once

#include <string>

#include "error.h"
#include "opencl/opencl_api.h"

namespace tilework::cl {

struct Library {
  // Null if no library was found.
  const Api* api = nullptr;
  // Reason for error messages if no library was found.
  std::string reason;
};

// The library named by TILEWORK_OPENCL_LIBRARY ("none" disables OpenCL), else the system's. Any thread.
const Library& library();

// Its functions. Only after `library()` had them.
inline const Api& api() { return *library().api; }

// Name of a status in the specification, or its number.
std::string status_name(Int status);

// Error of a failed call: ERR_DEVICE_MEMORY if memory ran out, else ERR_DEVICE_LOST.
Error failure(Int status, const char* call);

inline void check(Int status, const char* call) {
  if (status != kSuccess) throw failure(status, call);
}

}  // namespace tilework::cl
