// Measures a plan's kernel with its data on the device, beside the device's own copy and its bus. For
// benchmarks only.
#pragma once

#include "opencl/device_reorder.h"

namespace tilework::cl {

// Fastest of all rounds, in seconds.
struct DeviceTimes {
  double kernel = 0;
  // clEnqueueCopyBuffer of half the bytes that the kernel reads and writes, so that both move the same number
  // of bytes.
  double copy = 0;
  // Transfer of the source from pinned memory to the device, and of the destination back.
  double upload = 0;
  double download = 0;
};

class DeviceTiming {
 public:
  // Errors: as DeviceReorder::run; ERR_DEVICE_MEMORY if source and destination do not fit.
  DeviceTiming(const DeviceReorder& reorder, int rounds);
  const DeviceTimes& times() const { return times_; }

 private:
  DeviceTimes times_;
};

}  // namespace tilework::cl
