// Reads the protobuf wire format of an open file field by field, through a window that is read by descriptor.
// Every offset and length is checked against the message before it is used.
//
// Source: "Encoding" in the Protocol Buffers documentation. Ten bytes per varint and the low 32 bits of a tag
// are what its runtimes accept.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "io/input_file.h"

namespace tilework {

// Encoding of a field's value; this reader needs no others.
enum class WireType : uint8_t { kVarint = 0, kLength = 2 };

// Largest field number.
inline constexpr uint32_t kMaxFieldNumber = (uint32_t{1} << 29) - 1;

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  // Value of a varint.
  uint64_t value = 0;
  // Byte offsets of the tag, of the value, and of its end.
  int64_t start = 0;
  int64_t value_start = 0;
  int64_t end = 0;
};

class WireWindow {
 public:
  // The file must outlive the window.
  explicit WireWindow(const InputFile& file) : file_(file) {}

  // Reads the field at `position` of a message that ends at `end`. Of a length-delimited value only the
  // length is read. None if these bytes are not a field or have another wire type. Errors: those of
  // InputFile::read_at.
  std::optional<WireField> field(int64_t position, int64_t end);

  // Bytes [start, end) of the file; valid until the next call. Errors: as InputFile::read_at.
  const uint8_t* bytes(int64_t start, int64_t end);

  int64_t bytes_read() const { return bytes_read_; }

 private:
  void move(int64_t start, int64_t min_bytes);

  const InputFile& file_;
  std::vector<uint8_t> window_;
  int64_t start_ = 0;
  int64_t next_bytes_ = 0;
  int64_t bytes_read_ = 0;
};

}  // namespace tilework
