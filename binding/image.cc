#include "image.h"

#include <algorithm>
#include <string>
#include <utility>

#include "arguments.h"
#include "environment.h"
#include "error.h"
#include "io/input_file.h"

namespace tilework::binding {
namespace {

constexpr std::pair<const char*, PixelFormat> kPixelFormats[] = {{"interleaved", PixelFormat::kInterleaved},
                                                                 {"planar", PixelFormat::kPlanar},
                                                                 {"nv12", PixelFormat::kNv12},
                                                                 {"nv21", PixelFormat::kNv21},
                                                                 {"i420", PixelFormat::kI420},
                                                                 {"yv12", PixelFormat::kYv12}};
constexpr std::pair<const char*, ColourStep> kColourSteps[] = {{"none", ColourStep::kNone},
                                                               {"grey", ColourStep::kGrey},
                                                               {"premultiply", ColourStep::kPremultiply},
                                                               {"background", ColourStep::kBackground},
                                                               {"whiteFloat", ColourStep::kWhiteFloat}};
constexpr std::pair<const char*, ResizeRule> kResizeRules[] = {{"pillow", ResizeRule::kPillow},
                                                               {"pillow12", ResizeRule::kPillow12},
                                                               {"torchvision", ResizeRule::kTorchvision},
                                                               {"opencv-linear", ResizeRule::kOpencvLinear},
                                                               {"opencv-nearest", ResizeRule::kOpencvNearest},
                                                               {"opencv-area", ResizeRule::kOpencvArea}};
constexpr std::pair<const char*, Filter> kFilters[] = {
    {"nearest", Filter::kNearest}, {"box", Filter::kBox},         {"bilinear", Filter::kBilinear},
    {"hamming", Filter::kHamming}, {"bicubic", Filter::kBicubic}, {"lanczos", Filter::kLanczos},
    {"mks2013", Filter::kMks2013}, {"mks2021", Filter::kMks2021}};

int64_t count(const Napi::Object& owner, const char* name) { return whole_number(owner.Get(name), name); }

Box box_of(const Napi::Object& owner, const char* name) {
  const Napi::Object box = object(owner.Get(name), name);
  return {count(box, "left"), count(box, "top"), count(box, "width"), count(box, "height")};
}

std::vector<uint8_t> copied_bytes(const Napi::Object& owner, const char* name) {
  const Bytes memory = bytes_during_call(owner.Get(name), name);
  return {memory.data, memory.data + memory.size};
}

SourceImage source_of(const Napi::Object& owner) {
  const Napi::Object from = object(owner.Get("source"), "source");
  SourceImage source{};
  source.format = choice_of(from, "format", kPixelFormats);
  source.width = count(from, "width");
  source.height = count(from, "height");
  source.channels = count(from, "channels");
  source.sample_bytes = count(from, "sampleBytes");
  source.colours = choice_of(from, "colours", kColourSteps);
  const std::vector<int64_t> background = numbers(from, "background");
  for (size_t i = 0; i < std::min<size_t>(background.size(), 3); ++i)
    source.background[i] = static_cast<uint8_t>(background[i]);
  return source;
}

ImageDescription image_of(const Napi::Value& value) {
  const Napi::Object from = object(value, "description");
  ImageDescription description{};
  description.source = source_of(from);
  description.rule = choice_of(from, "rule", kResizeRules);
  description.filter = choice_of(from, "filter", kFilters);
  description.resized_width = count(from, "resizedWidth");
  description.resized_height = count(from, "resizedHeight");
  description.crop = box_of(from, "crop");
  description.width = count(from, "width");
  description.height = count(from, "height");
  description.left = count(from, "left");
  description.top = count(from, "top");
  description.inner = box_of(from, "inner");
  description.channels = numbers(from, "channels");
  description.element_bytes = count(from, "elementBytes");
  description.tables = copied_bytes(from, "tables");
  description.inner_codes = copied_bytes(from, "innerCodes");
  description.outer_codes = copied_bytes(from, "outerCodes");
  description.is_planar = from.Get("planar").ToBoolean().Value();
  return description;
}

// Rows of a run: those that the target has, and those of them that are computed.
struct ImageRun {
  const uint8_t* source;
  ImageTarget target;
  int64_t begin;
  int64_t end;
};

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::kArgument, text); }

ImageRun run_of(const ImagePlan& plan, const Napi::CallbackInfo& info) {
  const Bytes source = bytes_during_call(info[0], "source");
  const Bytes target = bytes_during_call(info[1], "target");
  const ImageRun run{source.data,
                     {target.data, whole_number(info[2], "targetStart"), whole_number(info[3], "targetEnd")},
                     whole_number(info[4], "start"),
                     whole_number(info[5], "end")};
  const ImageTarget& to = run.target;
  const bool is_ordered = to.begin <= run.begin && run.begin <= run.end && run.end <= to.end;
  if (!is_ordered || to.end > plan.height()) refuse("The rows do not lie in the image.");
  if (static_cast<int64_t>(source.size) != plan.source_bytes()) {
    refuse("'source' has " + std::to_string(source.size) + " bytes; the plan reads " +
           std::to_string(plan.source_bytes()) + ".");
  }
  const int64_t needed = plan.result_bytes(to.end - to.begin);
  if (static_cast<int64_t>(target.size) != needed) {
    refuse("'target' has " + std::to_string(target.size) + " bytes; its rows have " + std::to_string(needed) +
           ".");
  }
  const bool is_aligned = reinterpret_cast<uintptr_t>(source.data) % plan.source_alignment() == 0 &&
                          reinterpret_cast<uintptr_t>(target.data) % plan.target_alignment() == 0;
  if (!is_aligned) refuse("The samples or the elements are not aligned.");
  const bool are_apart = source.data + source.size <= target.data || target.data + target.size <= source.data;
  if (!are_apart) refuse("'source' and 'target' overlap.");
  if (InputFile::find(target.data, target.size) != nullptr)
    refuse("The target is a view of a mapped file; views must not be written.");
  return run;
}

}  // namespace

Napi::Function ImagePlanObject::define(Napi::Env env) {
  return DefineClass(env, "NativeImagePlan", {InstanceMethod<&ImagePlanObject::run_sync>("runSync")});
}

Napi::Value ImagePlanObject::plan(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Environment& environment = Environment::of(info.Env());
    environment.held_plans->free_collected(info.Env());
    environment.next_image_plan = std::make_shared<const ImagePlan>(image_of(info[0]));
    return environment.image_plan_class.New({});
  });
}

ImagePlanObject::ImagePlanObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<ImagePlanObject>(info),
      plan_(std::exchange(Environment::of(info.Env()).next_image_plan, nullptr)),
      held_plans_(Environment::of(info.Env()).held_plans) {
  if (plan_ == nullptr) throw Napi::TypeError::New(info.Env(), "Plans are made by planImage() only.");
  info.This().As<Napi::Object>().DefineProperty(Napi::PropertyDescriptor::Value(
      "footprint", Napi::Number::New(info.Env(), static_cast<double>(plan_->footprint())), napi_enumerable));
  // Last: nothing undoes it if this constructor throws.
  entry_ = held_plans_->add(info.Env(), this, plan_->footprint());
}

void ImagePlanObject::free_plan() {
  if (plan_ == nullptr) return;
  held_plans_->remove(Env(), entry_, plan_->footprint());
  plan_.reset();
}

// runSync(source, target, targetStart, targetEnd, start, end)
Napi::Value ImagePlanObject::run_sync(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const ImageRun run = run_of(*plan_, info);
    ThreadPool& pool = Environment::of(info.Env()).pools().compute;
    const int64_t parts = plan_->parts(run.begin, run.end, pool.threads());
    const int64_t rows = run.end - run.begin;
    if (parts == 1) {
      plan_->run(run.source, run.target, run.begin, run.end);
    } else {
      pool.run(parts, [&](int64_t part) {
        plan_->run(run.source, run.target, run.begin + rows * part / parts,
                   run.begin + rows * (part + 1) / parts);
      });
    }
    return info.Env().Undefined();
  });
}

}  // namespace tilework::binding
