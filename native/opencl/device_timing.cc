#include "opencl/device_timing.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "opencl/kernel_run.h"
#include "opencl/staging.h"

namespace tilework::cl {
namespace {

double seconds_of(const EventHandle& event) {
  Event waited = event.get();
  check(api().clWaitForEvents(1, &waited), "clWaitForEvents");
  Ulong start = 0;
  Ulong end = 0;
  check(api().clGetEventProfilingInfo(waited, kProfilingStart, sizeof(start), &start, nullptr),
        "clGetEventProfilingInfo");
  check(api().clGetEventProfilingInfo(waited, kProfilingEnd, sizeof(end), &end, nullptr),
        "clGetEventProfilingInfo");
  return static_cast<double>(end - start) * 1e-9;
}

}  // namespace

DeviceTiming::DeviceTiming(const DeviceReorder& reorder, int rounds) {
  const auto session = reorder.device_.session();
  const QueueHandle queue = session->queue(kQueueProfiling);
  const int64_t source_bytes = reorder.plan_->source_bytes();
  const int64_t destination_bytes = reorder.plan_->destination_bytes();
  const MemoryHandle source = session->buffer(kMemoryReadWrite, source_bytes);
  const MemoryHandle destination = session->buffer(kMemoryReadWrite, destination_bytes);
  const int64_t half = (source_bytes + destination_bytes) / 2;
  const MemoryHandle from = session->buffer(kMemoryReadWrite, half);
  const MemoryHandle to = session->buffer(kMemoryReadWrite, half);
  PinnedBuffer pinned;
  uint8_t* memory = pinned.of_size(*session, queue.get(), std::max(source_bytes, destination_bytes));
  std::memset(memory, 1, static_cast<size_t>(source_bytes));
  KernelRun kernel(*session, reorder.text_, reorder.moves_, reorder.options_.build_options,
                   reorder.options_.max_group);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  times_ = {kNever, kNever, kNever, kNever};
  const auto keep = [](double& best, const EventHandle& event) { best = std::min(best, seconds_of(event)); };
  for (int round = 0; round < rounds; ++round) {
    EventHandle event;
    check(api().clEnqueueWriteBuffer(queue.get(), source.get(), 0, 0, static_cast<size_t>(source_bytes),
                                     memory, 0, nullptr, event.receive()),
          "clEnqueueWriteBuffer");
    keep(times_.upload, event);
    keep(times_.kernel, kernel.enqueue(queue.get(), source.get(), destination.get(), {0, source_bytes},
                                       {0, destination_bytes}, false, nullptr));
    check(api().clEnqueueCopyBuffer(queue.get(), from.get(), to.get(), 0, 0, static_cast<size_t>(half), 0,
                                    nullptr, event.receive()),
          "clEnqueueCopyBuffer");
    keep(times_.copy, event);
    check(api().clEnqueueReadBuffer(queue.get(), destination.get(), 0, 0,
                                    static_cast<size_t>(destination_bytes), memory, 0, nullptr,
                                    event.receive()),
          "clEnqueueReadBuffer");
    keep(times_.download, event);
  }
}

}  // namespace tilework::cl
