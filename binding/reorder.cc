#include "reorder.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "environment.h"
#include "error.h"
#include "io/checked_math.h"
#include "opencl.h"
#include "reorder/cast/fused_cast.h"
#include "reorder/run/source_ranges.h"
#include "reorder_description.h"
#include "reorder_file.h"
#include "reorder_run.h"
#include "sparse_buffer.h"

namespace tilework::binding {
namespace {

// All bytes of a plan's source, or a sparse buffer with their addresses.
struct Source {
  const uint8_t* data = nullptr;
  Bytes bytes;
  // Null for a plain array.
  std::shared_ptr<SharedSparseBuffer> sparse;
};

Source sparse_source_of(const ReorderPlan& plan, std::shared_ptr<SharedSparseBuffer> sparse) {
  Source source;
  source.data = sparse->buffer.data();
  check_source_size(plan, sparse->buffer.size());
  source.sparse = std::move(sparse);
  return source;
}

Source array_source_of(const ReorderPlan& plan, const Bytes& bytes) {
  check_source_size(plan, static_cast<int64_t>(bytes.size));
  return {bytes.data, bytes, nullptr};
}

Source source_of(const ReorderPlan& plan, const Napi::Value& value) {
  auto sparse = SparseBufferObject::buffer_of(value);
  if (sparse != nullptr) return sparse_source_of(plan, std::move(sparse));
  return array_source_of(plan, bytes(value, "source"));
}

// For use inside one synchronous call. An array is looked for first: reading the type tag of a sparse buffer
// takes as long as a small run.
Source source_during_call(const ReorderPlan& plan, const Napi::Value& value) {
  if (const std::optional<Bytes> bytes = bytes_if_array(value)) return array_source_of(plan, *bytes);
  auto sparse = SparseBufferObject::buffer_of(value);
  if (sparse != nullptr) return sparse_source_of(plan, std::move(sparse));
  return array_source_of(plan, bytes_during_call(value, "source"));
}

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

// Largest share first.
Napi::Array explain_ways(Napi::Env env, const WayShares& shares) {
  double total = 0;
  std::vector<std::pair<int64_t, Way>> sorted;
  for (const auto& [way, bytes] : shares) {
    sorted.emplace_back(bytes, way);
    total += static_cast<double>(bytes);
  }
  std::sort(sorted.rbegin(), sorted.rend());
  Napi::Array ways = Napi::Array::New(env);
  for (const auto& [bytes, way] : sorted) {
    Napi::Object each = Napi::Object::New(env);
    const WayRow row = row_of(way);
    each.Set("name", row.name);
    each.Set("condition", row.condition);
    if (row.percent_of_copy > 0) each.Set("ofCopy", row.percent_of_copy / 100.0);
    each.Set("copiesUnitsAlone", copies_units_alone(way));
    each.Set("share", static_cast<double>(bytes) / std::max(total, 1.0));
    ways.Set(ways.Length(), each);
  }
  return ways;
}

const char* kind_of(const ReorderPlan& plan) {
  if (plan.moves() != Moves::kRange) return "loop-nest";
  return plan.source_bytes() == plan.destination_bytes() ? "identity" : "view";
}

int64_t nest_bytes(const ReorderPlan& plan, size_t i) {
  const LoopNest& nest = plan.nests()[i];
  auto bytes = static_cast<int64_t>(sizeof(LoopNest) + nest.nodes.size() * sizeof(Node));
  for (const Lookup& lookup : nest.lookups) {
    bytes += static_cast<int64_t>(sizeof(Lookup) + lookup.table.size() * sizeof(int64_t));
  }
  if (plan.moves() == Moves::kTiles) bytes += plan.programs()[i]->footprint();
  return bytes;
}

int64_t plan_bytes(const ReorderPlan& plan) {
  int64_t bytes = sizeof(ReorderPlan);
  for (size_t i = 0; i < plan.nests().size(); ++i) bytes += nest_bytes(plan, i);
  if (const FusedCast* cast = plan.cast()) {
    bytes += plan_bytes(cast->moves()) + cast->cast().footprint();
    if (cast->coverage() != nullptr) bytes += plan_bytes(*cast->coverage());
    for (const auto& program : cast->programs()) bytes += program->footprint();
  }
  return bytes;
}

int64_t iterations_of(const LoopNest& nest) {
  double iterations = 1;
  for (const Node& node : nest.nodes) iterations *= static_cast<double>(node.count);
  return static_cast<int64_t>(std::min(iterations, static_cast<double>(kMaxSafeInteger)));
}

// Null if there is nothing to do.
const LoopNest* largest_nest(const ReorderPlan& plan) {
  const std::vector<LoopNest>& nests = plan.nests();
  const auto largest = std::max_element(nests.begin(), nests.end(), [](const LoopNest& a, const LoopNest& b) {
    return iterations_of(a) < iterations_of(b);
  });
  return largest == nests.end() ? nullptr : &*largest;
}

const char* cut_of(ReorderParts::Cut cut) {
  switch (cut) {
    case ReorderParts::Cut::kRanges:
      return "ranges";
    case ReorderParts::Cut::kLoop:
      return "loop";
    case ReorderParts::Cut::kWhole:
      break;
  }
  return "whole";
}

}  // namespace

Napi::Function ReorderPlanObject::define(Napi::Env env) {
  return DefineClass(env, "NativeReorderPlan",
                     {InstanceMethod<&ReorderPlanObject::run_sync>("runSync"),
                      InstanceMethod<&ReorderPlanObject::run>("run"),
                      InstanceMethod<&ReorderPlanObject::run_file>("runFile"),
                      InstanceMethod<&ReorderPlanObject::run_file_sync>("runFileSync"),
                      InstanceMethod<&ReorderPlanObject::run_to_file>("runToFile"),
                      InstanceMethod<&ReorderPlanObject::run_on_device>("runOnDevice"),
                      InstanceMethod<&ReorderPlanObject::time_on_device>("timeOnDevice"),
                      InstanceMethod<&ReorderPlanObject::source_ranges>("sourceRanges"),
                      InstanceMethod<&ReorderPlanObject::explain>("explain")});
}

Napi::Value ReorderPlanObject::plan(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Environment& environment = Environment::of(info.Env());
    environment.held_plans->free_collected(info.Env());
    environment.next_reorder_plan = std::make_shared<const ReorderPlan>(description_of(info[0]));
    return environment.reorder_plan_class.New({});
  });
}

ReorderPlanObject::ReorderPlanObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<ReorderPlanObject>(info),
      plan_(std::exchange(Environment::of(info.Env()).next_reorder_plan, nullptr)),
      cut_plan_(plan_),
      held_plans_(Environment::of(info.Env()).held_plans) {
  if (plan_ == nullptr) throw Napi::TypeError::New(info.Env(), "Plans are made by planReorder() only.");
  Napi::Object self = info.This().As<Napi::Object>();
  const auto define = [&](const char* name, int64_t value) {
    self.DefineProperty(Napi::PropertyDescriptor::Value(
        name, Napi::Number::New(info.Env(), static_cast<double>(value)), napi_enumerable));
  };
  define("sourceBytes", plan_->source_bytes());
  define("destinationBytes", plan_->destination_bytes());
  define("rangeQuantum", plan_->range_quantum());
  footprint_ = plan_bytes(*plan_);
  define("footprint", footprint_);
  if (plan_->view_offset()) define("copyOffset", *plan_->view_offset());
  // Last: nothing undoes it if this constructor throws.
  entry_ = held_plans_->add(info.Env(), this, footprint_);
}

void ReorderPlanObject::free_plan() {
  if (plan_ == nullptr) return;
  held_plans_->remove(Env(), entry_, footprint_);
  cut_plan_ = CutPlan(nullptr);
  plan_.reset();
}

Napi::Value ReorderPlanObject::run_sync(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const Source source = source_during_call(*plan_, info[0]);
    const Bytes destination = bytes_during_call(info[1], "destination");
    const bool is_all = info.Length() <= 2;
    const Target target =
        is_all ? target_of(*plan_, destination) : target_of(*plan_, destination, info[2], info[3]);
    const Run run = run_of(target, source.data);
    const std::shared_ptr<InputFile> mapping = InputFile::find(source.bytes.data, source.bytes.size);
    if (mapping != nullptr) mapping->verify_unchanged();
    const bool is_part = info.Length() > 4 && !info[4].IsUndefined();
    const int64_t result_bytes = is_part ? whole_number(info[4], "resultBytes") : 0;
    run_now(run, cut_plan_, Environment::of(info.Env()).pools().compute, result_bytes);
    if (mapping != nullptr) mapping->verify_unchanged();
    return info.Env().Undefined();
  });
}

Napi::Value ReorderPlanObject::run(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const Source source = source_of(*plan_, info[0]);
    const Bytes destination = bytes(info[1], "destination");
    const Run run = run_of(target_of(*plan_, destination, info[2], info[3]), source.data);
    const auto job = ReorderJob::make(info.Env(), run, cut_plan_, destination, info[4]);
    if (source.sparse != nullptr) {
      job->read_from(SharedSparseBuffer::Use(source.sparse));
    } else {
      job->pin_source(source.bytes);
    }
    Environment& environment = Environment::of(info.Env());
    return environment.start(job, environment.pools().compute);
  });
}

Napi::Value ReorderPlanObject::run_file(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return binding::run_file(info, plan_); });
}

Napi::Value ReorderPlanObject::run_file_sync(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return binding::run_file_sync(info, plan_); });
}

Napi::Value ReorderPlanObject::run_to_file(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return binding::run_to_file(info, plan_); });
}

Napi::Value ReorderPlanObject::run_on_device(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return binding::run_on_device(info, plan_); });
}

Napi::Value ReorderPlanObject::time_on_device(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return binding::time_on_device(info, plan_); });
}

Napi::Value ReorderPlanObject::source_ranges(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const int64_t begin = whole_number(info[0], "start");
    const int64_t end = whole_number(info[1], "end");
    plan_->check_range(begin, end);
    const std::vector<ByteRange> ranges = tilework::source_ranges(*plan_, begin, end);
    Napi::Float64Array pairs = Napi::Float64Array::New(info.Env(), ranges.size() * 2);
    for (size_t i = 0; i < ranges.size(); ++i) {
      pairs[2 * i] = static_cast<double>(ranges[i].begin);
      pairs[2 * i + 1] = static_cast<double>(ranges[i].end);
    }
    return pairs;
  });
}

Napi::Value ReorderPlanObject::explain(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Napi::Env env = info.Env();
    const FusedCast* cast = plan_->cast();
    Napi::Object result = Napi::Object::New(env);
    result.Set("kernel", cast == nullptr ? plan_->kernel().name : cast->kernels());
    result.Set("reason", plan_->reason());
    result.Set("kind", kind_of(*plan_));
    Napi::Array nodes = Napi::Array::New(env);
    if (const LoopNest* nest = largest_nest(cast == nullptr ? *plan_ : cast->moves())) {
      for (const Node& node : nest->nodes) nodes.Set(nodes.Length(), explain_node(env, node, *nest));
    }
    result.Set("nodes", nodes);
    const size_t threads = Environment::of(env).pools().compute.threads();
    const auto parts = cut_plan_.parts(0, plan_->destination_bytes(), threads);
    result.Set("stores", parts->stores() == Stores::kStreaming ? "streaming" : "cached");
    result.Set("storesReason", parts->stores_reason());
    result.Set("cut", cut_of(parts->cut()));
    result.Set("ways", explain_ways(env, plan_->ways(parts->stores())));
    result.Set("waysMeasuredOn", kMeasuredOn);
    result.Set("parts", static_cast<double>(parts->count()));
    result.Set("threads", static_cast<double>(std::min(static_cast<int64_t>(threads), parts->count())));
    return result;
  });
}

}  // namespace tilework::binding
