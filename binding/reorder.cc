#include "reorder.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "environment.h"
#include "error.h"
#include "input_file.h"
#include "io/checked_math.h"
#include "job.h"

namespace tilework::binding {
namespace {

// Tiles are small enough that cancelling is felt at once, and large enough that starting one costs nothing.
constexpr int64_t kMinTileBytes = int64_t{64} << 10;
constexpr int64_t kMaxTileBytes = int64_t{4} << 20;
// Tiles a thread, so that threads that are held up do not hold up the rest.
constexpr int64_t kTilesPerThread = 4;
// Tiles end at whole cache lines, where no two threads write.
constexpr int64_t kCacheLine = 64;

// ---- Description
// -----------------------------------------------------------------------------------------------

// No description has arrays as long; the core's own limits are tighter.
constexpr uint32_t kMaxArrayLength = 1024;

Napi::Array array_of(const Napi::Object& owner, const char* name) {
  const Napi::Value value = owner.Get(name);
  if (!value.IsArray() || value.As<Napi::Array>().Length() > kMaxArrayLength) {
    throw Error("ERR_ARGUMENT", std::string("'") + name + "' must be an array of at most " +
                                    std::to_string(kMaxArrayLength) + " values.");
  }
  return value.As<Napi::Array>();
}

std::vector<int64_t> numbers(const Napi::Object& owner, const char* name,
                             int64_t (*number)(const Napi::Value&, const char*) = whole_number) {
  const Napi::Array array = array_of(owner, name);
  std::vector<int64_t> result;
  for (uint32_t i = 0; i < array.Length(); ++i) result.push_back(number(array.Get(i), name));
  return result;
}

int axis_number(const Napi::Value& value) {
  const int64_t axis = whole_number(value, "axis");
  return static_cast<int>(std::min<int64_t>(axis, INT32_MAX));
}

Digit digit_of(const Napi::Value& value) {
  const Napi::Object source = object(value, "digit");
  Digit digit;
  const Napi::Array axes = array_of(source, "axes");
  for (uint32_t i = 0; i < axes.Length(); ++i) digit.axes.push_back(axis_number(axes.Get(i)));
  digit.radix = whole_number(source.Get("radix"), "radix");
  digit.weight = whole_number(source.Get("weight"), "weight");
  return digit;
}

Side side_of(const Napi::Object& owner, const char* name) {
  const Napi::Object source = object(owner.Get(name), name);
  Side side;
  side.lower = numbers(source, "lower");
  side.upper = numbers(source, "upper");
  side.elements = whole_number(source.Get("elements"), "elements");
  const Napi::Array pieces = array_of(source, "pieces");
  for (uint32_t i = 0; i < pieces.Length(); ++i) {
    const Napi::Object from = object(pieces.Get(i), "piece");
    Piece piece{axis_number(from.Get("axis")),
                whole_number(from.Get("lo"), "lo"),
                whole_number(from.Get("hi"), "hi"),
                {}};
    const Napi::Array digits = array_of(from, "digits");
    for (uint32_t d = 0; d < digits.Length(); ++d) piece.digits.push_back(digit_of(digits.Get(d)));
    side.pieces.push_back(std::move(piece));
  }
  return side;
}

std::optional<Slice> slice_of(const Napi::Value& value) {
  if (value.IsUndefined()) return std::nullopt;
  const Napi::Object source = object(value, "slice");
  return Slice{numbers(source, "shape"), numbers(source, "start"), numbers(source, "step", signed_number)};
}

ReorderDescription description_of(const Napi::Value& value) {
  const Napi::Object source = object(value, "description");
  ReorderDescription description;
  description.element_bits =
      static_cast<int>(std::min<int64_t>(whole_number(source.Get("elementBits"), "elementBits"), INT32_MAX));
  description.shape = numbers(source, "shape");
  description.from = side_of(source, "from");
  description.to = side_of(source, "to");
  description.slice = slice_of(source.Get("slice"));
  return description;
}

// ---- Runs
// ------------------------------------------------------------------------------------------------------

// One run, checked: reading `source` and writing `destination` cannot leave their memory.
struct Run {
  std::shared_ptr<const ReorderPlan> plan;
  const uint8_t* source = nullptr;
  uint8_t* destination = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
};

void check_destination(const Run& run, const Bytes& destination) {
  run.plan->check_range(run.begin, run.end);
  if (destination.size != static_cast<size_t>(run.end - run.begin)) {
    throw Error("ERR_ARGUMENT", "'destination' has " + std::to_string(destination.size) +
                                    " bytes, the range has " + std::to_string(run.end - run.begin) + ".");
  }
  const auto source = reinterpret_cast<uintptr_t>(run.source);
  const auto target = reinterpret_cast<uintptr_t>(run.destination);
  const bool apart = source + static_cast<uintptr_t>(run.plan->source_bytes()) <= target ||
                     target + destination.size <= source;
  if (!apart && destination.size > 0 && run.plan->source_bytes() > 0) {
    throw Error("ERR_ARGUMENT", "'source' and 'destination' share memory.");
  }
}

Run run_of(std::shared_ptr<const ReorderPlan> plan, const Bytes& source, const Bytes& destination,
           const Napi::Value& start, const Napi::Value& end) {
  if (source.size != static_cast<size_t>(plan->source_bytes())) {
    throw Error("ERR_ARGUMENT", "'source' has " + std::to_string(source.size) + " bytes, the plan reads " +
                                    std::to_string(plan->source_bytes()) + ".");
  }
  Run run{std::move(plan), source.data, destination.data, whole_number(start, "start"),
          whole_number(end, "end")};
  check_destination(run, destination);
  return run;
}

Run file_run_of(std::shared_ptr<const ReorderPlan> plan, const InputFile& file, const Napi::Value& offset,
                const Bytes& destination, const Napi::Value& start, const Napi::Value& end) {
  const int64_t from = whole_number(offset, "offset");
  if (from > file.size() || plan->source_bytes() > file.size() - from) {
    throw Error("ERR_RANGE", "The " + std::to_string(plan->source_bytes()) + " bytes at " +
                                 std::to_string(from) + " do not lie in the " + std::to_string(file.size()) +
                                 " bytes of the file.");
  }
  if (!file.is_mapped()) throw Error("ERR_UNSUPPORTED", "Plans run on mapped files only.");
  file.verify_unchanged();
  const uint8_t* source = file.data() == nullptr ? nullptr : file.data() + from;
  Run run{std::move(plan), source, destination.data, whole_number(start, "start"), whole_number(end, "end")};
  check_destination(run, destination);
  return run;
}

int64_t tile_bytes_of(const Run& run, size_t threads) {
  const int64_t share = (run.end - run.begin) / (static_cast<int64_t>(threads) * kTilesPerThread);
  return std::clamp(share / kCacheLine * kCacheLine, kMinTileBytes, kMaxTileBytes);
}

class ReorderJob : public AsyncJob {
 public:
  ReorderJob(Environment& environment, Napi::Env env, Run run, int64_t tile_bytes)
      : AsyncJob(environment, env, ceil_div(run.end - run.begin, tile_bytes)),
        run_(std::move(run)),
        tile_bytes_(tile_bytes) {}

 protected:
  void run_tile(int64_t tile) override {
    const int64_t begin = run_.begin + tile * tile_bytes_;
    const int64_t end = std::min(begin + tile_bytes_, run_.end);
    run_.plan->run(run_.source, run_.destination + (begin - run_.begin), begin, end);
  }

 private:
  Run run_;
  int64_t tile_bytes_;
};

std::shared_ptr<ReorderJob> job_of(Napi::Env env, Run run, const Bytes& destination,
                                   const Napi::Value& cancel) {
  // A job holds the mapping it reads; one it wrote to could be revoked under it, and nobody may write to
  // views.
  if (InputFile::find(destination.data, destination.size) != nullptr) {
    throw Error("ERR_ARGUMENT",
                "The destination lies in a mapped file, whose views are not to be written to.");
  }
  Environment& environment = Environment::of(env);
  const int64_t tile_bytes = tile_bytes_of(run, environment.pools().compute.threads());
  auto job = std::make_shared<ReorderJob>(environment, env, std::move(run), tile_bytes);
  job->set_cancel_flag(cancel);
  job->pin(destination.array);
  return job;
}

// ---- Explanation
// -----------------------------------------------------------------------------------------------

Napi::Object explain_node(Napi::Env env, const Node& node, const LoopNest& nest) {
  Napi::Array axes = Napi::Array::New(env);
  for (size_t i = 0; i < node.axes.size(); ++i) axes.Set(static_cast<uint32_t>(i), node.axes[i]);
  Napi::Object result = Napi::Object::New(env);
  result.Set("axes", axes);
  result.Set("count", static_cast<double>(node.count));
  if (node.lookup == kNone) {
    result.Set("sourceStride", static_cast<double>(node.source_stride));
  } else {
    result.Set("sourceStride", "table");
  }
  result.Set("destinationStride", static_cast<double>(node.destination_stride));
  result.Set("tail", Napi::Boolean::New(env, node.variable != kNone || nest.all_zero));
  return result;
}

const char* kind_of(NestClass nest_class) {
  switch (nest_class) {
    case NestClass::kIdentity:
      return "identity";
    case NestClass::kView:
      return "view";
    case NestClass::kLoopNest:
      break;
  }
  return "loop-nest";
}

int64_t passes_of(const LoopNest& nest) {
  double passes = 1;
  for (const Node& node : nest.nodes) passes *= static_cast<double>(node.count);
  return static_cast<int64_t>(std::min(passes, static_cast<double>(kMaxSafeInteger)));
}

}  // namespace

Napi::Function ReorderPlanObject::define(Napi::Env env) {
  return DefineClass(env, "NativeReorderPlan",
                     {InstanceMethod<&ReorderPlanObject::run_sync>("runSync"),
                      InstanceMethod<&ReorderPlanObject::run>("run"),
                      InstanceMethod<&ReorderPlanObject::run_file>("runFile"),
                      InstanceMethod<&ReorderPlanObject::run_file_sync>("runFileSync"),
                      InstanceMethod<&ReorderPlanObject::explain>("explain")});
}

Napi::Value ReorderPlanObject::plan(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Environment& environment = Environment::of(info.Env());
    environment.next_reorder_plan = std::make_shared<const ReorderPlan>(description_of(info[0]));
    return environment.reorder_plan_class.New({});
  });
}

ReorderPlanObject::ReorderPlanObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<ReorderPlanObject>(info),
      plan_(std::exchange(Environment::of(info.Env()).next_reorder_plan, nullptr)) {
  if (plan_ == nullptr) throw Napi::TypeError::New(info.Env(), "Plans are made by planReorder() only.");
  Napi::Object self = info.This().As<Napi::Object>();
  const auto define = [&](const char* name, int64_t value) {
    self.DefineProperty(Napi::PropertyDescriptor::Value(
        name, Napi::Number::New(info.Env(), static_cast<double>(value)), napi_enumerable));
  };
  define("sourceBytes", plan_->source_bytes());
  define("destinationBytes", plan_->destination_bytes());
  if (plan_->copy_offset()) define("copyOffset", *plan_->copy_offset());
}

Napi::Value ReorderPlanObject::run_sync(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const Bytes source = bytes(info[0], "source");
    const Run run = run_of(plan_, source, bytes(info[1], "destination"), info[2], info[3]);
    const std::shared_ptr<InputFile> mapping = InputFile::find(source.data, source.size);
    if (mapping != nullptr) mapping->verify_unchanged();
    run.plan->run(run.source, run.destination, run.begin, run.end);
    if (mapping != nullptr) mapping->verify_unchanged();
    return info.Env().Undefined();
  });
}

Napi::Value ReorderPlanObject::run(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const Bytes source = bytes(info[0], "source");
    const Bytes destination = bytes(info[1], "destination");
    const auto job =
        job_of(info.Env(), run_of(plan_, source, destination, info[2], info[3]), destination, info[4]);
    job->pin_source(source);
    Environment& environment = Environment::of(info.Env());
    return environment.start(job, environment.pools().compute);
  });
}

Napi::Value ReorderPlanObject::run_file(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const std::shared_ptr<InputFile> file = InputFileObject::file_of(info[0], "file");
    const Bytes destination = bytes(info[2], "destination");
    Run run = file_run_of(plan_, *file, info[1], destination, info[3], info[4]);
    const auto job = job_of(info.Env(), std::move(run), destination, info[5]);
    job->hold_file(file);
    Environment& environment = Environment::of(info.Env());
    return environment.start(job, environment.pools().compute);
  });
}

Napi::Value ReorderPlanObject::run_file_sync(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const std::shared_ptr<InputFile> file = InputFileObject::file_of(info[0], "file");
    const Run run = file_run_of(plan_, *file, info[1], bytes(info[2], "destination"), info[3], info[4]);
    run.plan->run(run.source, run.destination, run.begin, run.end);
    file->verify_unchanged();
    return info.Env().Undefined();
  });
}

Napi::Value ReorderPlanObject::explain(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Napi::Env env = info.Env();
    Napi::Array nodes = Napi::Array::New(env);
    const std::vector<LoopNest>& nests = plan_->nests();
    const auto largest =
        std::max_element(nests.begin(), nests.end(),
                         [](const LoopNest& a, const LoopNest& b) { return passes_of(a) < passes_of(b); });
    if (largest != nests.end()) {
      for (const Node& node : largest->nodes) nodes.Set(nodes.Length(), explain_node(env, node, *largest));
    }
    Napi::Object result = Napi::Object::New(env);
    result.Set("kernel", plan_->kernel().name);
    result.Set("reason", plan_->reason());
    result.Set("kind", kind_of(plan_->nest_class()));
    result.Set("nodes", nodes);
    return result;
  });
}

}  // namespace tilework::binding
