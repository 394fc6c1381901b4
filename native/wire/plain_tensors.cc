#include "wire/plain_tensors.h"

#include <optional>

#include "io/checked_math.h"
#include "wire/wire_window.h"

namespace tilework {
namespace {

// A longer header is rare, and would be memory that one call takes at once.
constexpr int64_t kMaxHeaderBytes = 64 * 1024;
constexpr size_t kMaxRunHeaderBytes = 1024 * 1024;

// With at most this many elements of any type the number of bytes stays below 2^53.
constexpr int64_t kMaxElements = kMaxSafeInteger / 16;

// Reads tensors one by one. What it has read of a tensor that is not plain is dropped.
class PlainTensorReader {
 public:
  PlainTensorReader(const InputFile& file, const PlainTensorRules& rules) : window_(file), rules_(rules) {}

  // False if the field at the position is not a plain tensor.
  bool take_next(PlainTensors& found, int64_t end) {
    const std::optional<WireField> field = window_.field(found.position, end);
    if (!field || field->number != rules_.list || field->type != WireType::kLength) return false;
    const size_t kept = found.headers.size();
    if (!take_fields(found.headers, field->value_start, field->end)) {
      found.headers.resize(kept);
      return false;
    }
    found.tensors.push_back({values_->value_start, field->end, static_cast<int64_t>(found.headers.size())});
    found.value_bytes += values_->end - values_->value_start;
    found.position = field->end;
    return true;
  }

  int64_t bytes_read() const { return window_.bytes_read(); }

 private:
  bool take_fields(std::vector<uint8_t>& headers, int64_t start, int64_t end) {
    elements_ = 1;
    axes_ = 0;
    data_type_ = 0;
    values_.reset();
    const size_t first = headers.size();
    for (int64_t position = start; position < end;) {
      const std::optional<WireField> field = window_.field(position, end);
      if (!field || !take_field(*field)) return false;
      position = field->end;
      if (field->number == rules_.raw_data) continue;
      const int64_t length = field->end - field->start;
      if (length > kMaxHeaderBytes - static_cast<int64_t>(headers.size() - first)) return false;
      const uint8_t* const bytes = window_.bytes(field->start, field->end);
      headers.insert(headers.end(), bytes, bytes + length);
    }
    return has_its_values();
  }

  bool take_field(const WireField& field) {
    if (field.type == WireType::kLength) {
      if (field.number != rules_.raw_data) {
        return field.number == rules_.name || field.number == rules_.doc_string;
      }
      // Repeated values: protobuf takes the last one, and the others deserve a finding.
      if (values_) return false;
      values_ = field;
      return true;
    }
    if (field.number == rules_.dims) return take_extent(field.value);
    // An int32 is the low 32 bits of its varint.
    if (field.number == rules_.data_type)
      data_type_ = static_cast<uint32_t>(field.value);
    else
      return field.number == rules_.data_location && static_cast<uint32_t>(field.value) == 0;
    return true;
  }

  bool take_extent(uint64_t extent) {
    if (++axes_ > rules_.max_axes || extent > static_cast<uint64_t>(kMaxElements)) return false;
    const bool overflows = __builtin_mul_overflow(elements_, static_cast<int64_t>(extent), &elements_);
    return !overflows && elements_ <= kMaxElements;
  }

  bool has_its_values() const {
    if (!values_ || data_type_ >= rules_.element_bits.size()) return false;
    const int64_t bits = rules_.element_bits[data_type_];
    // At most 2^49 elements of at most 255 bits.
    return bits > 0 && ceil_div(elements_ * bits, 8) == values_->end - values_->value_start;
  }

  WireWindow window_;
  const PlainTensorRules& rules_;
  int64_t elements_ = 1;
  size_t axes_ = 0;
  uint32_t data_type_ = 0;
  std::optional<WireField> values_;
};

}  // namespace

PlainTensors plain_tensors(const InputFile& file, const PlainTensorRules& rules, int64_t start, int64_t end,
                           size_t max_tensors) {
  PlainTensors found;
  found.position = start;
  PlainTensorReader reader(file, rules);
  while (found.position < end && found.tensors.size() < max_tensors &&
         found.headers.size() < kMaxRunHeaderBytes) {
    if (!reader.take_next(found, end)) break;
  }
  found.bytes_read = reader.bytes_read();
  file.verify_unchanged();
  return found;
}

}  // namespace tilework
