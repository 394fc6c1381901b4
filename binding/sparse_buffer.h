// The JavaScript class of sparse buffers: the source of a plan whose bytes arrive range by range.
#pragma once

#include <napi.h>

#include <atomic>
#include <memory>
#include <utility>

#include "memory/sparse_buffer.h"

namespace tilework::binding {

// A buffer and the number of runs that read it.
struct SharedSparseBuffer {
  explicit SharedSparseBuffer(int64_t size) : buffer(size) {}

  // Counts as one reader for its lifetime.
  class Use {
   public:
    Use() = default;
    explicit Use(std::shared_ptr<SharedSparseBuffer> shared) : shared_(std::move(shared)) {
      ++shared_->readers;
    }
    Use(Use&& other) noexcept = default;
    Use& operator=(Use&& other) noexcept {
      std::swap(shared_, other.shared_);
      return *this;
    }
    ~Use() {
      if (shared_ != nullptr) --shared_->readers;
    }

   private:
    std::shared_ptr<SharedSparseBuffer> shared_;
  };

  SparseBuffer buffer;
  std::atomic<int> readers{0};
};

class SparseBufferObject : public Napi::ObjectWrap<SparseBufferObject> {
 public:
  static Napi::Function define(Napi::Env env);
  // createSparseBuffer(byteLength)
  static Napi::Value create(const Napi::CallbackInfo& info);
  // The buffer of an argument; null for any other value.
  static std::shared_ptr<SharedSparseBuffer> buffer_of(const Napi::Value& value);

  explicit SparseBufferObject(const Napi::CallbackInfo& info);

 private:
  Napi::Value fill(const Napi::CallbackInfo& info);
  Napi::Value clear(const Napi::CallbackInfo& info);

  SparseBuffer& unread() const;

  std::shared_ptr<SharedSparseBuffer> shared_;
};

}  // namespace tilework::binding
