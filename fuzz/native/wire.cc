// The scanner of plain tensors against a reader of the whole message that shares no code with it.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "fuzz_input.h"
#include "wire/plain_tensors.h"

namespace tilework::fuzz {
namespace {

constexpr std::array<uint8_t, 6> kElementBits = {0, 32, 8, 4, 2, 128};
constexpr PlainTensorRules kRules{.list = 5,
                                  .dims = 1,
                                  .data_type = 2,
                                  .name = 8,
                                  .raw_data = 9,
                                  .doc_string = 12,
                                  .data_location = 14,
                                  .element_bits = kElementBits,
                                  .max_axes = 3};

using Bytes = std::span<const uint8_t>;
__extension__ typedef unsigned __int128 Wide;

struct Field {
  uint64_t number = 0;
  bool is_length = false;
  uint64_t value = 0;
  size_t start = 0;
  size_t value_start = 0;
  size_t end = 0;
};

std::optional<uint64_t> varint(Bytes bytes, size_t& at) {
  Wide value = 0;
  for (int digit = 0; digit < 10 && at < bytes.size(); ++digit) {
    const uint8_t byte = bytes[at++];
    value |= static_cast<Wide>(byte & 127) << (7 * digit);
    if (byte < 128) return static_cast<uint64_t>(value);
  }
  return std::nullopt;
}

std::optional<Field> field_at(Bytes message, size_t at) {
  Field field;
  field.start = at;
  const auto tag = varint(message, at);
  if (!tag || *tag >> 32 != 0 || *tag < 8) return std::nullopt;
  field.number = *tag >> 3;
  if (*tag % 8 != 0 && *tag % 8 != 2) return std::nullopt;
  field.is_length = *tag % 8 == 2;
  field.value_start = at;
  const auto value = varint(message, at);
  if (!value) return std::nullopt;
  field.value = *value;
  field.end = at;
  if (!field.is_length) return field;
  if (*value > message.size() - at) return std::nullopt;
  field.value_start = at;
  field.end = at + *value;
  return field;
}

struct Expected {
  std::vector<PlainTensor> tensors;
  std::vector<uint8_t> headers;
  size_t position = 0;
};

// Adds the tensor in bytes [field.value_start, field.end) of the message, if it is plain.
bool add_tensor(Bytes message, const Field& tensor, Expected& expected) {
  Wide elements = 1;
  size_t axes = 0;
  uint32_t type = 0;
  std::optional<Field> values;
  std::vector<uint8_t> header;
  for (size_t at = tensor.value_start; at < tensor.end;) {
    const auto field = field_at(message.first(tensor.end), at);
    if (!field) return false;
    at = field->end;
    if (field->is_length && field->number == kRules.raw_data) {
      if (values) return false;
      values = field;
      continue;
    }
    header.insert(header.end(), message.begin() + static_cast<std::ptrdiff_t>(field->start),
                  message.begin() + static_cast<std::ptrdiff_t>(field->end));
    if (field->is_length) {
      if (field->number != kRules.name && field->number != kRules.doc_string) return false;
    } else if (field->number == kRules.dims) {
      // 2^49 - 1 elements are the limit, also where a later extent is zero.
      const uint64_t most = (uint64_t{1} << 49) - 1;
      if (++axes > kRules.max_axes || field->value > most) return false;
      elements *= field->value;
      if (elements > most) return false;
    } else if (field->number == kRules.data_type) {
      type = static_cast<uint32_t>(field->value);
    } else if (field->number != kRules.data_location || static_cast<uint32_t>(field->value) != 0) {
      return false;
    }
  }
  if (!values || type >= kElementBits.size() || kElementBits[type] == 0) return false;
  if ((elements * kElementBits[type] + 7) / 8 != values->end - values->value_start) return false;
  expected.headers.insert(expected.headers.end(), header.begin(), header.end());
  expected.tensors.push_back({static_cast<int64_t>(values->value_start), static_cast<int64_t>(tensor.end),
                              static_cast<int64_t>(expected.headers.size())});
  return true;
}

Expected expected_of(Bytes message, size_t start, size_t max_tensors) {
  Expected expected;
  for (expected.position = start;
       expected.position < message.size() && expected.tensors.size() < max_tensors;) {
    const auto field = field_at(message, expected.position);
    if (!field || !field->is_length || field->number != kRules.list) break;
    if (!add_tensor(message, *field, expected)) break;
    expected.position = field->end;
  }
  return expected;
}

// One file without a name for all cases.
std::shared_ptr<InputFile> file_of(Bytes bytes) {
  static std::FILE* const file = std::tmpfile();
  static const int descriptor = fileno(file);
  const auto size = static_cast<ssize_t>(bytes.size());
  require(pwrite(descriptor, bytes.data(), bytes.size(), 0) == size && ftruncate(descriptor, size) == 0,
          "the temporary file cannot be written");
  return InputFile::open("/dev/fd/" + std::to_string(descriptor), {.mapped = false}, nullptr);
}

void run(FuzzInput& input) {
  const size_t max_tensors = input.one_in(4) ? input() : 1000;
  const size_t before = input.one_in(4) ? input() : 0;
  const size_t behind = input.one_in(4) ? input() : 0;
  const Bytes bytes = input.rest();
  const size_t start = std::min(before, bytes.size());
  const size_t end = bytes.size() - std::min(behind, bytes.size() - start);
  const Expected expected = expected_of(bytes.first(end), start, max_tensors);
  const auto file = file_of(bytes);
  const PlainTensors found =
      plain_tensors(*file, kRules, static_cast<int64_t>(start), static_cast<int64_t>(end), max_tensors);
  require(found.position == static_cast<int64_t>(expected.position), "the position differs");
  require(found.headers == expected.headers, "the headers differ");
  require(found.tensors.size() == expected.tensors.size(), "the number of tensors differs");
  for (size_t i = 0; i < found.tensors.size(); ++i) {
    const PlainTensor& one = found.tensors[i];
    const PlainTensor& other = expected.tensors[i];
    require(one.values == other.values && one.end == other.end && one.header_end == other.header_end,
            "a tensor differs");
  }
}

}  // namespace
}  // namespace tilework::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tilework::fuzz::FuzzInput input(data, size);
  tilework::fuzz::run(input);
  return 0;
}
