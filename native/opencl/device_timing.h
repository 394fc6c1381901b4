// How fast a plan's kernel is with its data on the device, beside the device's own copy and its bus. For
// measurements: no path of a user comes here.
#pragma once

#include "opencl/device_reorder.h"

namespace tilework::cl {

// Least seconds of all rounds.
struct DeviceTimes {
  double kernel = 0;
  // clEnqueueCopyBuffer of half the bytes that the kernel reads and writes together, so that both move as
  // many.
  double copy = 0;
  // The source from pinned memory to the device, and the destination back.
  double upload = 0;
  double download = 0;
};

class DeviceTiming {
 public:
  // Errors: those of DeviceReorder::run; ERR_DEVICE_MEMORY where source and destination do not fit.
  DeviceTiming(const DeviceReorder& reorder, int rounds);
  const DeviceTimes& times() const { return times_; }

 private:
  DeviceTimes times_;
};

}  // namespace tilework::cl
