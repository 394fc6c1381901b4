// What one run needs of a device beside its kernel: three queues, so that upload, kernel and download
// overlap, and memory that both can reach. A device keeps a few for later runs, since pinned memory is slow
// to get.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "opencl/device.h"

namespace tilework::cl {

// Memory of the host that a device reads and writes without a copy between.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(PinnedBuffer&&) = delete;
  ~PinnedBuffer() { reset(); }

  // At least `size` bytes, whose old content is gone where they had to be got. Errors: ERR_DEVICE_MEMORY.
  uint8_t* of_size(const ComputeDevice::Session& session, Queue queue, int64_t size);
  void reset();

  // The last copy from or to it; whoever uses the memory waits for it.
  EventHandle in_use;

 private:
  MemoryHandle buffer_;
  Queue queue_ = nullptr;
  void* data_ = nullptr;
  int64_t size_ = 0;
};

// Memory of the device that is kept from slice to slice.
class DeviceBuffer {
 public:
  // Errors: ERR_DEVICE_MEMORY.
  Memory of_size(const ComputeDevice::Session& session, int64_t size);
  void reset();
  int64_t size() const { return size_; }

 private:
  MemoryHandle buffer_;
  int64_t size_ = 0;
};

struct Lane {
  explicit Lane(const ComputeDevice::Session& session)
      : upload(session.queue()), compute(session.queue()), download(session.queue()) {}
  // Waits for all that is under way.
  void finish() const;
  // Gives what is larger than a run of small slices needs back.
  void trim();

  QueueHandle upload;
  QueueHandle compute;
  QueueHandle download;
  // Declared behind the queues, which they need for their own end.
  std::array<PinnedBuffer, 2> uploads;
  std::array<PinnedBuffer, 2> downloads;
  std::array<DeviceBuffer, 2> sources;
  std::array<DeviceBuffer, 2> destinations;
};

}  // namespace tilework::cl
