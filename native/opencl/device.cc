#include "opencl/device.h"

#include <algorithm>
#include <cstdio>

#include "opencl/staging.h"

namespace tilework::cl {
namespace {

template <class Value>
Value number_of(Device device, Uint what) {
  Value value{};
  check(api().clGetDeviceInfo(device, what, sizeof(value), &value, nullptr), "clGetDeviceInfo");
  return value;
}

// The text that `get` returns, without its terminating zero.
template <class Get>
std::string text_of(Get get) {
  size_t size = 0;
  if (get(0, nullptr, &size) != kSuccess || size == 0) return {};
  std::string text(size, '\0');
  if (get(size, text.data(), nullptr) != kSuccess) return {};
  text.resize(std::min(text.find('\0'), size));
  return text;
}

std::string text_of(Device device, Uint what) {
  return text_of([=](size_t size, void* to, size_t* needed) {
    return api().clGetDeviceInfo(device, what, size, to, needed);
  });
}

std::string type_of(Bitfield type) {
  if ((type & kDeviceTypeGpu) != 0) return "gpu";
  if ((type & kDeviceTypeCpu) != 0) return "cpu";
  return (type & kDeviceTypeAccelerator) != 0 ? "accelerator" : "other";
}

int64_t clamped(Ulong value) { return static_cast<int64_t>(std::min<Ulong>(value, INT64_MAX)); }

DeviceInfo info_of(Platform platform, Device device) {
  DeviceInfo info;
  info.platform = text_of([=](size_t size, void* to, size_t* needed) {
    return api().clGetPlatformInfo(platform, kPlatformName, size, to, needed);
  });
  info.name = text_of(device, kDeviceName);
  info.type = type_of(number_of<Bitfield>(device, kDeviceType));
  info.version = text_of(device, kDeviceVersion);
  info.driver = text_of(device, kDriverVersion);
  info.memory = clamped(number_of<Ulong>(device, kDeviceGlobalMemory));
  info.largest_buffer = clamped(number_of<Ulong>(device, kDeviceMaxAllocation));
  info.local_memory = clamped(number_of<Ulong>(device, kDeviceLocalMemory));
  info.work_group = static_cast<int64_t>(number_of<size_t>(device, kDeviceMaxWorkGroupSize));
  // OpenCL 2.0 deprecates this query; a device that does not answer it does not share memory.
  Bool unified = 0;
  const Int status = api().clGetDeviceInfo(device, kDeviceUnifiedMemory, sizeof(unified), &unified, nullptr);
  info.unified_memory = status == kSuccess && unified != 0;
  return info;
}

// Kernels need 64-bit integers and byte stores, which every full-profile device has from this version on.
bool is_complete(Device device) {
  const std::string prefix = "OpenCL ";
  const std::string version = text_of(device, kDeviceVersion);
  if (version.compare(0, prefix.size(), prefix) != 0) return false;
  int major = 0;
  int minor = 0;
  if (std::sscanf(version.c_str() + prefix.size(), "%d.%d", &major, &minor) != 2) return false;
  return (major > 1 || (major == 1 && minor >= 2)) && text_of(device, kDeviceProfile) == "FULL_PROFILE";
}

bool is_usable(Device device) {
  return is_complete(device) && number_of<Bool>(device, kDeviceAvailable) != 0 &&
         number_of<Bool>(device, kDeviceCompilerAvailable) != 0 &&
         number_of<Bool>(device, kDeviceLittleEndian) != 0;
}

template <class Object, class Get>
std::vector<Object> list_of(Get get) {
  Uint count = 0;
  if (get(0, nullptr, &count) != kSuccess || count == 0) return {};
  std::vector<Object> objects(count);
  if (get(count, objects.data(), nullptr) != kSuccess) return {};
  return objects;
}

using DeviceList = std::vector<std::unique_ptr<ComputeDevice>>;

void add_devices(Platform platform, DeviceList& list) {
  const auto ids = list_of<Device>([=](Uint count, Device* to, Uint* found) {
    return api().clGetDeviceIDs(platform, kDeviceTypeAll, count, to, found);
  });
  for (const Device id : ids) {
    try {
      if (is_usable(id)) list.push_back(std::make_unique<ComputeDevice>(id, info_of(platform, id)));
    } catch (const Error&) {
      // Skips a device that cannot describe itself.
    }
  }
}

DeviceList find_devices() {
  DeviceList list;
  if (library().api == nullptr) return list;
  const auto platforms = list_of<Platform>(
      [](Uint count, Platform* to, Uint* found) { return api().clGetPlatformIDs(count, to, found); });
  for (const Platform platform : platforms) add_devices(platform, list);
  return list;
}

}  // namespace

const std::vector<std::unique_ptr<ComputeDevice>>& devices() {
  static const auto* found = new DeviceList(find_devices());
  return *found;
}

std::shared_ptr<ComputeDevice::Session> ComputeDevice::session() {
  const std::lock_guard lock(mutex_);
  if (session_ == nullptr) session_ = std::make_shared<Session>(*this);
  return session_;
}

void ComputeDevice::forget(const std::shared_ptr<Session>& session) {
  const std::lock_guard lock(mutex_);
  if (session_ == session) session_ = nullptr;
}

ComputeDevice::Session::Session(const ComputeDevice& device)
    : device_(device.id()), name_(device.info().name) {
  Int status = kSuccess;
  context_ = ContextHandle(api().clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status));
  check(status, "clCreateContext");
}

ComputeDevice::Session::~Session() = default;

std::unique_ptr<Lane> ComputeDevice::Session::take_lane() {
  {
    const std::lock_guard lock(mutex_);
    if (!lanes_.empty()) {
      std::unique_ptr<Lane> lane = std::move(lanes_.back());
      lanes_.pop_back();
      return lane;
    }
  }
  return std::make_unique<Lane>(*this);
}

void ComputeDevice::Session::give_back_lane(std::unique_ptr<Lane> lane) {
  lane->trim();
  const std::lock_guard lock(mutex_);
  if (lanes_.size() < kKeptLanes) lanes_.push_back(std::move(lane));
}

QueueHandle ComputeDevice::Session::queue(Bitfield properties) const {
  Int status = kSuccess;
  QueueHandle queue(api().clCreateCommandQueue(context_.get(), device_, properties, &status));
  check(status, "clCreateCommandQueue");
  return queue;
}

MemoryHandle ComputeDevice::Session::buffer(Bitfield flags, int64_t size, void* host) const {
  Int status = kSuccess;
  // OpenCL has no buffers of 0 bytes.
  const auto bytes = static_cast<size_t>(std::max<int64_t>(size, 1));
  MemoryHandle buffer(api().clCreateBuffer(context_.get(), flags, bytes, host, &status));
  if (status != kSuccess) {
    const Error error = failure(status, "clCreateBuffer");
    throw Error(error.code(), std::string(error.what()) + " Requested: " + std::to_string(bytes) + " bytes.");
  }
  return buffer;
}

KernelHandle ComputeDevice::Session::kernel(const std::string& source, const char* name,
                                            const std::string& options) {
  const std::string key = options + '\n' + source;
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(programs_.begin(), programs_.end(),
                                  [&key](const auto& program) { return program.first == key; });
  if (known != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, known);
  } else {
    programs_.emplace_front(key, build(source, options));
    if (programs_.size() > kKeptPrograms) programs_.pop_back();
  }
  Int status = kSuccess;
  // A kernel keeps its program alive after it is evicted here.
  KernelHandle kernel(api().clCreateKernel(programs_.front().second.get(), name, &status));
  check(status, "clCreateKernel");
  return kernel;
}

int64_t ComputeDevice::Session::room_for(const KernelHandle& kernel) const {
  size_t room = 0;
  check(api().clGetKernelWorkGroupInfo(kernel.get(), device_, kKernelWorkGroupSize, sizeof(room), &room,
                                       nullptr),
        "clGetKernelWorkGroupInfo");
  return std::max<int64_t>(static_cast<int64_t>(room), 1);
}

size_t ComputeDevice::Session::programs() {
  const std::lock_guard lock(mutex_);
  return programs_.size();
}

ProgramHandle ComputeDevice::Session::build(const std::string& source, const std::string& options) const {
  Int status = kSuccess;
  const char* text = source.c_str();
  const size_t size = source.size();
  ProgramHandle program(api().clCreateProgramWithSource(context_.get(), 1, &text, &size, &status));
  check(status, "clCreateProgramWithSource");
  // -w: unused functions of a program must not print warnings.
  const std::string all = "-w " + options;
  status = api().clBuildProgram(program.get(), 1, &device_, all.c_str(), nullptr, nullptr);
  if (status == kSuccess) return program;
  if (status == kOutOfHostMemory || status == kOutOfResources) throw failure(status, "clBuildProgram");
  const std::string log = text_of([&](size_t room, void* to, size_t* needed) {
    return api().clGetProgramBuildInfo(program.get(), device_, kProgramBuildLog, room, to, needed);
  });
  throw Error(ErrorCode::kDeviceBuild, "cannot build a kernel for " + name_ + " (" + status_name(status) +
                                           (options.empty() ? "" : ", options \"" + options + "\"") +
                                           "): " + (log.empty() ? "the compiler gave no log." : log));
}

}  // namespace tilework::cl
