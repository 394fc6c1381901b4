// The exports of the addon; typed in lib/native/types.ts.
#include <napi.h>

#include <memory>

#include "arguments.h"
#include "block_codes.h"
#include "blocks.h"
#include "cpu/features.h"
#include "cpu/isa.h"
#include "dlpack.h"
#include "environment.h"
#include "folder.h"
#include "image.h"
#include "input_file.h"
#include "memory/huge_pages.h"
#include "memory/place_rows.h"
#include "opencl.h"
#include "output_file.h"
#include "parallel/thread_count.h"
#include "plain_tensors.h"
#include "reorder.h"
#include "sparse_buffer.h"
#include "statistics.h"

namespace tilework::binding {
namespace {

Napi::Value threads(const Napi::CallbackInfo& info) {
  const size_t count = Environment::of(info.Env()).pools().compute.threads();
  return Napi::Number::New(info.Env(), static_cast<double>(count));
}

Napi::Value set_threads(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const int64_t count = whole_number(info[0], "count");
    if (count < 1 || count > static_cast<int64_t>(kMaxThreads)) {
      throw Error(ErrorCode::kArgument, "'count' is " + std::to_string(count) + "; it must be from 1 to " +
                                            std::to_string(kMaxThreads) + ".");
    }
    Environment::of(info.Env()).pools().compute.set_threads(static_cast<size_t>(count));
    return info.Env().Undefined();
  });
}

Napi::Value set_external_buffers(const Napi::CallbackInfo& info) {
  Environment::of(info.Env()).external_buffers = info[0].ToBoolean().Value();
  return info.Env().Undefined();
}

Napi::Value prepare_pages(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const Bytes memory = bytes_during_call(info[0], "bytes");
    tilework::prepare_pages(memory.data, memory.size);
    return info.Env().Undefined();
  });
}

// placeRows(target, offset, stride, source, rowBytes): all rows of the source.
Napi::Value place_rows(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const Bytes target = bytes_during_call(info[0], "target");
    const int64_t offset = whole_number(info[1], "offset");
    const int64_t stride = whole_number(info[2], "stride");
    const Bytes source = bytes_during_call(info[3], "source");
    const int64_t row_bytes = whole_number(info[4], "rowBytes");
    const auto size = static_cast<int64_t>(source.size);
    const auto room = static_cast<int64_t>(target.size);
    const int64_t rows = row_bytes == 0 ? 0 : size / row_bytes;
    const bool is_inside = row_bytes > 0 && size % row_bytes == 0 && row_bytes <= stride &&
                           (rows == 0 || (offset <= room && row_bytes <= room - offset &&
                                          rows - 1 <= (room - offset - row_bytes) / stride));
    if (!is_inside) {
      throw Error(ErrorCode::kArgument,
                  "The rows do not lie in the " + std::to_string(room) + " bytes of the target.");
    }
    tilework::place_rows(target.data + offset, stride, source.data, row_bytes, rows);
    return info.Env().Undefined();
  });
}

Napi::Value live_mappings(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(),
                           static_cast<double>(Environment::of(info.Env()).live_mappings->load()));
}

Napi::Value held_plan_bytes(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(Environment::of(info.Env()).held_plans->bytes()));
}

Napi::Value cpu(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Napi::Env env = info.Env();
    Napi::Array features = Napi::Array::New(env);
    for (const std::string& feature : cpu_features()) features.Set(features.Length(), feature);
    Napi::Object result = Napi::Object::New(env);
    result.Set("architecture", cpu_architecture());
    result.Set("features", features);
    result.Set("isa", name_of(best_isa()));
    return result;
  });
}

Napi::Array error_codes(Napi::Env env) {
  Napi::Array codes = Napi::Array::New(env);
  for (const char* name : kErrorCodeNames) codes.Set(codes.Length(), name);
  return codes;
}

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  auto* environment = new Environment(env);
  env.SetInstanceData(environment);
  environment->input_file_class = Napi::Persistent(InputFileObject::define(env));
  environment->reorder_plan_class = Napi::Persistent(ReorderPlanObject::define(env));
  environment->image_plan_class = Napi::Persistent(ImagePlanObject::define(env));
  environment->output_file_class = Napi::Persistent(OutputFileObject::define(env));
  environment->sparse_buffer_class = Napi::Persistent(SparseBufferObject::define(env));
  environment->statistics_class = Napi::Persistent(StatisticsObject::define(env));
  environment->differences_class = Napi::Persistent(DifferencesObject::define(env));
  exports.Set("openInput", Napi::Function::New<InputFileObject::open>(env, "openInput"));
  exports.Set("openInputBelow", Napi::Function::New<InputFileObject::open_below>(env, "openInputBelow"));
  exports.Set("planReorder", Napi::Function::New<ReorderPlanObject::plan>(env, "planReorder"));
  exports.Set("planImage", Napi::Function::New<ImagePlanObject::plan>(env, "planImage"));
  exports.Set("createSparseBuffer",
              Napi::Function::New<SparseBufferObject::create>(env, "createSparseBuffer"));
  exports.Set("createStatistics", Napi::Function::New<StatisticsObject::create>(env, "createStatistics"));
  exports.Set("clipMagnitudes", Napi::Function::New<clip_magnitudes>(env, "clipMagnitudes"));
  exports.Set("quantizeBlocks", Napi::Function::New<quantize_blocks>(env, "quantizeBlocks"));
  exports.Set("quantizeBnb4", Napi::Function::New<quantize_bnb4>(env, "quantizeBnb4"));
  exports.Set("decodeBlocks", Napi::Function::New<decode_blocks>(env, "decodeBlocks"));
  exports.Set("encodeBlocks", Napi::Function::New<encode_blocks>(env, "encodeBlocks"));
  exports.Set("blockKernel", Napi::Function::New<block_kernel>(env, "blockKernel"));
  exports.Set("createDifferences", Napi::Function::New<DifferencesObject::create>(env, "createDifferences"));
  exports.Set("extendBlockRanges", Napi::Function::New<extend_block_ranges>(env, "extendBlockRanges"));
  exports.Set("poolCells", Napi::Function::New<pool_cells>(env, "poolCells"));
  exports.Set("createOutput", Napi::Function::New<OutputFileObject::create>(env, "createOutput"));
  exports.Set("createOutputBelow",
              Napi::Function::New<OutputFileObject::create_below>(env, "createOutputBelow"));
  exports.Set("outputPaths", Napi::Function::New<output_paths>(env, "outputPaths"));
  exports.Set("createFolders", Napi::Function::New<create_folders>(env, "createFolders"));
  exports.Set("removeBelow", Napi::Function::New<remove_below>(env, "removeBelow"));
  exports.Set("readOwnFile", Napi::Function::New<read_own_file>(env, "readOwnFile"));
  exports.Set("tryLock", Napi::Function::New<try_lock>(env, "tryLock"));
  exports.Set("threads", Napi::Function::New<threads>(env, "threads"));
  exports.Set("setThreads", Napi::Function::New<set_threads>(env, "setThreads"));
  exports.Set("setExternalBuffers", Napi::Function::New<set_external_buffers>(env, "setExternalBuffers"));
  exports.Set("preparePages", Napi::Function::New<prepare_pages>(env, "preparePages"));
  exports.Set("placeRows", Napi::Function::New<place_rows>(env, "placeRows"));
  exports.Set("liveMappings", Napi::Function::New<live_mappings>(env, "liveMappings"));
  exports.Set("heldPlanBytes", Napi::Function::New<held_plan_bytes>(env, "heldPlanBytes"));
  exports.Set("exportDlpack", Napi::Function::New<export_dlpack>(env, "exportDlpack"));
  exports.Set("importDlpack", Napi::Function::New<import_dlpack>(env, "importDlpack"));
  exports.Set("plainTensors", Napi::Function::New<plain_tensors>(env, "plainTensors"));
  exports.Set("devices", Napi::Function::New<devices>(env, "devices"));
  exports.Set("errorCodes", error_codes(env));
  exports.Set("cpu", Napi::Function::New<cpu>(env, "cpu"));
  return exports;
}

}  // namespace

NODE_API_MODULE(tilework, initialize)

}  // namespace tilework::binding
