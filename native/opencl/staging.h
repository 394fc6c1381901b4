// Resources of one run beside its kernel: three queues, so that upload, kernel and download overlap, and
// pinned memory. A device keeps a few of these for later runs, since pinned memory is slow to allocate.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "opencl/device.h"

namespace tilework::cl {

// Host memory that a device accesses without an intermediate copy.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(PinnedBuffer&&) = delete;
  ~PinnedBuffer() { reset(); }

  // At least `size` bytes; growing discards the old content. Errors: ERR_DEVICE_MEMORY.
  uint8_t* of_size(const ComputeDevice::Session& session, Queue queue, int64_t size);
  void reset();

  // Last copy from or to this memory; wait for it before using the memory.
  EventHandle in_use;

 private:
  MemoryHandle buffer_;
  Queue queue_ = nullptr;
  void* data_ = nullptr;
  int64_t size_ = 0;
};

// Device memory that is reused from slice to slice.
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
  // Waits for all pending operations.
  void finish() const;
  // Frees buffers that are larger than a run of small slices needs.
  void trim();

  QueueHandle upload;
  QueueHandle compute;
  QueueHandle download;
  // Declared after the queues, which the buffers need for their destruction.
  std::array<PinnedBuffer, 2> uploads;
  std::array<PinnedBuffer, 2> downloads;
  std::array<DeviceBuffer, 2> sources;
  std::array<DeviceBuffer, 2> destinations;
};

}  // namespace tilework::cl
