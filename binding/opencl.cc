#include "opencl.h"

#include <cstdint>
#include <string>
#include <utility>

#include "arguments.h"
#include "environment.h"
#include "error.h"
#include "input_file.h"
#include "io/checked_math.h"
#include "job.h"
#include "opencl/device.h"
#include "opencl/device_reorder.h"
#include "opencl/device_timing.h"
#include "output_file.h"
#include "reorder_run.h"
#include "sparse_buffer.h"

namespace tilework::binding {
namespace {

// The checked arguments of a run.
struct DeviceWork {
  std::shared_ptr<const ReorderPlan> plan;
  cl::ComputeDevice* device = nullptr;
  cl::DeviceOptions options;
  cl::DeviceSource source;
  cl::DeviceTarget target;
  int64_t begin = 0;
  int64_t end = 0;
};

// A device run is one tile. It waits for the device, so it runs on a thread that may block.
template <class Base>
class DeviceJob : public Base {
 public:
  template <class... Arguments>
  explicit DeviceJob(DeviceWork work, Arguments&&... arguments)
      : Base(std::forward<Arguments>(arguments)..., 1), work_(std::move(work)) {}

  // Prevents the source from being filled until the run has ended.
  void read_from(SharedSparseBuffer::Use source) { sparse_source_ = std::move(source); }

 protected:
  void ended(bool succeeded) override {
    sparse_source_ = {};
    Base::ended(succeeded);
  }
  void run_tile(int64_t) override {
    const cl::DeviceReorder reorder(work_.plan, *work_.device, work_.options, work_.begin, work_.end);
    reorder.run(work_.source, work_.target, [this] { return this->should_stop(); });
  }

 private:
  DeviceWork work_;
  SharedSparseBuffer::Use sparse_source_;
};

cl::ComputeDevice& device_of(const Napi::Value& value) {
  const int64_t number = whole_number(value, "device");
  const auto& all = cl::devices();
  if (number < static_cast<int64_t>(all.size())) return *all[static_cast<size_t>(number)];
  throw Error(ErrorCode::kNoDevice, "There is no OpenCL device " + std::to_string(number) +
                                        "; the number of devices is " + std::to_string(all.size()) + ".");
}

cl::DeviceOptions options_of(const Napi::Object& from) {
  cl::DeviceOptions options;
  const auto number = [&from](const char* name, int64_t otherwise) {
    const Napi::Value value = from.Get(name);
    return value.IsUndefined() ? otherwise : whole_number(value, name);
  };
  options.max_bytes = number("maxBytes", options.max_bytes);
  options.own_kernel_bytes = number("ownKernelBytes", options.own_kernel_bytes);
  options.lose_after = number("loseAfter", options.lose_after);
  options.in_place = from.Get("inPlace").IsUndefined() || from.Get("inPlace").ToBoolean().Value();
  const Napi::Value build_options = from.Get("buildOptions");
  if (!build_options.IsUndefined()) options.build_options = build_options.ToString().Utf8Value();
  return options;
}

// The parts of the source that a job keeps alive.
struct HeldSource {
  Bytes bytes;
  std::shared_ptr<InputFile> file;
  SharedSparseBuffer::Use sparse;
};

HeldSource read_source(const Napi::Object& from, DeviceWork& work) {
  HeldSource held;
  const Napi::Value source = from.Get("source");
  if (source.IsTypedArray()) {
    held.bytes = bytes(source, "source");
    check_source_size(*work.plan, static_cast<int64_t>(held.bytes.size));
    work.source.memory = held.bytes.data;
    return held;
  }
  if (const std::shared_ptr<SharedSparseBuffer> sparse = SparseBufferObject::buffer_of(source)) {
    check_source_size(*work.plan, sparse->buffer.size());
    work.source.memory = sparse->buffer.data();
    held.sparse = SharedSparseBuffer::Use(sparse);
    return held;
  }
  held.file = InputFileObject::file_of(source, "source");
  work.source.offset = read_offset(*held.file, work.plan->source_bytes(), from.Get("offset"));
  work.source.file = held.file.get();
  return held;
}

template <class Job>
void hold(Job& job, HeldSource source, const Napi::Value& cancel) {
  if (source.file != nullptr) {
    job.hold_file(std::move(source.file));
  } else if (source.bytes.data != nullptr) {
    job.pin_source(source.bytes);
  }
  job.read_from(std::move(source.sparse));
  job.set_cancel_flag(cancel);
}

Napi::Value run_to_memory(Napi::Env env, const Napi::Object& from, DeviceWork work, HeldSource source) {
  Environment& environment = Environment::of(env);
  const Bytes destination = bytes(from.Get("target"), "target");
  const Target target = target_of(*work.plan, destination, from.Get("start"), from.Get("end"));
  if (work.source.memory != nullptr) run_of(target, work.source.memory);
  work.begin = target.begin;
  work.end = target.end;
  work.target.memory = target.destination;
  const auto job = std::make_shared<DeviceJob<AsyncJob>>(std::move(work), environment, env);
  hold(*job, std::move(source), from.Get("cancel"));
  job->pin(destination.array);
  return environment.start(job, environment.pools().blocking);
}

Napi::Value run_to_file(Napi::Env env, const Napi::Object& from, DeviceWork work, HeldSource source) {
  Environment& environment = Environment::of(env);
  std::shared_ptr<OutputFile> output = OutputFileObject::file_of(from.Get("target"), "target");
  work.begin = whole_number(from.Get("start"), "start");
  work.end = whole_number(from.Get("end"), "end");
  work.plan->check_range(work.begin, work.end);
  work.target.position = whole_number(from.Get("position"), "position");
  checked_add(work.target.position, work.end - work.begin, "The end of a write");
  work.target.file = output.get();
  const auto job =
      std::make_shared<DeviceJob<OutputJob>>(std::move(work), environment, env, std::move(output));
  hold(*job, std::move(source), from.Get("cancel"));
  return job->announce_and_start(environment, environment.pools().blocking);
}

}  // namespace

Napi::Value devices(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Napi::Env env = info.Env();
    Napi::Array list = Napi::Array::New(env);
    for (const auto& device : cl::devices()) {
      const cl::DeviceInfo& about = device->info();
      Napi::Object entry = Napi::Object::New(env);
      entry.Set("platform", about.platform);
      entry.Set("name", about.name);
      entry.Set("type", about.type);
      entry.Set("version", about.version);
      entry.Set("driver", about.driver);
      entry.Set("memory", static_cast<double>(about.memory));
      entry.Set("largestBuffer", static_cast<double>(about.largest_buffer));
      entry.Set("unifiedMemory", about.unified_memory);
      list.Set(list.Length(), entry);
    }
    Napi::Object result = Napi::Object::New(env);
    result.Set("devices", list);
    result.Set("reason", cl::library().reason);
    return result;
  });
}

Napi::Value run_on_device(const Napi::CallbackInfo& info, std::shared_ptr<const ReorderPlan> plan) {
  const Napi::Object from = object(info[0], "work");
  DeviceWork work;
  work.plan = std::move(plan);
  work.device = &device_of(from.Get("device"));
  work.options = options_of(from);
  HeldSource source = read_source(from, work);
  const bool is_memory = from.Get("target").IsTypedArray();
  return is_memory ? run_to_memory(info.Env(), from, std::move(work), std::move(source))
                   : run_to_file(info.Env(), from, std::move(work), std::move(source));
}

Napi::Value time_on_device(const Napi::CallbackInfo& info, std::shared_ptr<const ReorderPlan> plan) {
  const Napi::Object from = object(info[0], "work");
  const int64_t end = plan->destination_bytes();
  const cl::DeviceReorder reorder(std::move(plan), device_of(from.Get("device")), options_of(from), 0, end);
  const cl::DeviceTiming timing(reorder, static_cast<int>(whole_number(from.Get("rounds"), "rounds")));
  const cl::DeviceTimes& times = timing.times();
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("form", reorder.form());
  result.Set("kernel", times.kernel);
  result.Set("copy", times.copy);
  result.Set("upload", times.upload);
  result.Set("download", times.download);
  return result;
}

}  // namespace tilework::binding
