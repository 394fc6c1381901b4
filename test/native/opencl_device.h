// Shared by the test programs that run on an OpenCL device; each is one file and includes this once.
#pragma once

#include <cstdio>

#include "check.h"
#include "opencl/device_reorder.h"

// Drivers and their compilers keep memory until the process ends; leaks of tilework itself are still
// reported.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\n";
}

namespace tilework::test {

// Exit status of a program with the checks `body`. Without a device it prints that and passes.
template <class Body>
int run_on_device(Body body) {
  if (cl::devices().empty()) {
    std::printf("skipped: there is no OpenCL device\n");
    return 0;
  }
  body();
  return result();
}

}  // namespace tilework::test
