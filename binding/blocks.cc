#include "blocks.h"

#include <algorithm>

#include "arguments.h"
#include "blocks/block_type.h"
#include "blocks/dequantize.h"
#include "blocks/quantize.h"
#include "dtype/dtypes.h"
#include "environment.h"
#include "error.h"
#include "io/checked_math.h"
#include "policy/stores.h"

namespace tilework::binding {
namespace {

const BlockTypeInfo& block_type(const Napi::Value& value) {
  const std::string name = string(value, "type");
  const std::optional<BlockType> type = block_type_named(name);
  if (!type) throw Error(ErrorCode::kDtype, "'type' is " + name + ", which is no block type.");
  return info_of(*type);
}

// Number of blocks in `bytes`. Errors: ERR_ARGUMENT unless they are whole.
int64_t blocks_in(const Bytes& bytes, const BlockTypeInfo& type) {
  const auto size = static_cast<int64_t>(bytes.size);
  if (size % type.bytes == 0) return size / type.bytes;
  throw Error(ErrorCode::kArgument, "'blocks' has " + std::to_string(size) + " bytes; a block of " +
                                        type.name + " has " + std::to_string(type.bytes) + ".");
}

void check_numbers(const Bytes& numbers, int64_t elements, int64_t element_bytes, const char* name) {
  const int64_t needed = checked_mul(elements, element_bytes, "The size of the numbers");
  if (static_cast<int64_t>(numbers.size) == needed) return;
  throw Error(ErrorCode::kArgument, "'" + std::string(name) + "' has " + std::to_string(numbers.size) +
                                        " bytes; " + std::to_string(needed) + " are needed.");
}

// Elements that a thread computes at a time: 256 KiB of float32, so that taking turns costs nothing.
constexpr int64_t kPartElements = 65536;
static_assert(kPartElements % kMaxBlockElements == 0);

}  // namespace

Napi::Value decode_blocks(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    const BlockTypeInfo& type = block_type(info[0]);
    const Bytes blocks = bytes_during_call(info[1], "blocks");
    const Dtype to = dtype_of(string(info[2], "dtype"));
    const Bytes target = bytes_during_call(info[3], "target");
    const int64_t count = blocks_in(blocks, type);
    check_numbers(target, checked_mul(count, type.elements, "The number of elements"), info_of(to).bits / 8,
                  "target");
    ThreadPool& pool = Environment::of(info.Env()).pools().compute;
    const Stores stores = choose_stores(whole_number(info[4], "resultBytes"), pool.threads());
    const int64_t in_part = kPartElements / type.elements;
    const int64_t number_bytes = info_of(to).bits / 8;
    pool.run(ceil_div(count, in_part), [&](int64_t part) {
      const int64_t first = part * in_part;
      dequantize_blocks(type.type, blocks.data + first * type.bytes, std::min(in_part, count - first), to,
                        target.data + first * type.elements * number_bytes, stores);
    });
    return info.Env().Undefined();
  });
}

Napi::Value encode_blocks(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const BlockTypeInfo& type = block_type(info[0]);
    const Bytes numbers = bytes_during_call(info[1], "numbers");
    const Bytes blocks = bytes_during_call(info[2], "blocks");
    const int64_t count = blocks_in(blocks, type);
    check_numbers(numbers, checked_mul(count, type.elements, "The number of elements"), sizeof(float),
                  "numbers");
    const int64_t bad =
        quantize_to_blocks(type.type, reinterpret_cast<const float*>(numbers.data), count, blocks.data);
    return Napi::Number::New(info.Env(), static_cast<double>(bad));
  });
}

Napi::Value block_kernel(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    return Napi::String::New(info.Env(), dequantize_kernel_name(block_type(info[0]).type));
  });
}

}  // namespace tilework::binding
