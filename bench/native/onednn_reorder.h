// A oneDNN reorder between two format tags, on buffers of the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tilework::bench {

class OnednnReorder {
 public:
  // `dtype` is "f32", "f16", "bf16", "u8" or "s8"; a tag is one that dnnl_fmt_tag2str() prints, for example
  // "aBcd16b". Null where oneDNN has no such tag, type or reorder.
  static std::unique_ptr<OnednnReorder> create(const std::string& dtype, const std::vector<int64_t>& shape,
                                               const std::string& from_tag, const std::string& to_tag,
                                               const uint8_t* source, uint8_t* destination);
  virtual ~OnednnReorder() = default;

  // Bytes of the destination, padding included.
  virtual size_t destination_bytes() const = 0;
  // The library's own name of its kernel.
  virtual std::string kernel() const = 0;
  // Runs on the number of threads that OpenMP had when the reorder was created.
  virtual void run() = 0;
};

// For example "3.2.0".
std::string onednn_version();

}  // namespace tilework::bench
