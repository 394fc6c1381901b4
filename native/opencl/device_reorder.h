// Runs a plan on a device.
//
// Where host and device share memory, source and destination are used in place. Otherwise the destination is
// computed in slices. The source of a slice goes to the device through pinned memory, the kernel runs, and
// the result comes back. Two sets of buffers let the three overlap. If the source of a slice exceeds the
// largest buffer it is processed in windows, one kernel run each, and the results add up. So a tensor may be
// larger than the device's memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "io/input_file.h"
#include "io/output_file.h"
#include "opencl/device.h"
#include "opencl/kernel_text.h"
#include "reorder/plan/plan.h"

namespace tilework::cl {

// All bytes of a plan's source: memory, or a file from `offset` on, read by descriptor.
struct DeviceSource {
  const uint8_t* memory = nullptr;
  const InputFile* file = nullptr;
  int64_t offset = 0;
};

// Target of a range of the destination: memory, or a file from `position` on.
struct DeviceTarget {
  uint8_t* memory = nullptr;
  OutputFile* file = nullptr;
  int64_t position = 0;
};

struct DeviceOptions {
  // Bytes of the largest buffer; 0 means the limit of the device.
  int64_t max_bytes = 0;
  // Whether devices that share memory with the host use it in place.
  bool in_place = true;
  // From this many destination bytes on, a plan gets its own kernel.
  int64_t own_kernel_bytes = int64_t{4} << 20;
  // Options for the device's compiler.
  std::string build_options;
  // Largest work-group; the device may allow less.
  int64_t max_group = INT64_MAX;
  // For tests: number of slices after which the device counts as lost; negative for never.
  int64_t lose_after = -1;
};

class DeviceReorder {
 public:
  // Errors: ERR_UNSUPPORTED for casts that devices do not do, ERR_LIMIT.
  DeviceReorder(std::shared_ptr<const ReorderPlan> plan, ComputeDevice& device, const DeviceOptions& options,
                int64_t begin, int64_t end);

  // Computes destination bytes [begin, end), which must satisfy `plan.check_range`. Checks `should_stop` once
  // per slice and stops there. Errors: ERR_DEVICE_MEMORY, ERR_DEVICE_BUILD, ERR_DEVICE_LOST; those of the
  // files.
  void run(const DeviceSource& source, const DeviceTarget& target,
           const std::function<bool()>& should_stop) const;

  // Form of the kernel, for measurements: "transpose, tiles".
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
