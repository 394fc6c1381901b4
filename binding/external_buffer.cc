#include "external_buffer.h"

#include <cstring>
#include <string>

#include "environment.h"
#include "error.h"

namespace tilework::binding {
namespace {

// One use of the mapping. Versions of Node differ in whether the finalizer of a refused buffer runs at once,
// later or never, so whoever comes second, the finalizer or the creator, frees the few bytes; the mapping is
// dropped by the first.
struct Use {
  std::shared_ptr<InputFile> file;
  bool finalized = false;
  // The creator has seen how it went.
  bool settled = false;
};

void drop_use(napi_env, void*, void* hint) {
  Use* use = static_cast<Use*>(hint);
  use->file.reset();
  use->finalized = true;
  if (use->settled) delete use;
}

void refuse(Use* use) {
  use->file.reset();
  use->settled = true;
  if (use->finalized) delete use;
}

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
napi_value external_of(Napi::Env env, const std::shared_ptr<InputFile>& file, uint8_t* data, int64_t size) {
  napi_value buffer = nullptr;
  auto* use = new Use{file};
  const napi_status status =
      napi_create_external_arraybuffer(env, data, static_cast<size_t>(size), drop_use, use, &buffer);
  if (status == napi_ok) {
    use->settled = true;
    return buffer;
  }
  clear_exception(env);
  if (status == napi_no_external_buffers_allowed) {
    delete use;
    return nullptr;
  }
  refuse(use);
  throw_too_large(size);
}

}  // namespace

BufferView view_of(Napi::Env env, const std::shared_ptr<InputFile>& file, int64_t start, int64_t end) {
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
