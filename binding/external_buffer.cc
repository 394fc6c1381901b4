#include "external_buffer.h"

#include <cstring>
#include <string>

#include "environment.h"
#include "error.h"

namespace tilework::binding {
namespace {

// One use of the memory. Versions of Node differ in whether the finalizer of a refused buffer runs at once,
// later or never. So the later of finalizer and creator frees this struct, and the earlier one drops the
// memory.
struct Use {
  std::shared_ptr<void> owner;
  bool finalized = false;
  // Set once the creator knows the outcome.
  bool settled = false;
};

void drop_use(napi_env, void*, void* hint) {
  Use* use = static_cast<Use*>(hint);
  use->owner.reset();
  use->finalized = true;
  if (use->settled) delete use;
}

void refuse(Use* use) {
  use->owner.reset();
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
  throw Error(ErrorCode::kViewTooLarge,
              "A view of " + std::to_string(size) +
                  " bytes is larger than this version of Node allows; ask for smaller ranges.");
}

// Reads by descriptor: a truncated file is then an error and not a signal, and untouched pages cost no
// faults.
napi_value copy_of(Napi::Env env, const InputFile& file, int64_t start, int64_t size) {
  napi_value node_buffer = nullptr;
  void* memory = nullptr;
  // Only the memory of a Buffer comes from Node-API without being zeroed, which would cost as much as the
  // copy. It has its own ArrayBuffer.
  if (napi_create_buffer(env, static_cast<size_t>(size), &memory, &node_buffer) != napi_ok) {
    clear_exception(env);
    throw_too_large(size);
  }
  file.read_at(static_cast<uint8_t*>(memory), start, size);
  file.verify_unchanged();
  napi_value buffer = nullptr;
  if (napi_get_typedarray_info(env, node_buffer, nullptr, nullptr, nullptr, &buffer, nullptr) != napi_ok) {
    throw Napi::Error::New(env);
  }
  return buffer;
}

// Null if the runtime refuses external buffers altogether (Electron's memory cage).
napi_value external_of(Napi::Env env, const std::shared_ptr<void>& owner, uint8_t* data, int64_t size) {
  napi_value buffer = nullptr;
  auto* use = new Use{owner};
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
  const int64_t size = end - start;
  Environment& environment = Environment::of(env);
  if (size >= kCopyBelowBytes && environment.external_buffers) {
    file->verify_unchanged();
    if (const napi_value buffer = external_of(env, file, file->data() + start, size))
      return {Napi::ArrayBuffer(env, buffer), true};
    environment.external_buffers = false;
  }
  return {Napi::ArrayBuffer(env, copy_of(env, *file, start, size)), false};
}

Napi::ArrayBuffer buffer_over(Napi::Env env, const std::shared_ptr<void>& owner, uint8_t* data,
                              int64_t size) {
  Environment& environment = Environment::of(env);
  if (size >= kCopyBelowBytes && environment.external_buffers) {
    if (const napi_value buffer = external_of(env, owner, data, size)) return Napi::ArrayBuffer(env, buffer);
    environment.external_buffers = false;
  }
  napi_value copy = nullptr;
  void* memory = nullptr;
  if (napi_create_arraybuffer(env, static_cast<size_t>(size), &memory, &copy) != napi_ok) {
    clear_exception(env);
    throw_too_large(size);
  }
  if (size > 0) std::memcpy(memory, data, static_cast<size_t>(size));
  return Napi::ArrayBuffer(env, copy);
}

}  // namespace tilework::binding
