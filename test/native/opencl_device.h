// What the programs share that run on an OpenCL device: each is one file and includes this once.
#pragma once

#include <cstdio>

#include "check.h"
#include "opencl/device_reorder.h"

// Drivers and their compilers keep memory until the process ends; what this project forgets is still told.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\n";
}

namespace tilework::test {

// The exit status of the program whose checks are `body`; without a device it says so and passes.
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
