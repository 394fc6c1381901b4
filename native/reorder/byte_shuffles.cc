#include "reorder/byte_shuffles.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tilework {
namespace {

constexpr int64_t kGroupBytes = 16;
constexpr size_t kMostWindows = 4;
constexpr uint8_t kElsewhere = 0x80;

class ShuffleList {
 public:
  ShuffleList(const std::vector<int32_t>& destination, const std::vector<int32_t>& source, int64_t size)
      : destination_(destination), source_(source), size_(size) {
    const auto [low, high] = std::minmax_element(source.begin(), source.end());
    first_ = *low * size;
    end_ = (int64_t{*high} + 1) * size;
    // A window is a load, a table and a shuffle; each element alone is a load and a store.
    most_windows_ = std::min(kMostWindows, elements_a_group() / 2);
  }

  ByteShuffles list() {
    const int64_t farthest = std::max({-first_, end_, destination_.back() * size_ + size_});
    if (end_ - first_ < kGroupBytes || farthest > INT32_MAX) return {};
    size_t run = 0;
    for (size_t i = 1; i <= destination_.size(); ++i) {
      if (i < destination_.size() && destination_[i] == destination_[i - 1] + 1) continue;
      if (!add_run(run, i)) return {};
      run = i;
    }
    return pack();
  }

 private:
  struct Window {
    int64_t source;
    std::array<uint8_t, kGroupBytes> places;
  };
  struct Group {
    int64_t destination;
    size_t count;
    std::array<Window, kMostWindows> windows;
  };

  size_t elements_a_group() const { return static_cast<size_t>(kGroupBytes / size_); }

  // The last group of a run overlaps the one before.
  bool add_run(size_t begin, size_t end) {
    const size_t elements = elements_a_group();
    if (end - begin < elements) return false;
    for (size_t i = begin; i < end; i += elements) {
      if (!add_group(std::min(i, end - elements))) return false;
    }
    return true;
  }

  bool add_group(size_t first) {
    Group& group = groups_.emplace_back(Group{destination_[first] * size_, 0, {}});
    std::array<size_t, kGroupBytes> order;
    const size_t elements = elements_a_group();
    for (size_t i = 0; i < elements; ++i) order[i] = i;
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(elements),
              [&](size_t a, size_t b) { return source_[first + a] < source_[first + b]; });
    for (size_t k = 0; k < elements; ++k) {
      const int64_t from = source_[first + order[k]] * size_;
      const bool is_inside =
          group.count > 0 && from + size_ <= group.windows[group.count - 1].source + kGroupBytes;
      if (!is_inside) {
        if (group.count == most_windows_) return false;
        Window& next = group.windows[group.count++];
        next.source = std::min(from, end_ - kGroupBytes);
        next.places.fill(kElsewhere);
      }
      Window& window = group.windows[group.count - 1];
      for (int64_t byte = 0; byte < size_; ++byte) {
        window.places[order[k] * static_cast<size_t>(size_) + static_cast<size_t>(byte)] =
            static_cast<uint8_t>(from + byte - window.source);
      }
    }
    windows_ = std::max(windows_, group.count);
    return true;
  }

  // Groups of fewer windows than others read their last one again.
  ByteShuffles pack() const {
    ByteShuffles packed;
    packed.windows = static_cast<int64_t>(windows_);
    for (const Group& group : groups_) {
      packed.destination.push_back(static_cast<int32_t>(group.destination));
      for (size_t i = 0; i < windows_; ++i) {
        const bool is_own = i < group.count;
        const Window& window = group.windows[is_own ? i : group.count - 1];
        packed.source.push_back(static_cast<int32_t>(window.source));
        if (is_own) {
          packed.places.insert(packed.places.end(), window.places.begin(), window.places.end());
        } else {
          packed.places.insert(packed.places.end(), kGroupBytes, kElsewhere);
        }
      }
    }
    return packed;
  }

  const std::vector<int32_t>& destination_;
  const std::vector<int32_t>& source_;
  int64_t size_;
  // Bytes of the source that elements lie in.
  int64_t first_;
  int64_t end_;
  size_t most_windows_;
  size_t windows_ = 0;
  std::vector<Group> groups_;
};

}  // namespace

ByteShuffles shuffles_of(const std::vector<int32_t>& destination, const std::vector<int32_t>& source,
                         int64_t element_bytes) {
  if (destination.empty() || element_bytes * 2 > kGroupBytes / 2) return {};
  return ShuffleList(destination, source, element_bytes).list();
}

}  // namespace tilework
