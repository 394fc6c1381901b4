// Exposes memory of the addon as ArrayBuffers without a copy, where the runtime allows it.
#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>

#include "io/input_file.h"

namespace tilework::binding {

// Below this size a copy is cheaper than an external buffer and its finalizer.
inline constexpr int64_t kCopyBelowBytes = 4096;

struct BufferView {
  Napi::ArrayBuffer buffer;
  // Whether the buffer is the memory of the mapping.
  bool external = false;
};

// Bytes [start, end) of a mapped file. Errors: ERR_VIEW_TOO_LARGE, ERR_FILE_CHANGED, a system error.
BufferView view_of(Napi::Env env, const std::shared_ptr<InputFile>& file, int64_t start, int64_t end);

// Memory owned by `owner` as an ArrayBuffer; a copy where that is cheaper or the runtime refuses external
// buffers. Errors: ERR_VIEW_TOO_LARGE.
Napi::ArrayBuffer buffer_over(Napi::Env env, const std::shared_ptr<void>& owner, uint8_t* data, int64_t size);

}  // namespace tilework::binding
