// The wire of protobuf in an open file: fields of messages, one after the other, through a window that is
// read by descriptor and moves on. Every offset and length is checked against the message before it is used.
//
// Source: "Encoding" in the documentation of Protocol Buffers; ten bytes a varint and the low 32 bits of a
// tag are what its runtimes take.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "io/input_file.h"

namespace tilework {

// How the value of a field is written; the others are of no use to who reads here.
enum class WireType : uint8_t { kVarint = 0, kLength = 2 };

// Numbers of fields end here.
inline constexpr uint32_t kMaxFieldNumber = (uint32_t{1} << 29) - 1;

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  // Of a varint.
  uint64_t value = 0;
  // Byte offsets of the tag, the value and the end of it.
  int64_t start = 0;
  int64_t value_start = 0;
  int64_t end = 0;
};

class WireWindow {
 public:
  // The file outlives it.
  explicit WireWindow(const InputFile& file) : file_(file) {}

  // The field at `position` of a message that ends at `end`, inside the file; of a value with a length only
  // that is read. None where these bytes are no field, or one of another wire type. Errors: those of
  // InputFile::read_at.
  std::optional<WireField> field(int64_t position, int64_t end);

  // Bytes [start, end) of the file until the next call. Errors: those of InputFile::read_at.
  const uint8_t* bytes(int64_t start, int64_t end);

  int64_t bytes_read() const { return bytes_read_; }

 private:
  void move(int64_t start, int64_t least);

  const InputFile& file_;
  std::vector<uint8_t> window_;
  int64_t start_ = 0;
  int64_t next_bytes_ = 0;
  int64_t bytes_read_ = 0;
};

}  // namespace tilework
