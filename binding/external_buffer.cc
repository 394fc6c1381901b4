#include "external_buffer.h"

#include <cstring>
#include <string>

#include "environment.h"
#include "error.h"

namespace tilework::binding {
namespace {

// What a buffer's finalizer gets: one use of the mapping.
struct Use {
  std::shared_ptr<MappedFile> file;
};

void drop_use(napi_env, void*, void* hint) { delete static_cast<Use*>(hint); }

void clear_exception(napi_env env) {
  bool pending = false;
  napi_value ignored = nullptr;
  if (napi_is_exception_pending(env, &pending) == napi_ok && pending)
    napi_get_and_clear_last_exception(env, &ignored);
}

[[noreturn]] void throw_too_large(int64_t size) {
  throw Error("ERR_VIEW_TOO_LARGE",
              "A view of " + std::to_string(size) +
                  " bytes is larger than this version of Node allows; ask for smaller ranges.");
}

napi_value copy_of(Napi::Env env, const uint8_t* data, int64_t size) {
  napi_value buffer = nullptr;
  void* memory = nullptr;
  if (napi_create_arraybuffer(env, static_cast<size_t>(size), &memory, &buffer) != napi_ok) {
    clear_exception(env);
    throw_too_large(size);
  }
  if (size > 0) std::memcpy(memory, data, static_cast<size_t>(size));
  return buffer;
}

// Null where the runtime refuses external buffers altogether (Electron's memory cage).
napi_value external_of(Napi::Env env, const std::shared_ptr<MappedFile>& file, uint8_t* data, int64_t size) {
  napi_value buffer = nullptr;
  auto* use = new Use{file};
  const napi_status status =
      napi_create_external_arraybuffer(env, data, static_cast<size_t>(size), drop_use, use, &buffer);
  if (status == napi_ok) return buffer;
  if (status == napi_no_external_buffers_allowed) {
    delete use;
    return nullptr;
  }
  clear_exception(env);
  // Some versions of Node call the finalizer of a refused buffer and some do not, so the few bytes of `use`
  // may stay behind. It must hold nothing by then.
  use->file.reset();
  throw_too_large(size);
}

}  // namespace

BufferView view_of(Napi::Env env, const std::shared_ptr<MappedFile>& file, int64_t start, int64_t end) {
  uint8_t* data = file->data() + start;
  const int64_t size = end - start;
  Environment& environment = Environment::of(env);
  if (size >= kCopyBelowBytes && environment.external_buffers) {
    if (const napi_value buffer = external_of(env, file, data, size))
      return {Napi::ArrayBuffer(env, buffer), true};
    environment.external_buffers = false;
  }
  return {Napi::ArrayBuffer(env, copy_of(env, data, size)), false};
}

}  // namespace tilework::binding
