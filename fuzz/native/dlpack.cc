// Import of DLPack tensors with any description, against a gather from the definition. The memory is what the
// description says where that is small; otherwise the import has to refuse the tensor or leave the memory
// alone.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "dlpack/exchange.h"
#include "error.h"
#include "facts/limits.h"
#include "fuzz_input.h"
#include "io/checked_math.h"

namespace tilework::fuzz {
namespace {

__extension__ typedef __int128 Wide;

constexpr int64_t kMostBytes = 4096;

// Of the other library: counts calls of its deleter.
struct Giver {
  int deleted = 0;
};

template <class Managed>
void count_deletion(Managed* managed) {
  ++static_cast<Giver*>(managed->manager_ctx)->deleted;
}

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  bool has_strides = false;
  DLTensor described{};
};

int64_t extent_from(FuzzInput& input) { return input.one_in(8) ? input.number() : input.below(5); }

int64_t stride_from(FuzzInput& input) { return input.one_in(8) ? input.number() : input.below(24) - 8; }

Tensor tensor_of(FuzzInput& input) {
  Tensor tensor;
  const int64_t rank = input.one_in(16) ? input() : input.below(5);
  for (int64_t axis = 0; axis < rank; ++axis) {
    tensor.shape.push_back(extent_from(input));
    tensor.strides.push_back(stride_from(input));
  }
  tensor.has_strides = !input.one_in(3);
  // Row-major strides, of which a few are replaced.
  if (input.one_in(3)) {
    int64_t stride = 1;
    for (size_t axis = tensor.shape.size(); axis-- > 0;) {
      tensor.strides[axis] = stride;
      if (__builtin_mul_overflow(stride, std::max<int64_t>(tensor.shape[axis], 1), &stride)) stride = 1;
    }
  }
  DLTensor& described = tensor.described;
  const auto types = dtypes();
  const DtypeInfo& info = types[static_cast<size_t>(input()) % types.size()];
  described.dtype = {static_cast<uint8_t>(info.dlpack_code), static_cast<uint8_t>(info.bits), 1};
  if (input.one_in(16)) described.dtype = {input(), input(), static_cast<uint16_t>(input())};
  described.device = {input.one_in(16) ? int32_t{input()} : int32_t{kDLCPU}, 0};
  described.ndim = input.one_in(16) ? -static_cast<int32_t>(input()) : static_cast<int32_t>(rank);
  described.shape = input.one_in(32) ? nullptr : tensor.shape.data();
  described.strides = tensor.has_strides ? tensor.strides.data() : nullptr;
  return tensor;
}

std::optional<DtypeInfo> known(const DLTensor& described) {
  if (described.device.device_type != kDLCPU || described.dtype.lanes != 1) return std::nullopt;
  for (const DtypeInfo& info : dtypes()) {
    if (info.dlpack_code == described.dtype.code && info.bits == described.dtype.bits) return info;
  }
  return std::nullopt;
}

// What a correct import finds. Offsets are elements from the first one.
struct Expectation {
  DtypeInfo info;
  Wide elements = 1;
  Wide lowest = 0;
  Wide highest = 0;
  bool is_compact = true;
};

std::optional<Expectation> expectation_of(const Tensor& tensor) {
  const auto info = known(tensor.described);
  const DLTensor& described = tensor.described;
  if (!info || described.ndim < 0 || described.ndim > static_cast<int32_t>(kMaxAxes)) return std::nullopt;
  if (described.ndim > 0 && described.shape == nullptr) return std::nullopt;
  Expectation expected{.info = *info};
  const auto rank = static_cast<size_t>(described.ndim);
  for (size_t axis = 0; axis < rank; ++axis) {
    if (tensor.shape[axis] < 0 || tensor.shape[axis] > kMaxSafeInteger) return std::nullopt;
    if (tensor.shape[axis] == 0) expected.elements = 0;
  }
  if (expected.elements == 0) return expected;
  for (size_t axis = rank; axis-- > 0;) {
    const Wide extent = tensor.shape[axis];
    if (tensor.has_strides && extent > 1) {
      const Wide stride = tensor.strides[axis];
      if (stride != expected.elements) expected.is_compact = false;
      (stride < 0 ? expected.lowest : expected.highest) += stride * (extent - 1);
    }
    expected.elements *= extent;
    if (expected.elements > kMaxSafeInteger) return std::nullopt;
  }
  if (!tensor.has_strides) expected.highest = expected.elements - 1;
  return expected;
}

// Bits of the element at `index` of packed memory.
uint8_t packed_element(const uint8_t* bytes, int bits, int64_t index) {
  return static_cast<uint8_t>((bytes[index * bits / 8] >> (index * bits % 8)) & ((1 << bits) - 1));
}

void check_content(const Tensor& tensor, const Expectation& expected, bool padded, const PackedTensor& found,
                   const uint8_t* first) {
  const int bits = expected.info.bits;
  const auto elements = static_cast<int64_t>(expected.elements);
  require(found.dtype == expected.info.dtype, "the type differs");
  require(
      found.shape == std::vector<int64_t>(tensor.shape.begin(), tensor.shape.begin() + tensor.described.ndim),
      "the shape differs");
  require(found.bytes == packed_bytes(found.dtype, elements), "the size differs");
  for (int64_t element = 0; element < elements; ++element) {
    int64_t offset = 0;
    int64_t inner = 1;
    int64_t left = element;
    for (size_t axis = found.shape.size(); axis-- > 0;) {
      const int64_t index = left % found.shape[axis];
      left /= found.shape[axis];
      if (found.shape[axis] > 1) offset += index * (tensor.has_strides ? tensor.strides[axis] : inner);
      inner *= found.shape[axis];
    }
    if (bits < 8) {
      const uint8_t value = padded ? first[offset] & static_cast<uint8_t>((1 << bits) - 1)
                                   : packed_element(first, bits, offset);
      require(packed_element(found.data, bits, element) == value, "an element differs");
    } else {
      const auto size = static_cast<size_t>(bits / 8);
      require(std::memcmp(found.data + element * bits / 8, first + offset * (bits / 8), size) == 0,
              "an element differs");
    }
  }
}

template <class Managed>
void check_import(Managed& managed, Tensor& tensor, bool padded, FuzzInput& input) {
  const auto expected = expectation_of(tensor);
  std::vector<uint8_t> memory;
  const uint8_t* first = nullptr;
  bool has_memory = false;
  const int64_t most_repeated = input.one_in(4) ? input() : kMostBytes;
  if (expected && expected->elements > 0) {
    const bool is_padded = padded && expected->info.bits < 8;
    const int bits = is_padded ? 8 : expected->info.bits;
    const Wide bytes = ((expected->highest - expected->lowest + 1) * bits + 7) / 8;
    const Wide copied = (expected->elements * expected->info.bits + 7) / 8;
    const bool gathers = is_padded || !expected->is_compact;
    // The import copies this much, which the caller's limit does not bound where no element repeats.
    if (gathers && copied <= kMostBytes && bytes > kMostBytes) return;
    has_memory = bytes <= kMostBytes && copied <= kMostBytes;
    if (gathers && !has_memory && copied > most_repeated && copied <= (Wide{1} << 32) &&
        expected->elements <= expected->highest - expected->lowest + 1) {
      return;
    }
    if (has_memory) {
      const auto skipped = static_cast<size_t>(input.below(9));
      memory.resize(static_cast<size_t>(bytes) + skipped);
      for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i * 37 + (i >> 8));
      const Wide lead = -expected->lowest * bits / 8;
      first = memory.data() + skipped + static_cast<int64_t>(lead);
      managed.dl_tensor.data = memory.data() + static_cast<int64_t>(lead);
      managed.dl_tensor.byte_offset = skipped;
      if (input.one_in(32)) {
        managed.dl_tensor.data = nullptr;
        first = nullptr;
      }
    } else if (gathers && expected->elements <= expected->highest - expected->lowest + 1) {
      // A tensor that may be as large as it says: no memory can be made for it.
      return;
    }
  }
  Giver giver;
  managed.manager_ctx = &giver;
  managed.deleter = count_deletion<Managed>;
  bool taken = false;
  try {
    DlpackImport found = [&] {
      if constexpr (std::is_same_v<Managed, DLManagedTensor>)
        return from_legacy_dlpack(&managed, most_repeated);
      else
        return from_dlpack(&managed, most_repeated);
    }();
    require(expected.has_value(), "a tensor that must be refused is imported");
    if (input.one_in(4)) return;
    found.take();
    taken = true;
    if (has_memory && first != nullptr) check_content(tensor, *expected, padded, found.tensor, first);
  } catch (const Error&) {
  }
  require(giver.deleted == (taken ? 1 : 0), "the deleter is not called once");
}

void run(FuzzInput& input) {
  Tensor tensor = tensor_of(input);
  // Not null: where the import must leave the memory alone, reading it is an error.
  static uint8_t nothing;
  tensor.described.data = &nothing + 1;
  if (input.one_in(3)) {
    DLManagedTensor managed{.dl_tensor = tensor.described, .manager_ctx = nullptr, .deleter = nullptr};
    check_import(managed, tensor, false, input);
    return;
  }
  const uint64_t flags = input.below(8);
  DLManagedTensorVersioned managed{.version = {DLPACK_MAJOR_VERSION, input()},
                                   .manager_ctx = nullptr,
                                   .deleter = nullptr,
                                   .flags = flags,
                                   .dl_tensor = tensor.described};
  if (input.one_in(16)) {
    managed.version.major = static_cast<uint32_t>(input()) + 2;
    try {
      from_dlpack(&managed, kMostBytes);
      finding("a tensor of another version is imported");
    } catch (const Error&) {
    }
    return;
  }
  check_import(managed, tensor, (flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0, input);
}

}  // namespace
}  // namespace tilework::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tilework::fuzz::FuzzInput input(data, size);
  tilework::fuzz::run(input);
  return 0;
}
