#include "opencl/staging.h"

#include <algorithm>

namespace tilework::cl {
namespace {

// Bytes of each buffer that a lane keeps between runs.
constexpr int64_t kKeptBytes = int64_t{16} << 20;

}  // namespace

uint8_t* PinnedBuffer::of_size(const ComputeDevice::Session& session, Queue queue, int64_t size) {
  if (size_ >= size) return static_cast<uint8_t*>(data_);
  reset();
  MemoryHandle buffer = session.buffer(kMemoryReadWrite | kMemoryAllocateHostPointer, size);
  Int status = kSuccess;
  void* data = api().clEnqueueMapBuffer(queue, buffer.get(), 1, kMapRead | kMapWrite, 0,
                                        static_cast<size_t>(size), 0, nullptr, nullptr, &status);
  check(status, "clEnqueueMapBuffer");
  buffer_ = std::move(buffer);
  queue_ = queue;
  data_ = data;
  size_ = size;
  return static_cast<uint8_t*>(data_);
}

void PinnedBuffer::reset() {
  in_use.reset();
  if (data_ != nullptr) api().clEnqueueUnmapMemObject(queue_, buffer_.get(), data_, 0, nullptr, nullptr);
  data_ = nullptr;
  size_ = 0;
  buffer_.reset();
}

Memory DeviceBuffer::of_size(const ComputeDevice::Session& session, int64_t size) {
  if (size_ >= size && buffer_) return buffer_.get();
  reset();
  buffer_ = session.buffer(kMemoryReadWrite, size);
  size_ = size;
  return buffer_.get();
}

void DeviceBuffer::reset() {
  buffer_.reset();
  size_ = 0;
}

void Lane::finish() const {
  for (const QueueHandle* queue : {&upload, &compute, &download}) api().clFinish(queue->get());
}

void Lane::trim() {
  for (auto* buffers : {&sources, &destinations}) {
    for (DeviceBuffer& buffer : *buffers) {
      if (buffer.size() > kKeptBytes) buffer.reset();
    }
  }
}

}  // namespace tilework::cl
