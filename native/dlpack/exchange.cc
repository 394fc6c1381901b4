#include "dlpack/exchange.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "error.h"
#include "facts/limits.h"
#include "io/checked_math.h"
#include "io/input_file.h"

namespace tilework {
namespace {

constexpr std::align_val_t kAlignment{256};

std::optional<Dtype> dtype_of(DLDataType type) {
  for (const DtypeInfo& info : dtypes()) {
    if (info.dlpack_code == type.code && info.bits == type.bits) return info.dtype;
  }
  return std::nullopt;
}

// What an exported tensor needs until its deleter is called.
struct Given {
  PackedTensor tensor;
  std::vector<int64_t> strides;
};

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = checked_mul(strides[axis], std::max<int64_t>(shape[axis], 1), "A stride");
  return strides;
}

std::unique_ptr<Given> given(PackedTensor tensor) {
  std::vector<int64_t> strides = row_major_strides(tensor.shape);
  return std::make_unique<Given>(Given{std::move(tensor), std::move(strides)});
}

DLTensor describe(Given& given) {
  PackedTensor& tensor = given.tensor;
  const auto bits = static_cast<uint8_t>(info_of(tensor.dtype).bits);
  return {.data = tensor.bytes == 0 ? nullptr : tensor.data,
          .device = {kDLCPU, 0},
          .ndim = static_cast<int32_t>(tensor.shape.size()),
          .dtype = {static_cast<uint8_t>(info_of(tensor.dtype).dlpack_code), bits, 1},
          .shape = tensor.shape.data(),
          .strides = given.strides.data(),
          .byte_offset = 0};
}

template <class Managed>
void release(Managed* managed) {
  delete static_cast<Given*>(managed->manager_ctx);
  delete managed;
}

// Elements of another library's tensor.
struct Elements {
  Dtype dtype = Dtype::kUint8;
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};
  uint8_t* data = nullptr;
  int64_t count = 1;
  bool padded = false;
};

std::vector<int64_t> shape_of(const DLTensor& tensor) {
  if (tensor.ndim < 0 || tensor.ndim > static_cast<int32_t>(kMaxAxes)) {
    throw Error(ErrorCode::kRank, "The tensor has " + std::to_string(tensor.ndim) + " axes; the limit is " +
                                      std::to_string(kMaxAxes) + ".");
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr)
    throw Error(ErrorCode::kArgument, "The tensor has axes but no shape.");
  std::vector<int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  for (const int64_t extent : shape) {
    if (extent < 0) {
      throw Error(ErrorCode::kArgument,
                  "The tensor has the extent " + std::to_string(extent) + "; extents must not be negative.");
    }
    if (extent > kMaxSafeInteger) throw_overflow("An extent of the tensor");
  }
  return shape;
}

Dtype known_dtype(const DLTensor& tensor) {
  const DLDataType& type = tensor.dtype;
  if (tensor.device.device_type != kDLCPU) {
    throw Error(ErrorCode::kUnsupported, "The tensor is on a device of type " +
                                             std::to_string(tensor.device.device_type) +
                                             "; only CPU memory (1) can be read.");
  }
  if (type.lanes != 1) {
    throw Error(ErrorCode::kUnsupported,
                "The tensor has " + std::to_string(type.lanes) + " lanes per element; only 1 is supported.");
  }
  if (const std::optional<Dtype> dtype = dtype_of(type)) return *dtype;
  throw Error(ErrorCode::kUnsupported, "The tensor has the type code " + std::to_string(type.code) +
                                           " with " + std::to_string(type.bits) +
                                           " bits, which has no element type here.");
}

Elements elements_of(const DLTensor& tensor, bool padded) {
  Elements elements{.dtype = known_dtype(tensor), .shape = shape_of(tensor)};
  for (const int64_t extent : elements.shape)
    if (extent == 0) elements.count = 0;
  if (elements.count == 0) return elements;
  for (const int64_t extent : elements.shape)
    elements.count = checked_mul(elements.count, extent, "The number of elements");
  elements.padded = padded && info_of(elements.dtype).bits < 8;
  if (tensor.data == nullptr) throw Error(ErrorCode::kArgument, "The tensor has elements but no memory.");
  elements.data = static_cast<uint8_t*>(tensor.data) + tensor.byte_offset;
  elements.strides = tensor.strides == nullptr
                         ? row_major_strides(elements.shape)
                         : std::vector<int64_t>(tensor.strides, tensor.strides + tensor.ndim);
  return elements;
}

// Whether the elements are row-major without gaps. The stride of an axis of extent 1 does not matter.
bool is_compact(const Elements& elements) {
  const std::vector<int64_t> compact = row_major_strides(elements.shape);
  for (size_t axis = 0; axis < elements.shape.size(); ++axis)
    if (elements.shape[axis] != 1 && elements.strides[axis] != compact[axis]) return false;
  return true;
}

// Calls `visit` with the offset, in elements, of each element in row-major order.
template <class Visit>
void each_offset(const Elements& elements, Visit visit) {
  std::vector<int64_t> index(elements.shape.size(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < elements.count; ++i) {
    visit(i, offset);
    for (size_t axis = index.size(); axis-- > 0;) {
      offset += elements.strides[axis];
      if (++index[axis] < elements.shape[axis]) break;
      offset -= elements.strides[axis] * elements.shape[axis];
      index[axis] = 0;
    }
  }
}

void gather(const Elements& elements, uint8_t* to) {
  const int bits = info_of(elements.dtype).bits;
  if (elements.padded) {
    const unsigned mask = (1u << bits) - 1;
    each_offset(elements, [&](int64_t i, int64_t offset) {
      const int64_t at = i * bits;
      const unsigned code = (elements.data[offset] & mask) << (at % 8);
      to[at / 8] |= static_cast<uint8_t>(code);
      if (code > 0xff) to[at / 8 + 1] |= static_cast<uint8_t>(code >> 8);
    });
    return;
  }
  const int64_t size = bits / 8;
  each_offset(elements, [&](int64_t i, int64_t offset) {
    std::memcpy(to + i * size, elements.data + offset * size, static_cast<size_t>(size));
  });
}

// Number of elements from the first to the last in memory. Errors: ERR_OVERFLOW for strides that no memory
// can have.
int64_t span_of(const Elements& elements) {
  const int64_t size = std::max(info_of(elements.dtype).bits / 8, 1);
  int64_t span = 1;
  for (size_t axis = 0; axis < elements.shape.size(); ++axis) {
    const int64_t stride = elements.strides[axis];
    if (stride < -kMaxSafeInteger || stride > kMaxSafeInteger) throw_overflow("A stride of the tensor");
    const int64_t reach =
        checked_mul(stride < 0 ? -stride : stride, elements.shape[axis] - 1, "A stride of the tensor");
    span = checked_add(span, reach, "The memory of the tensor");
  }
  checked_mul(span, size, "The memory of the tensor");
  return span;
}

template <class Managed>
void call_deleter(void* managed) {
  auto* tensor = static_cast<Managed*>(managed);
  if (tensor->deleter != nullptr) tensor->deleter(tensor);
}

// Copies elements that are not row-major without gaps.
PackedTensor gathered(const Elements& elements, int64_t max_repeated_bytes) {
  if (info_of(elements.dtype).bits < 8 && !elements.padded) {
    throw Error(ErrorCode::kUnsupported,
                "The tensor has packed sub-byte elements and strides; only row-major ones can be read.");
  }
  const int64_t bytes = packed_bytes(elements.dtype, elements.count);
  if (elements.count > span_of(elements) && bytes > max_repeated_bytes) {
    throw Error(ErrorCode::kLimit, "The strides of the tensor repeat elements, " + std::to_string(bytes) +
                                       " bytes in total; maxBytes is " + std::to_string(max_repeated_bytes) +
                                       ".");
  }
  PackedTensor tensor{.dtype = elements.dtype, .shape = elements.shape, .bytes = bytes, .copied = true};
  tensor.owner = dlpack_memory(bytes);
  tensor.data = static_cast<uint8_t*>(tensor.owner.get());
  gather(elements, tensor.data);
  return tensor;
}

template <class Managed>
DlpackImport imported(Managed* managed, uint64_t flags, int64_t max_repeated_bytes) {
  const bool padded = (flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0;
  const Elements elements = elements_of(managed->dl_tensor, padded);
  auto held = std::make_shared<DlpackHold>(managed, call_deleter<Managed>);
  if (elements.count > 0 && (elements.padded || !is_compact(elements)))
    return {gathered(elements, max_repeated_bytes), held};
  return {{.dtype = elements.dtype,
           .shape = elements.shape,
           .data = elements.data,
           .bytes = packed_bytes(elements.dtype, elements.count),
           .owner = held,
           .read_only = (flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0,
           .copied = (flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0},
          held};
}

bool is_versioned(const DlpackCapsule& capsule) {
  return std::strcmp(capsule.name, DLPACK_CAPSULE_VERSIONED) == 0;
}

void check_bytes(int64_t bytes, Dtype dtype, const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count = checked_mul(count, extent, "The number of elements");
  const int64_t needed = packed_bytes(dtype, count);
  if (bytes == needed) return;
  throw Error(ErrorCode::kArgument, "'bytes' has " + std::to_string(bytes) + " bytes; the shape needs " +
                                        std::to_string(needed) + ".");
}

// The mapped file that contains the memory, if the elements are aligned in it.
std::shared_ptr<InputFile> sharing_file(const uint8_t* data, int64_t bytes, Dtype dtype) {
  const auto item_bytes = static_cast<uintptr_t>(std::max(info_of(dtype).bits / 8, 1));
  if (bytes == 0 || reinterpret_cast<uintptr_t>(data) % item_bytes != 0) return nullptr;
  return InputFile::find(data, static_cast<size_t>(bytes));
}

}  // namespace

PackedTensor share_or_copy(const uint8_t* data, int64_t bytes, Dtype dtype, std::vector<int64_t> shape,
                           DlpackForm form) {
  check_bytes(bytes, dtype, shape);
  PackedTensor tensor{.dtype = dtype, .shape = std::move(shape), .bytes = bytes};
  const std::shared_ptr<InputFile> file =
      form == DlpackForm::kLegacy ? nullptr : sharing_file(data, bytes, dtype);
  if (file != nullptr) {
    tensor.data = const_cast<uint8_t*>(data);
    tensor.owner = file;
    tensor.read_only = true;
    return tensor;
  }
  tensor.owner = dlpack_memory(bytes);
  tensor.data = static_cast<uint8_t*>(tensor.owner.get());
  if (bytes > 0) std::memcpy(tensor.data, data, static_cast<size_t>(bytes));
  tensor.copied = true;
  return tensor;
}

std::shared_ptr<void> dlpack_memory(int64_t bytes) {
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void* memory = ::operator new(size, kAlignment);
  std::memset(memory, 0, size);
  return {memory, [](void* held) { ::operator delete(held, kAlignment); }};
}

DLManagedTensorVersioned* to_dlpack(PackedTensor tensor) {
  const uint64_t flags = (tensor.read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0) |
                         (tensor.copied ? DLPACK_FLAG_BITMASK_IS_COPIED : 0);
  std::unique_ptr<Given> context = given(std::move(tensor));
  auto* managed = new DLManagedTensorVersioned{.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                               .manager_ctx = context.get(),
                                               .deleter = release<DLManagedTensorVersioned>,
                                               .flags = flags,
                                               .dl_tensor = describe(*context)};
  context.release();
  return managed;
}

DLManagedTensor* to_legacy_dlpack(PackedTensor tensor) {
  if (tensor.read_only) {
    throw Error(ErrorCode::kUnsupported, "A legacy DLPack tensor cannot mark its memory as read-only.");
  }
  std::unique_ptr<Given> context = given(std::move(tensor));
  auto* managed = new DLManagedTensor{
      .dl_tensor = describe(*context), .manager_ctx = context.get(), .deleter = release<DLManagedTensor>};
  context.release();
  return managed;
}

DlpackImport from_dlpack(DLManagedTensorVersioned* managed, int64_t max_repeated_bytes) {
  if (managed->version.major != DLPACK_MAJOR_VERSION) {
    throw Error(ErrorCode::kUnsupported, "The tensor has DLPack version " +
                                             std::to_string(managed->version.major) + "; only version " +
                                             std::to_string(DLPACK_MAJOR_VERSION) + " can be read.");
  }
  return imported(managed, managed->flags, max_repeated_bytes);
}

DlpackImport from_legacy_dlpack(DLManagedTensor* managed, int64_t max_repeated_bytes) {
  return imported(managed, 0, max_repeated_bytes);
}

DlpackCapsule to_capsule(PackedTensor tensor, DlpackForm form) {
  if (form == DlpackForm::kLegacy) return {DLPACK_CAPSULE_LEGACY, to_legacy_dlpack(std::move(tensor))};
  return {DLPACK_CAPSULE_VERSIONED, to_dlpack(std::move(tensor))};
}

void release_capsule(DlpackCapsule& capsule) {
  void* tensor = std::exchange(capsule.tensor, nullptr);
  if (tensor == nullptr) return;
  if (is_versioned(capsule))
    call_deleter<DLManagedTensorVersioned>(tensor);
  else
    call_deleter<DLManagedTensor>(tensor);
}

DlpackImport from_capsule(const DlpackCapsule& capsule, int64_t max_repeated_bytes) {
  if (capsule.tensor == nullptr) {
    throw Error(ErrorCode::kArgument, "The capsule is empty: its tensor was already taken.");
  }
  if (is_versioned(capsule))
    return from_dlpack(static_cast<DLManagedTensorVersioned*>(capsule.tensor), max_repeated_bytes);
  return from_legacy_dlpack(static_cast<DLManagedTensor*>(capsule.tensor), max_repeated_bytes);
}

}  // namespace tilework
