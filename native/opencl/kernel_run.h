// A plan's kernel on a device, ready to run for slices of the destination.
#pragma once

#include <cstdint>
#include <string>

#include "opencl/device.h"
#include "opencl/device_moves.h"
#include "opencl/kernel_text.h"
#include "reorder/run/source_ranges.h"

namespace tilework::cl {

class KernelRun {
 public:
  // A tiled kernel that needs larger groups than the device can run, for example for lack of registers, is
  // replaced by one that runs with any group size. `max_group` is the upper limit. Errors: ERR_DEVICE_BUILD,
  // ERR_DEVICE_MEMORY.
  KernelRun(ComputeDevice::Session& session, const KernelText& text, const DeviceMoves& moves,
            const std::string& build_options, int64_t max_group);

  // Computes the destination bytes of `slice`, at the start of the buffer `destination`, from the source
  // bytes of `window`, at the start of `source`. Elements with a source outside the window become zero; a
  // kernel that `adds` leaves them unchanged. Runs after the event `after`, if not null.
  EventHandle enqueue(Queue queue, Memory source, Memory destination, const ByteRange& window,
                      const ByteRange& slice, bool adds, Event after);

 private:
  template <class Value>
  void set(Uint number, const Value& value);

  KernelText text_;
  const DeviceMoves& moves_;
  KernelHandle kernel_;
  // Largest work-group.
  int64_t room_;
  MemoryHandle table_;
};

}  // namespace tilework::cl
