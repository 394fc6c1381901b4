// Tensors to DLPack and back: types, strides, flags, and one call of every deleter.
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "dlpack/exchange.h"
#include "facts/limits.h"

namespace tilework::test {
namespace {

constexpr int64_t kMaxRepeatedBytes = 16;

PackedTensor taken_from(DLManagedTensorVersioned* managed) {
  DlpackImport found = from_dlpack(managed, kMaxRepeatedBytes);
  found.take();
  return std::move(found.tensor);
}

PackedTensor counted_tensor(Dtype dtype, std::vector<int64_t> shape, int& alive) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  PackedTensor tensor{.dtype = dtype, .shape = std::move(shape), .bytes = packed_bytes(dtype, count)};
  const std::shared_ptr<void> memory = dlpack_memory(tensor.bytes);
  tensor.data = static_cast<uint8_t*>(memory.get());
  for (int64_t i = 0; i < tensor.bytes; ++i) tensor.data[i] = static_cast<uint8_t>(i * 7 + 1);
  ++alive;
  tensor.owner = std::shared_ptr<void>(memory.get(), [memory, &alive](void*) { --alive; });
  return tensor;
}

void test_every_type() {
  for (const DtypeInfo& info : dtypes()) {
    const std::string name(info.name);
    int alive = 0;
    PackedTensor tensor = counted_tensor(info.dtype, {3, 1, 5}, alive);
    const std::vector<uint8_t> expected(tensor.data, tensor.data + tensor.bytes);
    DLManagedTensorVersioned* managed = to_dlpack(std::move(tensor));
    const DLTensor& given = managed->dl_tensor;
    CHECK_IN(name, given.dtype.bits == info.bits && given.dtype.lanes == 1 && given.ndim == 3);
    CHECK_IN(name, given.shape[0] == 3 && given.strides[0] == 5 && given.strides[2] == 1);
    CHECK_IN(name, given.device.device_type == kDLCPU && managed->version.major == 1);
    {
      const PackedTensor back = taken_from(managed);
      CHECK_IN(name, back.dtype == info.dtype && back.shape == std::vector<int64_t>({3, 1, 5}));
      CHECK_IN(name, std::vector<uint8_t>(back.data, back.data + back.bytes) == expected);
      CHECK_IN(name, alive == 1 && !back.copied && !back.read_only);
    }
    CHECK_IN(name, alive == 0);
  }
}

void test_flags() {
  int alive = 0;
  PackedTensor tensor = counted_tensor(Dtype::kInt8, {2}, alive);
  tensor.read_only = true;
  CHECK(code_of([&] { to_legacy_dlpack(tensor); }) == "ERR_UNSUPPORTED");
  tensor.copied = true;
  DLManagedTensorVersioned* managed = to_dlpack(std::move(tensor));
  CHECK(managed->flags == (DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED));
  const PackedTensor back = taken_from(managed);
  CHECK(back.read_only && back.copied);
}

void test_legacy_and_empty() {
  int alive = 0;
  DLManagedTensor* legacy = to_legacy_dlpack(counted_tensor(Dtype::kFloat32, {2, 2}, alive));
  {
    DlpackImport found = from_legacy_dlpack(legacy, 0);
    found.take();
    const PackedTensor& back = found.tensor;
    CHECK(back.bytes == 16 && back.data[4] == 29);
  }
  CHECK(alive == 0);
  DLManagedTensorVersioned* empty = to_dlpack(counted_tensor(Dtype::kFloat32, {2, 0}, alive));
  CHECK(empty->dl_tensor.data == nullptr);
  CHECK(taken_from(empty).bytes == 0);
  DLManagedTensorVersioned* scalar = to_dlpack(counted_tensor(Dtype::kBfloat16, {}, alive));
  CHECK(scalar->dl_tensor.ndim == 0);
  CHECK(taken_from(scalar).bytes == 2);
  CHECK(alive == 0);
}

void test_size_is_checked_before_the_copy() {
  const uint8_t byte = 7;
  // A copy of this many bytes would crash.
  const auto too_large = [&] {
    share_or_copy(&byte, int64_t{1} << 40, Dtype::kFloat32, {2, 2}, DlpackForm::kVersioned);
  };
  CHECK(code_of(too_large) == "ERR_ARGUMENT");
  for (const DlpackForm form : {DlpackForm::kVersioned, DlpackForm::kLegacy}) {
    const PackedTensor copy = share_or_copy(&byte, 1, Dtype::kUint8, {1}, form);
    CHECK(copy.copied && !copy.read_only && copy.data != &byte && *copy.data == 7);
  }
}

// A tensor of another library: its memory, its description and a count of deleter calls.
struct Foreign {
  std::vector<uint8_t> memory;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int deleted = 0;
  DLManagedTensorVersioned managed{};

  Foreign(DLDataType type, std::vector<int64_t> extents, std::vector<int64_t> steps, size_t bytes)
      : memory(bytes), shape(std::move(extents)), strides(std::move(steps)) {
    for (size_t i = 0; i < bytes; ++i) memory[i] = static_cast<uint8_t>(i);
    managed.version = {1, 9};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) {
      static_cast<Foreign*>(self->manager_ctx)->deleted += 1;
    };
    managed.dl_tensor = {memory.data(),
                         {kDLCPU, 0},
                         static_cast<int32_t>(shape.size()),
                         type,
                         shape.data(),
                         strides.empty() ? nullptr : strides.data(),
                         0};
  }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
};

std::vector<uint8_t> bytes_of(const PackedTensor& tensor) {
  return {tensor.data, tensor.data + tensor.bytes};
}

void test_strides() {
  Foreign transposed({1, 8, 1}, {3, 2}, {1, 3}, 6);
  const PackedTensor taken = taken_from(&transposed.managed);
  CHECK(bytes_of(taken) == std::vector<uint8_t>({0, 3, 1, 4, 2, 5}));
  CHECK(taken.copied && transposed.deleted == 1);

  Foreign reversed({1, 16, 1}, {3}, {-1}, 6);
  reversed.managed.dl_tensor.byte_offset = 4;
  CHECK(bytes_of(taken_from(&reversed.managed)) == std::vector<uint8_t>({4, 5, 2, 3, 0, 1}));

  Foreign repeated({1, 8, 1}, {2, 2}, {0, 1}, 2);
  CHECK(bytes_of(taken_from(&repeated.managed)) == std::vector<uint8_t>({0, 1, 0, 1}));

  Foreign compact({1, 8, 1}, {1, 2, 1}, {99, 1, 77}, 2);
  {
    const PackedTensor shared = taken_from(&compact.managed);
    CHECK(shared.data == compact.memory.data() && !shared.copied && compact.deleted == 0);
  }
  CHECK(compact.deleted == 1);
}

void test_what_is_not_taken() {
  Foreign compact({1, 8, 1}, {2, 3}, {3, 1}, 6);
  Foreign strided({1, 8, 1}, {3, 2}, {1, 3}, 6);
  for (Foreign* each : {&compact, &strided}) {
    { CHECK(from_dlpack(&each->managed, 0).tensor.bytes == 6); }
    CHECK(each->deleted == 0);
    { taken_from(&each->managed); }
    CHECK(each->deleted == 1);
  }
}

void test_small_elements() {
  Foreign padded({0, 4, 1}, {3}, {}, 3);
  padded.managed.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  padded.memory = {0xf1, 0x02, 0x0f};
  padded.managed.dl_tensor.data = padded.memory.data();
  CHECK(bytes_of(taken_from(&padded.managed)) == std::vector<uint8_t>({0x21, 0x0f}));
  Foreign packed({1, 2, 1}, {2, 2}, {1, 2}, 1);
  CHECK(code_of([&] { taken_from(&packed.managed); }) == "ERR_UNSUPPORTED");
  CHECK(packed.deleted == 0);
}

void test_refusals() {
  struct Case {
    const char* what;
    std::string code;
    void (*change)(DLManagedTensorVersioned&);
  };
  const std::vector<Case> cases = {
      {"version", "ERR_UNSUPPORTED", [](auto& managed) { managed.version.major = 2; }},
      {"device", "ERR_UNSUPPORTED", [](auto& managed) { managed.dl_tensor.device.device_type = 2; }},
      {"lanes", "ERR_UNSUPPORTED", [](auto& managed) { managed.dl_tensor.dtype.lanes = 4; }},
      {"type", "ERR_UNSUPPORTED", [](auto& managed) { managed.dl_tensor.dtype.code = 15; }},
      {"bits", "ERR_UNSUPPORTED", [](auto& managed) { managed.dl_tensor.dtype.bits = 24; }},
      {"axes", "ERR_RANK",
       [](auto& managed) { managed.dl_tensor.ndim = static_cast<int32_t>(kMaxAxes) + 1; }},
      {"axes below 0", "ERR_RANK", [](auto& managed) { managed.dl_tensor.ndim = -1; }},
      {"no shape", "ERR_ARGUMENT", [](auto& managed) { managed.dl_tensor.shape = nullptr; }},
      {"extent", "ERR_ARGUMENT", [](auto& managed) { managed.dl_tensor.shape[0] = -2; }},
      {"product", "ERR_OVERFLOW", [](auto& managed) { managed.dl_tensor.shape[0] = INT64_MAX; }},
      {"stride", "ERR_OVERFLOW", [](auto& managed) { managed.dl_tensor.strides[0] = INT64_MIN; }},
      {"extent beyond 2^53 beside an empty one", "ERR_OVERFLOW",
       [](auto& managed) {
         managed.dl_tensor.shape[0] = INT64_MAX;
         managed.dl_tensor.shape[1] = 0;
       }},
      {"repeated", "ERR_LIMIT",
       [](auto& managed) {
         managed.dl_tensor.shape[0] = 6;
         managed.dl_tensor.strides[0] = 0;
       }},
      {"memory", "ERR_ARGUMENT", [](auto& managed) { managed.dl_tensor.data = nullptr; }},
  };
  for (const Case& each : cases) {
    Foreign tensor({1, 8, 1}, {2, 3}, {3, 1}, 6);
    each.change(tensor.managed);
    CHECK_IN(each.what, code_of([&] { taken_from(&tensor.managed); }) == each.code);
    CHECK_IN(each.what, tensor.deleted == 0);
  }
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  test_every_type();
  test_size_is_checked_before_the_copy();
  test_flags();
  test_legacy_and_empty();
  test_strides();
  test_what_is_not_taken();
  test_small_elements();
  test_refusals();
  return result();
}
