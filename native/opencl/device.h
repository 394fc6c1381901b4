// The devices of all OpenCL platforms, and what tilework keeps of one that it works with: a context and the
// programs that were built last. Both are the process's and are shared by its threads; they are never taken
// down, as drivers do not survive that while a process ends.
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

// Owns one object of the library. `kRelease` is the function that gives it back.
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
  // Where the library is to put a new object; a former one is given back.
  Object* place() {
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
  // Bytes of global memory, and of the largest single buffer.
  int64_t memory = 0;
  int64_t largest_buffer = 0;
  int64_t local_memory = 0;
  int64_t work_group = 0;
  // Host and device share memory.
  bool unified_memory = false;
};

// Programs that a device keeps: a model has fewer shapes that are large enough for a program of their own.
inline constexpr size_t kKeptPrograms = 128;

struct Lane;

// Lanes that wait for their next run. As many as there are threads that wait for devices.
inline constexpr size_t kKeptLanes = 4;

class ComputeDevice {
 public:
  ComputeDevice(Device id, DeviceInfo info) : id_(id), info_(std::move(info)) {}
  ComputeDevice(const ComputeDevice&) = delete;
  ComputeDevice& operator=(const ComputeDevice&) = delete;

  const DeviceInfo& info() const { return info_; }
  Device id() const { return id_; }

  // A context and its programs. Those who work with one hold it, also when the device has a new one.
  class Session {
   public:
    explicit Session(const ComputeDevice& device);
    ~Session();
    Context context() const { return context_.get(); }
    // A kernel of the caller's own, of a program with this text, which is built once. Kernels may not be
    // shared by threads. Errors: ERR_DEVICE_BUILD with the log of the compiler.
    KernelHandle kernel(const std::string& source, const char* name, const std::string& options);
    // Work-items that a group of this kernel may have; fewer than the device's where it needs many registers.
    int64_t room_for(const KernelHandle& kernel) const;
    QueueHandle queue(Bitfield properties = 0) const;
    // Errors: ERR_DEVICE_MEMORY.
    MemoryHandle buffer(Bitfield flags, int64_t size, void* host = nullptr) const;
    size_t programs();
    // Queues and staging memory for one run at a time; those that are given back are taken again.
    std::unique_ptr<Lane> take_lane();
    void give_back_lane(std::unique_ptr<Lane> lane);

   private:
    ProgramHandle build(const std::string& source, const std::string& options) const;

    Device device_;
    std::string name_;
    ContextHandle context_;
    std::mutex mutex_;
    // Used last first.
    std::list<std::pair<std::string, ProgramHandle>> programs_;
    std::vector<std::unique_ptr<Lane>> lanes_;
  };

  // Made with the first use, and anew after forget(). Errors: ERR_DEVICE_MEMORY, ERR_DEVICE_LOST.
  std::shared_ptr<Session> session();
  // After a failure of the device, whose context is of no use any more.
  void forget(const std::shared_ptr<Session>& session);

 private:
  Device id_;
  DeviceInfo info_;
  std::mutex mutex_;
  std::shared_ptr<Session> session_;
};

// All devices that are there, can compile kernels and count bytes as this machine does. Looked up once a
// process. Empty without an OpenCL library.
const std::vector<std::unique_ptr<ComputeDevice>>& devices();

}  // namespace tilework::cl
