#include "opencl/opencl_library.h"

#include <cstdlib>
#include <string>
#include <utility>

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace tilework::cl {
namespace {

#if defined(_WIN32)
constexpr const char* kNames[] = {"OpenCL.dll"};
#elif defined(__APPLE__)
constexpr const char* kNames[] = {"/System/Library/Frameworks/OpenCL.framework/OpenCL"};
#else
constexpr const char* kNames[] = {"libOpenCL.so.1"};
#endif

void* open_library(const char* name) {
#if defined(_WIN32)
  return reinterpret_cast<void*>(LoadLibraryA(name));
#else
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
#endif
}

void* find_function(void* handle, const char* name) {
#if defined(_WIN32)
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(handle), name));
#else
  return dlsym(handle, name);
#endif
}

// Null if a function is missing; its name goes to `missing`.
const Api* api_of(void* handle, std::string& missing) {
  auto* api = new Api;
#define TILEWORK_OPENCL_FUNCTION(result, name, parameters)                          \
  api->name = reinterpret_cast<result(*) parameters>(find_function(handle, #name)); \
  if (api->name == nullptr) missing = #name;
#include "opencl/opencl_functions.def"
#undef TILEWORK_OPENCL_FUNCTION
  if (missing.empty()) return api;
  delete api;
  return nullptr;
}

Library load(const char* name) {
  void* handle = open_library(name);
  if (handle == nullptr) return {nullptr, std::string("cannot load ") + name};
  std::string missing;
  if (const Api* api = api_of(handle, missing)) return {api, {}};
  return {nullptr, std::string(name) + " has no " + missing + ", so it is older than OpenCL 1.2"};
}

Library load_any() {
  const char* wanted = std::getenv("TILEWORK_OPENCL_LIBRARY");
  if (wanted != nullptr && std::string(wanted) == "none") {
    return {nullptr, "TILEWORK_OPENCL_LIBRARY is \"none\""};
  }
  if (wanted != nullptr && *wanted != '\0') return load(wanted);
  Library library;
  for (const char* name : kNames) {
    library = load(name);
    if (library.api != nullptr) break;
  }
  return library;
}

}  // namespace

const Library& library() {
  static const auto* loaded = new Library(load_any());
  return *loaded;
}

std::string status_name(Int status) {
  constexpr std::pair<Int, const char*> kStatusNames[] = {
      {kDeviceNotFound, "CL_DEVICE_NOT_FOUND"},
      {kDeviceNotAvailable, "CL_DEVICE_NOT_AVAILABLE"},
      {kMemoryAllocationFailure, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
      {kOutOfResources, "CL_OUT_OF_RESOURCES"},
      {kOutOfHostMemory, "CL_OUT_OF_HOST_MEMORY"},
      {kBuildFailure, "CL_BUILD_PROGRAM_FAILURE"},
      {kExecStatusError, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
      {kInvalidContext, "CL_INVALID_CONTEXT"},
      {kInvalidCommandQueue, "CL_INVALID_COMMAND_QUEUE"},
      {kInvalidBuildOptions, "CL_INVALID_BUILD_OPTIONS"},
      {kInvalidBufferSize, "CL_INVALID_BUFFER_SIZE"},
      {kPlatformNotFound, "CL_PLATFORM_NOT_FOUND_KHR"}};
  for (const auto& [known, name] : kStatusNames) {
    if (known == status) return name;
  }
  return "status " + std::to_string(status);
}

Error failure(Int status, const char* call) {
  const std::string what = std::string(call) + " gave " + status_name(status);
  switch (status) {
    case kMemoryAllocationFailure:
    case kOutOfHostMemory:
    case kInvalidBufferSize:
      return {ErrorCode::kDeviceMemory, "The device is out of memory: " + what + "."};
    default:
      return {ErrorCode::kDeviceLost, "The device or its driver failed: " + what + "."};
  }
}

}  // namespace tilework::cl
