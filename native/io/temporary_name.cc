#include "io/temporary_name.h"

#include <algorithm>
#include <cstdint>

namespace tilework {
namespace {

constexpr char kSuffix[] = ".tilework-tmp";
// The leading dot, then a dot with two digits, then the suffix.
constexpr size_t kAroundStem = 1 + 3 + sizeof(kSuffix) - 1;
constexpr size_t kHashDigits = 16;

// FNV-1a in hexadecimal digits.
std::string hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : text) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  std::string digits;
  for (size_t i = 0; i < kHashDigits; ++i) digits += "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
  return digits;
}

}  // namespace

std::string temporary_stem(const std::string& target, size_t max_bytes) {
  if (target.size() + kAroundStem <= max_bytes) return target;
  const size_t around = kAroundStem + 1 + kHashDigits;
  size_t length = max_bytes > around ? std::min(max_bytes - around, target.size()) : 0;
  // Some file systems refuse names that end inside a UTF-8 character.
  while (length > 0 && (static_cast<uint8_t>(target[length]) & 0xC0) == 0x80) --length;
  return target.substr(0, length) + "." + hash_of(target);
}

std::string temporary_name(const std::string& stem, int number) {
  const std::string digits = number == 0 ? "" : "." + std::to_string(number);
  return "." + stem + digits + kSuffix;
}

std::vector<std::string> all_temporary_names(const std::string& stem) {
  std::vector<std::string> all;
  for (int number = 0; number < kMaxTemporaryNames; ++number) all.push_back(temporary_name(stem, number));
  return all;
}

}  // namespace tilework
