#include "opencl/device_reorder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "io/checked_math.h"
#include "opencl/kernel_run.h"
#include "opencl/staging.h"
#include "reorder/run/source_ranges.h"

namespace tilework::cl {
namespace {

// Alignment of the ends of slices and windows; a multiple of the widest element.
constexpr int64_t kAlignment = 64;
// Alignment of memory that is used in place: that of the widest load of a kernel.
constexpr uintptr_t kInPlaceAlignment = 16;
// Transferring a slice takes one or two milliseconds, which hides the cost of starting it.
constexpr int64_t kSliceBytes = int64_t{16} << 20;
constexpr int64_t kUploadBytes = int64_t{8} << 20;
// Divisor of the device's memory: two sources and two destinations are on the device at a time, and other
// programs use it too.
constexpr int64_t kShareOfMemory = 6;

// Largest power of two up to kAlignment that divides both ends of a range; the end of the storage counts as
// aligned.
int64_t multiple_of(const ReorderPlan& plan, int64_t begin, int64_t end) {
  const int64_t last = end == plan.destination_bytes() ? 0 : end;
  return std::gcd(kAlignment, std::gcd(begin, last));
}

bool has_tiles(const ComputeDevice& device) {
  return device.info().work_group >= kTileGroup && device.info().local_memory >= 2 * kTileBytes;
}

KernelForm form_for(const DeviceMoves& moves, const ComputeDevice& device, int64_t bytes,
                    const DeviceOptions& options) {
  if (bytes < options.own_kernel_bytes) return KernelForm::kTable;
  const KernelForm best = form_of(moves);
  return best == KernelForm::kTiles && !has_tiles(device) ? KernelForm::kWords : best;
}

}  // namespace

DeviceReorder::DeviceReorder(std::shared_ptr<const ReorderPlan> plan, ComputeDevice& device,
                             const DeviceOptions& options, int64_t begin, int64_t end)
    : plan_(std::move(plan)),
      device_(device),
      options_(options),
      begin_(begin),
      end_(end),
      moves_(moves_of(*plan_, multiple_of(*plan_, begin, end))),
      text_(kernel_text(moves_, form_for(moves_, device, end - begin, options))) {}

std::string DeviceReorder::form() const {
  const char* form = text_.form == KernelForm::kTiles   ? "tiles"
                     : text_.form == KernelForm::kWords ? "words"
                                                        : "table";
  return std::string(text_.shape) + ", " + form;
}

// One run: its buffers and pending operations.
class DeviceRun {
 public:
  DeviceRun(const DeviceReorder& reorder, const DeviceSource& source, const DeviceTarget& target,
            std::shared_ptr<ComputeDevice::Session> session)
      : reorder_(reorder),
        plan_(*reorder.plan_),
        source_(source),
        target_(target),
        session_(std::move(session)),
        lane_(session_->take_lane()),
        kernel_(*session_, reorder.text_, reorder.moves_, reorder.options_.build_options,
                reorder.options_.max_group) {
    const DeviceInfo& info = reorder.device_.info();
    limit_ = reorder.options_.max_bytes > 0 ? reorder.options_.max_bytes
                                            : std::min(info.largest_buffer, info.memory / kShareOfMemory);
    limit_ = std::max(limit_ / kAlignment, int64_t{1}) * kAlignment;
    const bool in_place = reorder.options_.in_place && info.unified_memory;
    source_in_place_ = in_place && is_aligned(source.memory);
    target_in_place_ = in_place && is_aligned(target.memory);
  }

  ~DeviceRun() {
    // The device may still access memory of this run.
    lane_->finish();
    if (is_complete_) session_->give_back_lane(std::move(lane_));
  }
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  void run(const std::function<bool()>& should_stop) {
    const int64_t step = slice_bytes();
    size_t number = 0;
    for (int64_t at = reorder_.begin_; at < reorder_.end_ && !should_stop(); ++number) {
      const int64_t next = std::min(at / step * step + step, reorder_.end_);
      Slice& slice = slices_[number % slices_.size()];
      finish(slice);
      start(slice, number % slices_.size(), at, next);
      at = next;
    }
    // The older slice first.
    finish(slices_[number % slices_.size()]);
    finish(slices_[(number + 1) % slices_.size()]);
    is_complete_ = true;
  }

 private:
  struct Slice {
    int64_t begin = 0;
    int64_t end = 0;
    bool is_under_way = false;
    uint8_t* downloaded_to = nullptr;
    // Buffer over memory that is used in place.
    MemoryHandle in_place;
    EventHandle computed;
    EventHandle downloaded;
  };

  static bool is_aligned(const void* memory) {
    return memory != nullptr && reinterpret_cast<uintptr_t>(memory) % kInPlaceAlignment == 0;
  }

  int64_t slice_bytes() const {
    return source_in_place_ && target_in_place_ ? limit_ : std::min(limit_, kSliceBytes);
  }

  void start(Slice& slice, size_t number, int64_t begin, int64_t end) {
    if (started_++ == reorder_.options_.lose_after)
      throw failure(kDeviceNotAvailable, "The test of a lost device");
    slice.begin = begin;
    slice.end = end;
    const Memory destination = destination_of(slice, number);
    compute(slice, number, destination);
    slice.is_under_way = true;
    if (!target_in_place_) download(slice, number, destination);
  }

  Memory destination_of(Slice& slice, size_t number) {
    const int64_t size = slice.end - slice.begin;
    if (!target_in_place_) return lane_->destinations[number].of_size(*session_, size);
    uint8_t* memory = target_.memory + (slice.begin - reorder_.begin_);
    slice.in_place = session_->buffer(kMemoryReadWrite | kMemoryUseHostPointer, size, memory);
    return slice.in_place.get();
  }

  // Runs the kernel once per source window of the slice.
  void compute(Slice& slice, size_t number, Memory destination) {
    bool adds = false;
    const auto run_kernel = [&](Memory source, const ByteRange& window, Event uploaded) {
      slice.computed = kernel_.enqueue(lane_->compute.get(), source, destination, window,
                                       {slice.begin, slice.end}, adds, uploaded);
      adds = true;
    };
    if (source_in_place_ && plan_.source_bytes() <= limit_) {
      run_kernel(whole_source(), {0, plan_.source_bytes()}, nullptr);
      return;
    }
    const std::vector<ByteRange> ranges = source_ranges(plan_, slice.begin, slice.end);
    size_t at = 0;
    do {
      const std::pair<ByteRange, std::vector<ByteRange>> next = next_window(ranges, at);
      const auto& [window, fragments] = next;
      if (source_in_place_) {
        const MemoryHandle source = source_in_place(window);
        run_kernel(source.get(), window, nullptr);
        check(api().clFinish(lane_->compute.get()), "clFinish");
        continue;
      }
      const Memory source = lane_->sources[number].of_size(*session_, window.size());
      Event uploaded = nullptr;
      for (const ByteRange& range : fragments) uploaded = upload(source, window, range, slice.computed.get());
      run_kernel(source, window, uploaded);
    } while (at < ranges.size());
  }

  // Returns a window of the source that fits a buffer, and the fragments of the ranges from index `at` on
  // that it contains. Advances `at`. A range that is larger than a buffer is split.
  std::pair<ByteRange, std::vector<ByteRange>> next_window(const std::vector<ByteRange>& ranges, size_t& at) {
    std::vector<ByteRange> fragments;
    if (ranges.empty()) return {{0, 0}, fragments};
    const int64_t first = std::max(ranges[at].begin, cut_at_) / kAlignment * kAlignment;
    const int64_t window_end = std::min(first + limit_, plan_.source_bytes());
    int64_t last = first;
    for (; at < ranges.size() && ranges[at].begin < window_end; ++at) {
      last = std::min(ranges[at].end, window_end);
      fragments.push_back({std::max(ranges[at].begin, first), last});
      if (ranges[at].end > window_end) break;
    }
    cut_at_ = at < ranges.size() && ranges[at].begin < window_end ? window_end : 0;
    const int64_t end = std::min(ceil_div(last, kAlignment) * kAlignment, plan_.source_bytes());
    return {{first, end}, fragments};
  }

  Memory whole_source() {
    if (!whole_source_) whole_source_ = source_in_place({0, plan_.source_bytes()});
    return whole_source_.get();
  }

  MemoryHandle source_in_place(const ByteRange& window) const {
    // The device only reads this memory.
    auto* memory = const_cast<uint8_t*>(source_.memory) + window.begin;
    return session_->buffer(kMemoryReadOnly | kMemoryUseHostPointer, window.size(), memory);
  }

  // Uploads a range to its offset in the window, after the kernel that used the buffer before.
  Event upload(Memory to, const ByteRange& window, const ByteRange& range, Event after) {
    Event last = nullptr;
    for (int64_t at = range.begin; at < range.end;) {
      const int64_t size = std::min(range.end - at, kUploadBytes);
      PinnedBuffer& pinned = lane_->uploads[next_upload_++ % lane_->uploads.size()];
      uint8_t* memory = pinned.of_size(*session_, lane_->upload.get(), std::min(kUploadBytes, limit_));
      if (pinned.in_use) wait_for(pinned.in_use);
      fill(memory, at, size);
      const auto offset = static_cast<size_t>(at - window.begin);
      check(api().clEnqueueWriteBuffer(lane_->upload.get(), to, 0, offset, static_cast<size_t>(size), memory,
                                       after == nullptr ? 0 : 1, after == nullptr ? nullptr : &after,
                                       pinned.in_use.receive()),
            "clEnqueueWriteBuffer");
      check(api().clFlush(lane_->upload.get()), "clFlush");
      last = pinned.in_use.get();
      at += size;
    }
    return last;
  }

  void fill(uint8_t* to, int64_t at, int64_t size) const {
    if (source_.memory != nullptr) {
      std::memcpy(to, source_.memory + at, static_cast<size_t>(size));
    } else {
      source_.file->read_at(to, source_.offset + at, size);
    }
  }

  void download(Slice& slice, size_t number, Memory destination) {
    const int64_t size = slice.end - slice.begin;
    slice.downloaded_to = lane_->downloads[number].of_size(*session_, lane_->download.get(), size);
    Event computed = slice.computed.get();
    check(api().clEnqueueReadBuffer(lane_->download.get(), destination, 0, 0, static_cast<size_t>(size),
                                    slice.downloaded_to, 1, &computed, slice.downloaded.receive()),
          "clEnqueueReadBuffer");
    check(api().clFlush(lane_->download.get()), "clFlush");
  }

  // Waits for a slice and copies it to its target.
  void finish(Slice& slice) {
    if (!slice.is_under_way) return;
    slice.is_under_way = false;
    const int64_t size = slice.end - slice.begin;
    if (target_in_place_) {
      sync_in_place(slice);
      return;
    }
    wait_for(slice.downloaded);
    const int64_t offset = slice.begin - reorder_.begin_;
    if (target_.memory != nullptr) {
      std::memcpy(target_.memory + offset, slice.downloaded_to, static_cast<size_t>(size));
    } else {
      target_.file->write(slice.downloaded_to, size, target_.position + offset);
    }
  }

  // Mapping the buffer makes the device's writes visible to the host.
  void sync_in_place(Slice& slice) {
    Int status = kSuccess;
    const Queue queue = lane_->compute.get();
    wait_for(slice.computed);
    void* mapped =
        api().clEnqueueMapBuffer(queue, slice.in_place.get(), 1, kMapRead, 0,
                                 static_cast<size_t>(slice.end - slice.begin), 0, nullptr, nullptr, &status);
    check(status, "clEnqueueMapBuffer");
    check(api().clEnqueueUnmapMemObject(queue, slice.in_place.get(), mapped, 0, nullptr, nullptr),
          "clEnqueueUnmapMemObject");
    check(api().clFinish(queue), "clFinish");
    slice.in_place.reset();
  }

  static void wait_for(const EventHandle& event) {
    Event waited = event.get();
    Int status = api().clWaitForEvents(1, &waited);
    // The event itself reports what went wrong.
    if (status == kExecStatusError) {
      api().clGetEventInfo(waited, kEventExecutionStatus, sizeof(status), &status, nullptr);
    }
    check(status, "clWaitForEvents");
  }

  const DeviceReorder& reorder_;
  const ReorderPlan& plan_;
  DeviceSource source_;
  DeviceTarget target_;
  std::shared_ptr<ComputeDevice::Session> session_;
  std::unique_ptr<Lane> lane_;
  KernelRun kernel_;
  int64_t limit_ = 0;
  bool source_in_place_ = false;
  bool target_in_place_ = false;
  bool is_complete_ = false;
  MemoryHandle whole_source_;
  std::array<Slice, 2> slices_;
  int64_t started_ = 0;
  size_t next_upload_ = 0;
  // Offset at which a split range continues.
  int64_t cut_at_ = 0;
};

void DeviceReorder::run(const DeviceSource& source, const DeviceTarget& target,
                        const std::function<bool()>& should_stop) const {
  if (begin_ >= end_) return;
  const std::shared_ptr<ComputeDevice::Session> session = device_.session();
  try {
    DeviceRun(*this, source, target, session).run(should_stop);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kDeviceLost) device_.forget(session);
    throw;
  }
}

}  // namespace tilework::cl
