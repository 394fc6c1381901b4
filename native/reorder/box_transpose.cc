#include "reorder/box_transpose.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "io/checked_math.h"
#include "reorder/cache_sets.h"

namespace tilework {
namespace {

// What the passes of a loop of the box add to the places of an element, in the order of the destination; or
// those of all loops of a variable that the box has all of, without the passes that have no source.
struct Steps {
  std::vector<int64_t> source;
  std::vector<int64_t> destination;
  // What the first of them adds.
  int64_t first_source = 0;
  int64_t first_destination = 0;
  // Whether boxes have a part of the loop, so that no other goes on where it ends.
  bool is_cut = false;
  bool looks_up = false;

  int64_t count() const { return static_cast<int64_t>(source.size()); }
};

// Whether each place is `stride` behind the one before.
bool is_regular(const std::vector<int64_t>& places, int64_t stride) {
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] != static_cast<int64_t>(i) * stride) return false;
  }
  return true;
}

// By loops that are nearer in the destination first.
class BoxSteps {
 public:
  BoxSteps(const LoopNest& nest, const NestBox& box) : nest_(nest), box_(box) {
    for (size_t level = nest.nodes.size(); level-- > 0;) {
      const Node& node = nest.nodes[level];
      if (node.variable != kNone && has_holes(node.variable)) {
        add_variable(node.variable);
      } else if (box.passes[level] > 1) {
        add_loop(level);
      }
    }
  }

  const std::vector<Steps>& all() const { return all_; }
  // Whether any element has a source.
  bool has_elements() const { return has_elements_; }

 private:
  // Loops that have no holes in any box are better taken one by one.
  bool has_holes(int variable) const {
    if (!has_all_of(nest_, box_, variable)) return false;
    int64_t most = 0;
    for (const Node& node : nest_.nodes) {
      if (node.variable == variable) most += (node.count - 1) * node.weight;
    }
    return !is_moved(variable, 0) || !is_moved(variable, most);
  }

  bool is_moved(int variable, int64_t index) const {
    const Variable& of = nest_.variables[static_cast<size_t>(variable)];
    return index >= std::max(of.write_lo, of.valid_lo) && index < std::min(of.write_hi, of.valid_hi);
  }

  void add_loop(size_t level) {
    const Node& node = nest_.nodes[level];
    Steps steps;
    steps.is_cut = box_.passes[level] < node.count;
    steps.looks_up = node.lookup != kNone;
    for (int64_t i = 0; i < box_.passes[level]; ++i) {
      steps.source.push_back(i * node.source_stride);
      steps.destination.push_back(i * node.destination_stride);
    }
    all_.push_back(std::move(steps));
  }

  void add_variable(int variable) {
    const bool is_added = std::find(added_.begin(), added_.end(), variable) != added_.end();
    if (is_added) return;
    added_.push_back(variable);
    Steps steps;
    walk(variable, 0, 0, {0, 0}, steps);
    if (steps.source.empty()) {
      has_elements_ = false;
      return;
    }
    steps.first_source = steps.source.front();
    steps.first_destination = steps.destination.front();
    for (int64_t& place : steps.source) place -= steps.first_source;
    for (int64_t& place : steps.destination) place -= steps.first_destination;
    all_.push_back(std::move(steps));
  }

  // The passes of the variable's loops from `level` on.
  void walk(int variable, size_t level, int64_t index, BoxTranspose::Rectangle at, Steps& steps) const {
    if (level == nest_.nodes.size()) {
      if (!is_moved(variable, index)) return;
      steps.source.push_back(at.source);
      steps.destination.push_back(at.destination);
      return;
    }
    const Node& node = nest_.nodes[level];
    if (node.variable != variable) return walk(variable, level + 1, index, at, steps);
    steps.looks_up = steps.looks_up || node.lookup != kNone;
    for (int64_t i = 0; i < node.count; ++i) {
      walk(variable, level + 1, index + i * node.weight,
           {at.source + i * node.source_stride, at.destination + i * node.destination_stride}, steps);
    }
  }

  const LoopNest& nest_;
  const NestBox& box_;
  std::vector<int> added_;
  std::vector<Steps> all_;
  bool has_elements_ = true;
};

// The steps that make a rectangle: those of a row go on in the source, those of a column in the destination.
class RectangleSteps {
 public:
  RectangleSteps(const LoopNest& nest, const NestBox& box) : steps_(nest, box) {
    if (!steps_.has_elements()) return;
    for (const Steps& steps : steps_.all()) left_.push_back(&steps);
    while (take_next()) {
    }
  }

  const std::vector<const Steps*>& of_row() const { return row_; }
  const std::vector<const Steps*>& of_column() const { return column_; }
  // Those that no rectangle has.
  const std::vector<const Steps*>& others() const { return left_; }
  int64_t row_elements() const { return row_elements_; }
  int64_t column_elements() const { return column_elements_; }
  // From the box's first element to that of the first rectangle.
  BoxTranspose::Rectangle first() const {
    BoxTranspose::Rectangle first{0, 0};
    for (const Steps& steps : steps_.all()) {
      first.source += steps.first_source;
      first.destination += steps.first_destination;
    }
    return first;
  }

 private:
  // Steps that could go on on both sides go to the shorter one.
  bool take_next() {
    const Steps* row = next(row_, row_elements_, &Steps::source);
    const Steps* column = next(column_, column_elements_, &Steps::destination);
    if (row == nullptr && column == nullptr) return false;
    if (row != nullptr && (column == nullptr || row_elements_ <= column_elements_)) {
      take(row, row_, row_elements_);
    } else {
      take(column, column_, column_elements_);
    }
    return true;
  }

  const Steps* next(const std::vector<const Steps*>& taken, int64_t elements,
                    std::vector<int64_t> Steps::*places) const {
    if (!taken.empty() && taken.back()->is_cut) return nullptr;
    const auto found = std::find_if(left_.begin(), left_.end(), [=](const Steps* steps) {
      return !steps->looks_up && steps->count() > 1 && is_regular(steps->*places, elements);
    });
    return found == left_.end() ? nullptr : *found;
  }

  void take(const Steps* steps, std::vector<const Steps*>& side, int64_t& elements) {
    side.push_back(steps);
    elements *= steps->count();
    left_.erase(std::find(left_.begin(), left_.end(), steps));
  }

  BoxSteps steps_;
  std::vector<const Steps*> left_;
  std::vector<const Steps*> row_;
  std::vector<const Steps*> column_;
  int64_t row_elements_ = 1;
  int64_t column_elements_ = 1;
};

// What some steps, nearest first, add on one side, in bytes.
std::vector<int64_t> places_of(const std::vector<const Steps*>& all, std::vector<int64_t> Steps::*side,
                               int64_t element_bytes) {
  std::vector<int64_t> places = {0};
  for (const Steps* steps : all) {
    const size_t deeper = places.size();
    for (size_t i = 1; i < (steps->*side).size(); ++i) {
      for (size_t k = 0; k < deeper; ++k) places.push_back(places[k] + (steps->*side)[i] * element_bytes);
    }
  }
  return places;
}

// False where some steps are looked up.
bool list_rectangles(const RectangleSteps& steps, int64_t element_bytes,
                     std::vector<BoxTranspose::Rectangle>& rectangles) {
  for (const Steps* other : steps.others()) {
    if (other->looks_up) return false;
  }
  const BoxTranspose::Rectangle first = steps.first();
  const std::vector<int64_t> from = places_of(steps.others(), &Steps::source, element_bytes);
  const std::vector<int64_t> to = places_of(steps.others(), &Steps::destination, element_bytes);
  for (size_t i = 0; i < from.size(); ++i) {
    rectangles.push_back({from[i] + first.source * element_bytes, to[i] + first.destination * element_bytes});
  }
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

bool crowd_cache(const std::vector<int64_t>& lines) {
  int64_t used[kSets] = {};
  return std::any_of(lines.begin(), lines.end(), [&used](int64_t line) {
    return ++used[static_cast<size_t>(line / kLineBytes) % kSets] > kFewWays;
  });
}

// The least that an instruction set transposes: 16 bytes one way, 32 the other.
bool fills_registers(int64_t row_bytes, int64_t column_bytes) {
  return std::min(row_bytes, column_bytes) >= 16 && std::max(row_bytes, column_bytes) >= 32;
}

}  // namespace

int64_t BoxTranspose::bytes() const {
  return static_cast<int64_t>(sizeof(BoxTranspose) +
                              (rows.size() + columns.size() + packed_rows.size() + odd_columns.size()) *
                                  sizeof(int64_t) +
                              rectangles.size() * sizeof(Rectangle));
}

std::shared_ptr<const BoxTranspose> make_nibble_transpose(const LoopNest& nest, const NestBox& box) {
  constexpr int64_t kFewColumns = 16;
  const RectangleSteps steps(nest, box);
  const int64_t row_bytes = steps.row_elements() / 2;
  const int64_t column_elements = steps.column_elements();
  const bool is_whole = steps.row_elements() % 2 == 0 && column_elements % 2 == 0;
  if (!is_whole || !fills_registers(row_bytes, column_elements / 2)) return nullptr;
  auto made = std::make_shared<BoxTranspose>();
  made->row_bytes = row_bytes;
  made->rows = places_of(steps.of_column(), &Steps::source, 1);
  std::vector<int64_t> columns = places_of(steps.of_row(), &Steps::destination, 1);
  if (!take_bytes(made->rows) || !take_bytes(columns)) return nullptr;
  for (size_t i = 0; i < columns.size(); i += 2) {
    made->columns.push_back(columns[i]);
    made->odd_columns.push_back(columns[i + 1]);
  }
  for (int64_t r = 0; r < column_elements / 2; ++r) made->packed_rows.push_back(r * row_bytes);
  made->strip = crowd_cache(lines_of(made->columns, column_elements / 2)) ? kFewColumns : row_bytes;
  if (!list_rectangles(steps, 1, made->rectangles)) return nullptr;
  for (BoxTranspose::Rectangle& rectangle : made->rectangles) {
    if (rectangle.source % 2 != 0 || rectangle.destination % 2 != 0) return nullptr;
    rectangle.source /= 2;
    rectangle.destination /= 2;
  }
  return made;
}

}  // namespace tilework
