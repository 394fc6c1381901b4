// Finds runs of tensors with plain headers in a protobuf message: a known type, a shape, a name, and exactly
// the bytes in the file that these need. A model has thousands of them, and a loop over so few ends before a
// JavaScript engine has compiled it. Every other tensor is left to the TypeScript reader, which knows all
// rules and reports what is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io/input_file.h"

namespace tilework {

// Field numbers and types of the format; the caller owns the table of fields.
struct PlainTensorRules {
  // Field number of a tensor in its message.
  uint32_t list = 0;
  // Field numbers inside a tensor.
  uint32_t dims = 0;
  uint32_t data_type = 0;
  uint32_t name = 0;
  uint32_t raw_data = 0;
  uint32_t doc_string = 0;
  uint32_t data_location = 0;
  // Bits of an element, indexed by data_type; 0 for types that are not plain.
  std::span<const uint8_t> element_bits;
  size_t max_axes = 0;
};

struct PlainTensor {
  // Byte offset of the values in the file, and end of the tensor's message.
  int64_t values = 0;
  int64_t end = 0;
  // End of its header in `PlainTensors::headers`; the next header starts there.
  int64_t header_end = 0;
};

struct PlainTensors {
  std::vector<PlainTensor> tensors;
  // All fields of the tensors byte for byte, without their values.
  std::vector<uint8_t> headers;
  // Bytes of all values together.
  int64_t value_bytes = 0;
  // Start of the first field that was not taken; the end of the message if all were.
  int64_t position = 0;
  int64_t bytes_read = 0;
};

// Reads consecutive plain tensors from `start`, the start of a field in a message that ends at `end`. Takes
// at most `max_tensors`, fewer where headers are long. Errors: as InputFile::read_at,
// ERR_FILE_CHANGED.
PlainTensors plain_tensors(const InputFile& file, const PlainTensorRules& rules, int64_t start, int64_t end,
                           size_t max_tensors);

}  // namespace tilework
