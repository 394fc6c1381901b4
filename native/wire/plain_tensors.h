// Runs of tensors in a message of a file whose headers are plain: a known type, a shape, a name, and exactly
// the bytes in the file that these need. A model has thousands of them, and a loop over so few is over before
// a JavaScript engine has compiled it. Whatever is not plain is left to the reader in TypeScript, which knows
// all rules and says what is wrong; so nothing is decided here but that there is nothing to decide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io/input_file.h"

namespace tilework {

// What the format says of them; the caller has the table of its fields.
struct PlainTensorRules {
  // Number of the field of the message that a tensor is.
  uint32_t list = 0;
  // Numbers of a tensor's own fields.
  uint32_t dims = 0;
  uint32_t data_type = 0;
  uint32_t name = 0;
  uint32_t raw_data = 0;
  uint32_t doc_string = 0;
  uint32_t data_location = 0;
  // Bits of an element by data_type; 0 for types that are not plain.
  std::span<const uint8_t> element_bits;
  size_t max_axes = 0;
};

struct PlainTensor {
  // Byte offset of the values in the file, and the end of the tensor's message.
  int64_t values = 0;
  int64_t end = 0;
  // Where its header ends in `PlainTensors::headers`, and the next one begins.
  int64_t header_end = 0;
};

struct PlainTensors {
  std::vector<PlainTensor> tensors;
  // All fields of the tensors as they stand, but their values.
  std::vector<uint8_t> headers;
  // Of all values together.
  int64_t value_bytes = 0;
  // Where the first field begins that was not taken; the end of the message where all were.
  int64_t position = 0;
  int64_t bytes_read = 0;
};

// The plain tensors that stand behind each other from `start` on, where a field of a message begins that ends
// at `end`, inside the file; `most` at most, and fewer where headers are long. Errors: those of
// InputFile::read_at, ERR_FILE_CHANGED.
PlainTensors plain_tensors(const InputFile& file, const PlainTensorRules& rules, int64_t start, int64_t end,
                           size_t most);

}  // namespace tilework
