// The devices of all OpenCL platforms, and what tilework keeps per device: a context and the programs built
// last. Both belong to the process and are shared by its threads. They are never released, since drivers do
// not survive that while a process ends.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "opencl/opencl_api.h"
#include "opencl/opencl_library.h"

namespace tilework::cl {

// Owns an OpenCL object; `kRelease` releases it.
template <class Object, Int (*Api::*kRelease)(Object)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(Object object) : object_(object) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  Object get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  // Out-parameter for a new object; releases the former one.
  Object* receive() {
    reset();
    return &object_;
  }
  void reset() {
    if (object_ != nullptr) (library().api->*kRelease)(object_);
    object_ = nullptr;
  }

 private:
  Object object_ = nullptr;
};

using ContextHandle = Handle<Context, &Api::clReleaseContext>;
using QueueHandle = Handle<Queue, &Api::clReleaseCommandQueue>;
using MemoryHandle = Handle<Memory, &Api::clReleaseMemObject>;
using ProgramHandle = Handle<Program, &Api::clReleaseProgram>;
using KernelHandle = Handle<Kernel, &Api::clReleaseKernel>;
using EventHandle = Handle<Event, &Api::clReleaseEvent>;

struct DeviceInfo {
  std::string platform;
  std::string name;
  // "gpu", "cpu", "accelerator" or "other".
  std::string type;
  std::string version;
  std::string driver;
  // Bytes of global memory and of the largest single buffer.
  int64_t memory = 0;
  int64_t largest_buffer = 0;
  int64_t local_memory = 0;
  int64_t work_group = 0;
  // Host and device share memory.
  bool unified_memory = false;
};

// Programs kept per device: a model has fewer shapes that are large enough for a program of their own.
inline constexpr size_t kKeptPrograms = 128;

struct Lane;

// Idle lanes kept per device: as many as there are threads that wait for devices.
inline constexpr size_t kKeptLanes = 4;

class ComputeDevice {
 public:
  ComputeDevice(Device id, DeviceInfo info) : id_(id), info_(std::move(info)) {}
  ComputeDevice(const ComputeDevice&) = delete;
  ComputeDevice& operator=(const ComputeDevice&) = delete;

  const DeviceInfo& info() const { return info_; }
  Device id() const { return id_; }

  // A context and its programs. Callers share ownership, so a session outlives its replacement by forget().
  class Session {
   public:
    explicit Session(const ComputeDevice& device);
    ~Session();
    Context context() const { return context_.get(); }
    // A new kernel of the program with this source, which is built once. A kernel must not be shared by
    // threads. Errors: ERR_DEVICE_BUILD with the log of the compiler.
    KernelHandle kernel(const std::string& source, const char* name, const std::string& options);
    // Largest work-group of this kernel; smaller than the device's where the kernel needs many registers.
    int64_t room_for(const KernelHandle& kernel) const;
    QueueHandle queue(Bitfield properties = 0) const;
    // Errors: ERR_DEVICE_MEMORY.
    MemoryHandle buffer(Bitfield flags, int64_t size, void* host = nullptr) const;
    size_t programs();
    // Queues and staging memory of one run at a time; returned lanes are reused.
    std::unique_ptr<Lane> take_lane();
    void give_back_lane(std::unique_ptr<Lane> lane);

   private:
    ProgramHandle build(const std::string& source, const std::string& options) const;

    Device device_;
    std::string name_;
    ContextHandle context_;
    std::mutex mutex_;
    // Most recently used first.
    std::list<std::pair<std::string, ProgramHandle>> programs_;
    std::vector<std::unique_ptr<Lane>> lanes_;
  };

  // Created on first use, and again after forget(). Errors: ERR_DEVICE_MEMORY, ERR_DEVICE_LOST.
  std::shared_ptr<Session> session();
  // Drops the session after a failure of the device, which invalidates its context.
  void forget(const std::shared_ptr<Session>& session);

 private:
  Device id_;
  DeviceInfo info_;
  std::mutex mutex_;
  std::shared_ptr<Session> session_;
};

// All available devices that can compile kernels and have this machine's byte order. Probed once per process.
// Empty without an OpenCL library.
const std::vector<std::unique_ptr<ComputeDevice>>& devices();

}  // namespace tilework::cl
