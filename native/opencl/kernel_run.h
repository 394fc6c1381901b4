// A plan's kernel on a device, ready to be run for slices of the destination.
#pragma once

#include <cstdint>
#include <string>

#include "opencl/device.h"
#include "opencl/device_moves.h"
#include "opencl/kernel_text.h"
#include "reorder/source_ranges.h"

namespace tilework::cl {

class KernelRun {
 public:
  // A kernel for whose groups the device has no room, as registers may take it, is replaced by one that takes
  // groups of any size; `most_group` is the room at most. Errors: ERR_DEVICE_BUILD, ERR_DEVICE_MEMORY.
  KernelRun(ComputeDevice::Session& session, const KernelText& text, const DeviceMoves& moves,
            const std::string& build_options, int64_t most_group);

  // Makes the destination bytes of `slice`, with which the buffer `destination` begins, of the source bytes
  // of `window`, with which `source` begins. Elements from elsewhere are zero, or stay what they were where
  // the kernel `adds`. Runs after the event `after`, if that is not null.
  EventHandle enqueue(Queue queue, Memory source, Memory destination, const ByteRange& window,
                      const ByteRange& slice, bool adds, Event after);

 private:
  template <class Value>
  void set(Uint number, const Value& value);

  KernelText text_;
  const DeviceMoves& moves_;
  KernelHandle kernel_;
  // Work-items that a group may have.
  int64_t room_;
  MemoryHandle table_;
};

}  // namespace tilework::cl
