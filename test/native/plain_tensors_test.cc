#include "wire/plain_tensors.h"

#include <array>
#include <cstdlib>
#include <random>
#include <string>

#include "check.h"
#include "temporary_folder.h"

namespace tilework::test {
namespace {

using Text = std::string;

constexpr std::array<uint8_t, 5> kElementBits = {0, 32, 8, 4, 2};
constexpr PlainTensorRules kRules{.list = 5,
                                  .dims = 1,
                                  .data_type = 2,
                                  .name = 8,
                                  .raw_data = 9,
                                  .doc_string = 12,
                                  .data_location = 14,
                                  .element_bits = kElementBits,
                                  .max_axes = 3};

Text varint(uint64_t value) {
  Text bytes;
  for (; value >= 128; value >>= 7) bytes.push_back(static_cast<char>((value & 0x7f) | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

Text number(uint32_t field, uint64_t value) { return varint(uint64_t{field} << 3) + varint(value); }

Text text(uint32_t field, const Text& value) {
  return varint((uint64_t{field} << 3) | 2) + varint(value.size()) + value;
}

Text tensor(const Text& name, uint64_t extent, uint32_t type, size_t bytes) {
  return number(1, extent) + number(2, type) + text(8, name) + text(9, Text(bytes, 'v'));
}

std::shared_ptr<InputFile> file_of(const TemporaryFolder& folder, const Text& bytes) {
  return InputFile::open(folder.write("message", bytes), {.mapped = false}, nullptr);
}

PlainTensors find(const TemporaryFolder& folder, const Text& bytes, size_t most = 1000) {
  const auto file = file_of(folder, bytes);
  return plain_tensors(*file, kRules, 0, file->size(), most);
}

size_t count_of(const TemporaryFolder& folder, const Text& tensor_bytes) {
  return find(folder, text(5, tensor_bytes)).tensors.size();
}

void test_plain(const TemporaryFolder& folder) {
  const Text first = tensor("a", 3, 1, 12);
  const Text second = number(14, 0) + text(12, "said") + tensor("b", 5, 3, 3);
  const Text message = text(5, first) + text(5, second) + number(1, 7) + text(5, first);
  const PlainTensors found = find(folder, message);
  CHECK(found.tensors.size() == 2);
  CHECK(found.position == static_cast<int64_t>(text(5, first).size() + text(5, second).size()));
  CHECK(found.value_bytes == 15);
  CHECK(found.tensors[0].end == static_cast<int64_t>(text(5, first).size()));
  CHECK(found.tensors[0].values == found.tensors[0].end - 12);
  CHECK(found.tensors[1].values == found.position - 3);
  const Text first_header = number(1, 3) + number(2, 1) + text(8, "a");
  const Text second_header = number(14, 0) + text(12, "said") + number(1, 5) + number(2, 3) + text(8, "b");
  CHECK(Text(found.headers.begin(), found.headers.end()) == first_header + second_header);
  CHECK(found.tensors[0].header_end == static_cast<int64_t>(first_header.size()));
  CHECK(find(folder, message, 1).tensors.size() == 1);
  CHECK(find(folder, message, 0).position == 0);
  CHECK(find(folder, "").tensors.empty());
}

// Tensors that need the full reader are not plain.
void test_what_is_not_plain(const TemporaryFolder& folder) {
  const Text name = text(8, "x");
  const Text values = text(9, "vvvv");
  CHECK(count_of(folder, number(2, 1) + name + values) == 1);
  CHECK(count_of(folder, number(2, 1) + values + name) == 1);
  CHECK(count_of(folder, "") == 0);
  CHECK(count_of(folder, name + values) == 0);
  CHECK(count_of(folder, number(2, 1) + name) == 0);
  CHECK(count_of(folder, number(2, 5) + name + values) == 0);
  CHECK(count_of(folder, number(2, 1) + name + values + values) == 0);
  CHECK(count_of(folder, number(2, 1) + name + text(9, "vvv")) == 0);
  CHECK(count_of(folder, number(2, 1) + name + text(9, "vvvvv")) == 0);
  CHECK(count_of(folder, text(1, number(0, 1)) + number(2, 1) + name + values) == 0);
  CHECK(count_of(folder, number(1, 1) + number(1, 1) + number(1, 1) + number(2, 1) + values) == 1);
  CHECK(count_of(folder, number(1, 1) + number(1, 1) + number(1, 1) + number(1, 1) + number(2, 1) + values) ==
        0);
  CHECK(count_of(folder, number(14, 1) + number(2, 1) + values) == 0);
  CHECK(count_of(folder, number(14, uint64_t{1} << 32) + number(2, 1) + values) == 1);
  CHECK(count_of(folder, number(2, 1) + text(13, "k") + values) == 0);
  CHECK(count_of(folder, number(2, 1) + number(99, 1) + values) == 0);
  CHECK(count_of(folder, number(2, 1) + text(16, "m") + values) == 0);
  // Negative extents, and products that wrap around to a size that would fit.
  CHECK(count_of(folder, tensor("x", ~uint64_t{0}, 2, 1)) == 0);
  const Text wide = number(1, uint64_t{1} << 32);
  CHECK(count_of(folder, wide + wide + number(2, 2) + text(9, "")) == 0);
  CHECK(count_of(folder, number(1, uint64_t{1} << 62) + number(2, 3) + text(9, "")) == 0);
  CHECK(count_of(folder, tensor("x", 0, 1, 0)) == 1);
  // Names and texts longer than a run can hold.
  CHECK(count_of(folder, tensor(Text(60000, 'n'), 4, 2, 4)) == 1);
  CHECK(count_of(folder, tensor(Text(70000, 'n'), 4, 2, 4)) == 0);
}

void test_broken_wire(const TemporaryFolder& folder) {
  const Text whole = text(5, tensor("x", 3, 1, 12));
  for (size_t size = 0; size < whole.size(); ++size)
    CHECK(find(folder, whole.substr(0, size)).tensors.empty());
  CHECK(find(folder, varint(0) + whole).tensors.empty());
  CHECK(find(folder, Text(11, '\x80') + whole).tensors.empty());
  CHECK(find(folder, varint((5 << 3) | 2) + varint(~uint64_t{0})).tensors.empty());
  CHECK(find(folder, varint((5 << 3) | 3) + varint(1)).tensors.empty());
  // The inner message claims to end behind the outer one.
  const Text beyond = number(1, 3) + number(2, 1) + varint((9 << 3) | 2) + varint(12) + "vvv";
  CHECK(find(folder, text(5, beyond) + Text(20, 'v')).tensors.empty());
}

// Windows skip payloads, grow over small tensors and stop at the end of the file.
void test_windows(const TemporaryFolder& folder) {
  Text message;
  const std::array<size_t, 6> sizes = {1, 30, 513, 2, 7, 3000};
  for (size_t at = 0; at < 3000; ++at) {
    const size_t bytes = at % 500 == 0 ? 100000 : sizes[at % sizes.size()];
    message += text(5, tensor("t" + std::to_string(at), bytes, 2, bytes));
  }
  const auto file = file_of(folder, message);
  size_t count = 0;
  int64_t position = 0;
  while (position < file->size()) {
    const PlainTensors found = plain_tensors(*file, kRules, position, file->size(), 700);
    if (found.tensors.empty()) break;
    for (const PlainTensor& each : found.tensors) {
      uint8_t last = 0;
      if (each.end > each.values) {
        file->read_at(&last, each.end - 1, 1);
        CHECK(last == 'v');
      }
    }
    count += found.tensors.size();
    position = found.position;
  }
  CHECK(count == 3000);
  CHECK(position == file->size());
}

void test_changed_file(const TemporaryFolder& folder) {
  const Text message = text(5, tensor("x", 3000, 2, 3000)) + text(5, tensor("y", 3, 2, 3));
  const auto file = file_of(folder, message);
  folder.write("message", message.substr(0, 20));
  CHECK(code_of([&] { plain_tensors(*file, kRules, 0, file->size(), 10); }) == "ERR_FILE_CHANGED");
}

void test_random_changes(const TemporaryFolder& folder, int rounds) {
  std::mt19937 random(20261122);
  const auto below = [&random](size_t end) { return static_cast<size_t>(random() % end); };
  size_t taken = 0;
  for (int round = 0; round < rounds; ++round) {
    Text message;
    for (size_t at = 0; at < 8; ++at) {
      const size_t bytes = below(40);
      message += text(5, tensor("t", bytes, 2, bytes));
    }
    for (size_t change = below(3); change > 0; --change) {
      const size_t at = below(message.size());
      if (below(3) == 0)
        message.erase(at, 1 + below(4));
      else
        message[at] = static_cast<char>(below(2) == 0 ? random() : 0x7f + below(3));
    }
    const auto file = file_of(folder, message);
    const PlainTensors found = plain_tensors(*file, kRules, 0, file->size(), 100);
    taken += found.tensors.size();
    int64_t last_end = 0;
    int64_t last_header = 0;
    int64_t value_bytes = 0;
    for (const PlainTensor& each : found.tensors) {
      CHECK(last_end < each.values && each.values <= each.end && each.end <= file->size());
      CHECK(last_header <= each.header_end);
      value_bytes += each.end - each.values;
      last_end = each.end;
      last_header = each.header_end;
    }
    CHECK(last_end == found.position);
    CHECK(last_header == static_cast<int64_t>(found.headers.size()));
    CHECK(found.value_bytes <= value_bytes);
  }
  CHECK(taken > static_cast<size_t>(rounds));
  CHECK(taken < 8 * static_cast<size_t>(rounds));
}

}  // namespace
}  // namespace tilework::test

int main(int count, char** arguments) {
  using namespace tilework::test;
  const TemporaryFolder folder;
  test_plain(folder);
  test_what_is_not_plain(folder);
  test_broken_wire(folder);
  test_windows(folder);
  test_changed_file(folder);
  test_random_changes(folder, count > 1 ? std::atoi(arguments[1]) : 3000);
  return result();
}
