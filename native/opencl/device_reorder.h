// Runs a plan on a device.
//
// Where host and device share memory, source and destination are used where they lie. Otherwise the
// destination is made in slices: what a slice is made of goes through pinned memory to the device, the kernel
// runs, and the result comes back, with two of each, so that the three overlap. A slice whose source is
// larger than a buffer may be gets it in windows, one run of the kernel each, which add up. So a tensor may
// be larger than the device's memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "io/input_file.h"
#include "io/output_file.h"
#include "opencl/device.h"
#include "opencl/kernel_text.h"
#include "reorder/plan.h"

namespace tilework::cl {

// All bytes of a plan's source: in memory, or from `offset` of a file on, which is read by its descriptor.
struct DeviceSource {
  const uint8_t* memory = nullptr;
  const InputFile* file = nullptr;
  int64_t offset = 0;
};

// The place of a range of the destination: memory, or a file from `position` on.
struct DeviceTarget {
  uint8_t* memory = nullptr;
  OutputFile* file = nullptr;
  int64_t position = 0;
};

struct DeviceOptions {
  // Bytes of the largest buffer; 0 for what the device allows.
  int64_t most_bytes = 0;
  // Whether memory is used where it lies, on devices that share it with the host.
  bool in_place = true;
  // Destination bytes from which on a plan gets a kernel of its own.
  int64_t own_kernel_bytes = int64_t{4} << 20;
  // For the compiler of kernels.
  std::string build_options;
  // Work-items of a group at most; the device may allow fewer.
  int64_t most_group = INT64_MAX;
  // For tests: slices after which the device counts as lost; none where negative.
  int64_t lose_after = -1;
};

class DeviceReorder {
 public:
  // Errors: ERR_UNSUPPORTED for casts that are not done on devices, ERR_LIMIT.
  DeviceReorder(std::shared_ptr<const ReorderPlan> plan, ComputeDevice& device, const DeviceOptions& options,
                int64_t begin, int64_t end);

  // Makes destination bytes [begin, end), for which `plan.check_range` holds. `should_stop` is asked once a
  // slice; the rest is not made then. Errors: ERR_DEVICE_MEMORY, ERR_DEVICE_BUILD, ERR_DEVICE_LOST; those of
  // the files.
  void run(const DeviceSource& source, const DeviceTarget& target,
           const std::function<bool()>& should_stop) const;

  // What the kernel does, for measurements: "transpose, tiles".
  std::string form() const;

 private:
  friend class DeviceRun;
  friend class DeviceTiming;

  std::shared_ptr<const ReorderPlan> plan_;
  ComputeDevice& device_;
  DeviceOptions options_;
  int64_t begin_;
  int64_t end_;
  DeviceMoves moves_;
  KernelText text_;
};

}  // namespace tilework::cl
