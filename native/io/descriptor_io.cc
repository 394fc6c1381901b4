#include "io/descriptor_io.h"

#include <algorithm>
#include <memory>

namespace tilework {
namespace {

constexpr int64_t kCopyBufferBytes = int64_t{1} << 20;

}  // namespace

int64_t copy_fully(const DescriptorEnd& from, const DescriptorEnd& to, int64_t size) {
  int64_t copied = copy_in_kernel(from, to, size);
  if (copied == size) return copied;
  const auto buffer = std::make_unique_for_overwrite<uint8_t[]>(
      static_cast<size_t>(std::min(kCopyBufferBytes, size - copied)));
  while (copied < size) {
    const int64_t chunk = std::min(kCopyBufferBytes, size - copied);
    const int64_t count = read_fully({from.descriptor, from.offset + copied, from.path}, buffer.get(), chunk);
    write_fully({to.descriptor, to.offset + copied, to.path}, buffer.get(), count);
    copied += count;
    if (count < chunk) break;
  }
  return copied;
}

}  // namespace tilework
