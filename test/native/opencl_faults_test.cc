// Every call of the OpenCL library fails once, as with drivers that lose their device or run out of memory.
// Each run must end with a device error, release all objects, and the next run must work. Without a device
// the program prints that and passes.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "check.h"
#include "opencl/device_reorder.h"
#include "opencl_device.h"
#include "reorder_case.h"

namespace tilework::test {
namespace {

enum Function : size_t {
#define TILEWORK_OPENCL_FUNCTION(result, name, parameters) name,
#include "opencl/opencl_functions.def"
#undef TILEWORK_OPENCL_FUNCTION
  kFunctions
};

constexpr const char* kNames[] = {
#define TILEWORK_OPENCL_FUNCTION(result, name, parameters) #name,
#include "opencl/opencl_functions.def"
#undef TILEWORK_OPENCL_FUNCTION
};

// The real library, the calls since begin(), and the call of a function that is to fail.
cl::Api real;
std::array<int, kFunctions> calls{};
size_t failing = kFunctions;
int failing_call = 0;
cl::Int failing_status = cl::kSuccess;
// Objects and mappings that were created and not released.
int64_t live = 0;

bool is_release(size_t function) {
  return std::strncmp(kNames[function], "clRelease", 9) == 0 || function == clEnqueueUnmapMemObject;
}

// A creating function returns the object or passes an event by its last argument.
template <class Result, class... Arguments>
void count_made(Result result, const std::tuple<Arguments...>& arguments) {
  if constexpr (std::is_pointer_v<Result>) {
    live += result != nullptr ? 1 : 0;
  } else if constexpr (std::is_same_v<
                           std::tuple_element_t<sizeof...(Arguments) - 1, std::tuple<Arguments...>>,
                           cl::Event*>) {
    live += result == cl::kSuccess && std::get<sizeof...(Arguments) - 1>(arguments) != nullptr ? 1 : 0;
  }
}

template <Function function, auto member, class Pointer>
struct Watched;

template <Function function, auto member, class Result, class... Arguments>
struct Watched<function, member, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    if (++calls[function] == failing_call && function == failing) {
      if constexpr (std::is_pointer_v<Result>) {
        *std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...)) = failing_status;
        return nullptr;
      } else {
        return failing_status;
      }
    }
    const Result result = (real.*member)(arguments...);
    if (is_release(function)) {
      live -= 1;
    } else {
      count_made(result, std::tuple(arguments...));
    }
    return result;
  }
};

void watch() {
  // The table belongs to the process, and only devices() has read it so far.
  auto* api = const_cast<cl::Api*>(cl::library().api);
  real = *api;
#define TILEWORK_OPENCL_FUNCTION(result, name, parameters) \
  api->name = &Watched<name, &cl::Api::name, decltype(cl::Api::name)>::call;
#include "opencl/opencl_functions.def"
#undef TILEWORK_OPENCL_FUNCTION
}

void begin(size_t function, int call, cl::Int status) {
  calls.fill(0);
  failing = function;
  failing_call = call;
  failing_status = status;
}

// Calls per function: all calls of a short run, except for setting kernel arguments, which happens very
// often.
constexpr int kMostCalls = 13;

struct Run {
  std::shared_ptr<const ReorderPlan> plan;
  cl::DeviceOptions options;
  // Slices after which the run stops; 0 for all.
  int stop_after = 0;
};

// Code of the error, or empty; without error and stop the result must equal the CPU's.
std::string code_of_run(const Run& run) {
  const Storage source(run.plan->source_bytes());
  for (int64_t i = 0; i < source.size; ++i) source.data[i] = static_cast<uint8_t>(i * 7 + i / 256);
  const Storage wanted(run.plan->destination_bytes());
  run.plan->run(source.data.get(), wanted.data.get(), 0, wanted.size);
  const Storage found(run.plan->destination_bytes());
  std::memset(found.data.get(), 0xA5, static_cast<size_t>(found.size));
  int slices = 0;
  try {
    const cl::DeviceReorder reorder(run.plan, *cl::devices().front(), run.options, 0, found.size);
    reorder.run({source.data.get(), nullptr, 0}, {found.data.get(), nullptr, 0},
                [&] { return run.stop_after > 0 && slices++ >= run.stop_after; });
  } catch (const Error& error) {
    return error.name();
  }
  const bool is_whole = run.stop_after == 0;
  CHECK(!is_whole || std::memcmp(found.data.get(), wanted.data.get(), static_cast<size_t>(found.size)) == 0);
  return {};
}

// Drops the objects that the device caches; then none may be left.
void check_nothing_left(const std::string& what) {
  begin(kFunctions, 0, cl::kSuccess);
  cl::ComputeDevice& device = *cl::devices().front();
  device.forget(device.session());
  CHECK_IN(what + " leaves " + std::to_string(live) + " objects", live == 0);
}

void check_fault(const Run& run, size_t function, int call, cl::Int status) {
  const std::string what =
      std::string(kNames[function]) + ", call " + std::to_string(call) + ", " + cl::status_name(status);
  begin(function, call, status);
  const std::string code = code_of_run(run);
  const bool is_known =
      code == "ERR_DEVICE_MEMORY" || code == "ERR_DEVICE_LOST" || code == "ERR_DEVICE_BUILD";
  // A call that only waits at the end of a run may fail unnoticed: all work is done by then.
  CHECK_IN(what + " gives \"" + code + "\"", is_known || (code.empty() && function == clFinish));
  if (status == cl::kDeviceNotAvailable && !code.empty() && function != clBuildProgram) {
    CHECK_IN(what, code == "ERR_DEVICE_LOST");
  }
  begin(kFunctions, 0, cl::kSuccess);
  CHECK_IN("the run after " + what, code_of_run(run).empty());
  check_nothing_left(what);
}

void test_every_call(const Run& run) {
  begin(kFunctions, 0, cl::kSuccess);
  CHECK(code_of_run(run).empty());
  check_nothing_left("A run");
  begin(kFunctions, 0, cl::kSuccess);
  CHECK(code_of_run(run).empty());
  const std::array<int, kFunctions> made = calls;
  // A context, a program and a lane at least.
  CHECK(live > 3);
  check_nothing_left("A second run");
  for (size_t function = 0; function < kFunctions && failures < 10; ++function) {
    if (is_release(function)) continue;
    for (int call = 1; call <= std::min(made[function], kMostCalls); ++call) {
      check_fault(run, function, call, cl::kDeviceNotAvailable);
      // The first call is enough to check that out-of-memory differs from a lost device.
      if (call == 1) check_fault(run, function, call, cl::kMemoryAllocationFailure);
    }
  }
}

void test_stopped_run(Run run) {
  run.stop_after = 1;
  CHECK(code_of_run(run).empty());
  check_nothing_left("A run that is stopped");
}

void test_refused_kernel(Run run) {
  run.options.build_options = "-cl-no-such-option";
  CHECK(code_of_run(run) == "ERR_DEVICE_BUILD");
  check_nothing_left("A kernel that is refused");
}

void test_lost_device(Run run) {
  run.options.lose_after = 1;
  CHECK(code_of_run(run) == "ERR_DEVICE_LOST");
  check_nothing_left("A device that is lost");
}

Run transpose(bool in_place) {
  const std::vector<int64_t> shape{3, 40, 50};
  ReorderDescription description{32, shape, row_major(shape), row_major(shape)};
  std::vector<Digit>& digits = description.to.pieces[0].digits;
  std::swap(digits[1], digits[2]);
  Run run{std::make_shared<const ReorderPlan>(description), {}};
  run.options.in_place = in_place;
  // Two slices with two windows each.
  run.options.max_bytes = run.plan->source_bytes() / 2;
  return run;
}

}  // namespace
}  // namespace tilework::test

int main() {
  return tilework::test::run_on_device([] {
    using namespace tilework::test;
    watch();
    for (const bool in_place : {false, true}) {
      const Run run = transpose(in_place);
      test_every_call(run);
      test_stopped_run(run);
      test_refused_kernel(run);
      test_lost_device(run);
    }
  });
}
