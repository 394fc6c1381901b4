#include "opencl/kernel_run.h"

#include <algorithm>

#include "io/checked_math.h"

namespace tilework::cl {
namespace {

// Work-items per group of a kWords or kTable kernel.
constexpr int64_t kWordGroup = 64;

int64_t elements_of(int64_t bytes, int bits) { return bits < 8 ? bytes * (8 / bits) : bytes / (bits / 8); }

}  // namespace

KernelRun::KernelRun(ComputeDevice::Session& session, const KernelText& text, const DeviceMoves& moves,
                     const std::string& build_options, int64_t max_group)
    : text_(text),
      moves_(moves),
      kernel_(session.kernel(text_.source, kKernelName, build_options)),
      room_(std::min(session.room_for(kernel_), max_group)) {
  if (text_.form == KernelForm::kTiles && room_ < kTileGroup) {
    text_ = kernel_text(moves, KernelForm::kWords);
    kernel_ = session.kernel(text_.source, kKernelName, build_options);
    room_ = std::min(session.room_for(kernel_), max_group);
  }
  const auto size = static_cast<int64_t>(text_.table.size() * sizeof(int64_t));
  table_ = session.buffer(kMemoryReadOnly | kMemoryCopyHostPointer, size, text_.table.data());
}

template <class Value>
void KernelRun::set(Uint number, const Value& value) {
  check(api().clSetKernelArg(kernel_.get(), number, sizeof(value), &value), "clSetKernelArg");
}

EventHandle KernelRun::enqueue(Queue queue, Memory source, Memory destination, const ByteRange& window,
                               const ByteRange& slice, bool adds, Event after) {
  const int64_t first = elements_of(slice.begin, moves_.destination_bits);
  const int64_t last = std::min(elements_of(slice.end, moves_.destination_bits), moves_.destination_elements);
  const int64_t window_last = std::min(elements_of(window.end, moves_.source_bits), moves_.source_elements);
  set(0, source);
  set(1, destination);
  set(2, table_.get());
  set(3, static_cast<Ulong>(first));
  set(4, static_cast<Ulong>(last));
  set(5, elements_of(window.begin, moves_.source_bits));
  set(6, window_last);
  set(7, static_cast<Uint>(adds));
  auto group = static_cast<size_t>(std::min(kWordGroup, room_));
  int64_t groups = ceil_div(ceil_div(last - first, text_.elements_per_word), static_cast<int64_t>(group));
  if (text_.form == KernelForm::kTiles) {
    group = kTileGroup;
    const int64_t before = first - text_.destination_base - text_.iteration_span;
    const int64_t from = std::max<int64_t>(before, 0) / text_.iteration_stride;
    const int64_t to =
        std::min(ceil_div(last - text_.destination_base, text_.iteration_stride), text_.iterations);
    const int64_t first_iteration = std::min(from, text_.iterations - 1);
    groups = std::max<int64_t>(to - first_iteration, 1) * text_.groups_per_iteration;
    set(8, static_cast<Ulong>(first_iteration));
  }
  const size_t items = static_cast<size_t>(std::max<int64_t>(groups, 1)) * group;
  EventHandle done;
  check(
      api().clEnqueueNDRangeKernel(queue, kernel_.get(), 1, nullptr, &items, &group, after == nullptr ? 0 : 1,
                                   after == nullptr ? nullptr : &after, done.receive()),
      "clEnqueueNDRangeKernel");
  check(api().clFlush(queue), "clFlush");
  return done;
}

}  // namespace tilework::cl
