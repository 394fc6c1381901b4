#include "reorder/box_transpose.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "io/checked_math.h"
#include "reorder/cache_sets.h"

namespace tilework {
namespace {

// The loops of a box that make a rectangle: those of a row go on in the source, those of a column in the
// destination.
class RectangleLoops {
 public:
  RectangleLoops(const LoopNest& nest, const NestBox& box) : nest_(nest), box_(box) {
    while (take_next()) {
    }
  }

  const std::vector<size_t>& of_row() const { return row_; }
  const std::vector<size_t>& of_column() const { return column_; }
  bool has(size_t level) const { return is_taken(level); }
  int64_t row_elements() const { return row_elements_; }
  int64_t column_elements() const { return column_elements_; }

 private:
  // A loop that could go on on both sides goes to the shorter one.
  bool take_next() {
    const auto row = std::pair(next(row_, row_elements_, &Node::source_stride), &row_);
    const auto column = std::pair(next(column_, column_elements_, &Node::destination_stride), &column_);
    const bool has_row = row.first.has_value();
    const bool has_column = column.first.has_value();
    if (!has_row && !has_column) return false;
    if (has_row && (!has_column || row_elements_ <= column_elements_)) {
      row_.push_back(*row.first);
      row_elements_ *= box_.passes[*row.first];
    } else {
      column_.push_back(*column.first);
      column_elements_ *= box_.passes[*column.first];
    }
    return true;
  }

  std::optional<size_t> next(const std::vector<size_t>& taken, int64_t elements,
                             int64_t Node::*stride) const {
    // A loop that the box cuts does not go on.
    if (!taken.empty() && box_.passes[taken.back()] < nest_.nodes[taken.back()].count) return std::nullopt;
    for (size_t level = nest_.nodes.size(); level-- > 0;) {
      const Node& node = nest_.nodes[level];
      if (box_.passes[level] > 1 && node.lookup == kNone && node.*stride == elements && !is_taken(level)) {
        return level;
      }
    }
    return std::nullopt;
  }

  bool is_taken(size_t level) const {
    return std::find(row_.begin(), row_.end(), level) != row_.end() ||
           std::find(column_.begin(), column_.end(), level) != column_.end();
  }

  const LoopNest& nest_;
  const NestBox& box_;
  std::vector<size_t> row_;
  std::vector<size_t> column_;
  int64_t row_elements_ = 1;
  int64_t column_elements_ = 1;
};

// What the passes of some loops, nearest first, add on one side.
std::vector<int64_t> places_of(const LoopNest& nest, const NestBox& box, const std::vector<size_t>& levels,
                               int64_t Node::*stride, int64_t element_bytes) {
  std::vector<int64_t> places = {0};
  for (size_t level : levels) {
    const size_t deeper = places.size();
    for (int64_t i = 1; i < box.passes[level]; ++i) {
      for (size_t k = 0; k < deeper; ++k) {
        places.push_back(places[k] + i * (nest.nodes[level].*stride) * element_bytes);
      }
    }
  }
  return places;
}

// By the loops that no rectangle has; false where some of them look up.
bool list_rectangles(const LoopNest& nest, const NestBox& box, const RectangleLoops& loops,
                     int64_t element_bytes, std::vector<BoxTranspose::Rectangle>& rectangles) {
  std::vector<size_t> others;
  for (size_t level = box.passes.size(); level-- > 0;) {
    if (box.passes[level] == 1 || loops.has(level)) continue;
    if (nest.nodes[level].lookup != kNone) return false;
    others.push_back(level);
  }
  const std::vector<int64_t> from = places_of(nest, box, others, &Node::source_stride, element_bytes);
  const std::vector<int64_t> to = places_of(nest, box, others, &Node::destination_stride, element_bytes);
  for (size_t i = 0; i < from.size(); ++i) rectangles.push_back({from[i], to[i]});
  return true;
}

// Places of 4-bit elements in bytes; false where one is inside of a byte.
bool take_bytes(std::vector<int64_t>& places) {
  for (int64_t& place : places) {
    if (place % 2 != 0) return false;
    place /= 2;
  }
  return true;
}

// Lines of runs, which may share some.
std::vector<int64_t> lines_of(const std::vector<int64_t>& places, int64_t run_bytes) {
  std::vector<int64_t> lines;
  for (int64_t place : places) {
    for (int64_t byte = 0; byte < run_bytes; byte += kLineBytes) {
      lines.push_back(floor_div(place + byte, kLineBytes) * kLineBytes);
    }
  }
  return lines;
}

void drop_repeated(std::vector<int64_t>& lines) {
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
}

bool crowd_cache(const std::vector<int64_t>& lines) {
  int64_t used[kSets] = {};
  return std::any_of(lines.begin(), lines.end(), [&used](int64_t line) {
    return ++used[static_cast<size_t>(line / kLineBytes) % kSets] > kFewWays;
  });
}

bool fills_lines(int64_t bytes) {
  return bytes >= kLineBytes && 4 * (ceil_div(bytes, kLineBytes) * kLineBytes - bytes) <= bytes;
}

// The least that an instruction set transposes: 16 bytes one way, 32 the other.
bool fills_registers(int64_t row_bytes, int64_t column_bytes) {
  return std::min(row_bytes, column_bytes) >= 16 && std::max(row_bytes, column_bytes) >= 32;
}

}  // namespace

int64_t BoxTranspose::bytes() const {
  return static_cast<int64_t>(sizeof(BoxTranspose) +
                              (rows.size() + columns.size() + source_lines.size() + destination_lines.size() +
                               packed_rows.size() + odd_columns.size()) *
                                  sizeof(int64_t) +
                              rectangles.size() * sizeof(Rectangle));
}

std::shared_ptr<const BoxTranspose> make_transpose(const LoopNest& nest, const NestBox& box,
                                                   int64_t element_bytes) {
  // Of fewer elements, rectangles cost more to begin than to move.
  constexpr int64_t kFewElements = 32;
  const RectangleLoops loops(nest, box);
  const int64_t row_bytes = loops.row_elements() * element_bytes;
  const int64_t column_bytes = loops.column_elements() * element_bytes;
  if (!fills_registers(row_bytes, column_bytes)) return nullptr;
  if (loops.row_elements() * loops.column_elements() < kFewElements) return nullptr;
  auto made = std::make_shared<BoxTranspose>();
  made->rows = places_of(nest, box, loops.of_column(), &Node::source_stride, element_bytes);
  made->columns = places_of(nest, box, loops.of_row(), &Node::destination_stride, element_bytes);
  made->strip = loops.row_elements();
  made->fills_lines = fills_lines(row_bytes) && column_bytes >= kLineBytes;
  std::vector<int64_t> source_lines = lines_of(made->rows, row_bytes);
  std::vector<int64_t> destination_lines = lines_of(made->columns, column_bytes);
  made->shares_lines = crowd_cache(source_lines) || crowd_cache(destination_lines);
  drop_repeated(source_lines);
  drop_repeated(destination_lines);
  if (crowd_cache(source_lines) || crowd_cache(destination_lines)) {
    made->shares_lines = false;
    made->by_lines = true;
    made->source_lines = std::move(source_lines);
    made->destination_lines = std::move(destination_lines);
  }
  if (!list_rectangles(nest, box, loops, element_bytes, made->rectangles)) return nullptr;
  return made;
}

std::shared_ptr<const BoxTranspose> make_nibble_transpose(const LoopNest& nest, const NestBox& box) {
  constexpr int64_t kFewColumns = 16;
  const RectangleLoops loops(nest, box);
  const int64_t row_bytes = loops.row_elements() / 2;
  const int64_t column_elements = loops.column_elements();
  const bool is_whole = loops.row_elements() % 2 == 0 && column_elements % 2 == 0;
  if (!is_whole || !fills_registers(row_bytes, column_elements / 2)) return nullptr;
  auto made = std::make_shared<BoxTranspose>();
  made->row_bytes = row_bytes;
  made->rows = places_of(nest, box, loops.of_column(), &Node::source_stride, 1);
  std::vector<int64_t> columns = places_of(nest, box, loops.of_row(), &Node::destination_stride, 1);
  if (!take_bytes(made->rows) || !take_bytes(columns)) return nullptr;
  for (size_t i = 0; i < columns.size(); i += 2) {
    made->columns.push_back(columns[i]);
    made->odd_columns.push_back(columns[i + 1]);
  }
  for (int64_t r = 0; r < column_elements / 2; ++r) made->packed_rows.push_back(r * row_bytes);
  made->strip = crowd_cache(lines_of(made->columns, column_elements / 2)) ? kFewColumns : row_bytes;
  if (!list_rectangles(nest, box, loops, 1, made->rectangles)) return nullptr;
  for (BoxTranspose::Rectangle& rectangle : made->rectangles) {
    if (rectangle.source % 2 != 0 || rectangle.destination % 2 != 0) return nullptr;
    rectangle.source /= 2;
    rectangle.destination /= 2;
  }
  return made;
}

}  // namespace tilework
