// bind_side, bind_slice and join for layouts of any extent. The nests are walked at single slots and compared
// with the definition of the layouts, so that storages of 2^53 elements are covered too.
#include "layout/join.h"

#include "description_input.h"
#include "error.h"
#include "oracle.h"
#include "reorder/plan/nest_walk.h"
#include "reorder_case.h"

namespace tilework::fuzz {
namespace {

// What a walk does with one slot.
struct Slot {
  int64_t source = -1;
  int copies = 0;
  int zeros = 0;
};

Slot slot_at(const std::vector<LoopNest>& nests, int64_t d) {
  Slot slot;
  for (const LoopNest& nest : nests) {
    NestWalk(nest, d, d + 1, true, [&](const NestRow& row) {
      require(row.destination == 0 && row.count == 1, "a walk leaves its range");
      if (row.is_hole) {
        ++slot.zeros;
      } else {
        slot.source = row.source;
        ++slot.copies;
      }
    });
  }
  return slot;
}

int64_t up_to(FuzzInput& input, int64_t bound) {
  switch (input.below(4)) {
    case 0:
      return 0;
    case 1:
      return bound - 1;
    default:
      return static_cast<int64_t>(input.bits() % static_cast<uint64_t>(bound));
  }
}

void check_element(const ReorderDescription& description, const std::vector<LoopNest>& nests,
                   FuzzInput& input) {
  test::Coordinate coordinate;
  for (const int64_t extent : description.shape) coordinate.push_back(up_to(input, extent));
  const int64_t d = test::offset_of(description.shape, description.to, coordinate);
  test::step_into(description.slice, coordinate);
  const int64_t s = test::offset_of(test::source_shape(description), description.from, coordinate);
  const Slot slot = slot_at(nests, d);
  if (slot.copies != 1 || slot.source != s) {
    finding("slot " + std::to_string(d) + " is copied " + std::to_string(slot.copies) + " times from " +
            std::to_string(slot.source) + ", expected " + std::to_string(s) + ": " +
            test::describe(description));
  }
}

void check_slot(const ReorderDescription& description, const std::vector<LoopNest>& nests, int64_t d) {
  const Slot slot = slot_at(nests, d);
  const bool once = slot.copies == 1 || (slot.copies == 0 && slot.zeros > 0);
  const bool inside = slot.copies == 0 || (slot.source >= 0 && slot.source < description.from.elements);
  if (!once || !inside) finding("slot " + std::to_string(d) + " is wrong: " + test::describe(description));
}

void run(FuzzInput& input) {
  ReorderDescription description = wide_description(input);
  damage(description, input);
  std::vector<LoopNest> nests;
  try {
    const BoundSlice slice = bind_slice(description.shape, description.slice);
    const BoundSide from = bind_side(test::source_shape(description), description.from, "from");
    const BoundSide to = bind_side(description.shape, description.to, "to");
    nests = join(description.shape, from, to, slice);
  } catch (const Error&) {
    return;
  }
  for (const LoopNest& nest : nests) {
    require(!nest.nodes.empty(), "a nest has no loop");
    for (const Lookup& lookup : nest.lookups)
      require(lookup.table.size() <= kMaxTableEntries, "a table is too long");
  }
  if (description.to.elements == 0) return;
  bool is_empty = false;
  for (const int64_t extent : description.shape) is_empty = is_empty || extent == 0;
  for (int i = 0; i < 4; ++i) {
    if (!is_empty) check_element(description, nests, input);
    check_slot(description, nests, up_to(input, description.to.elements));
  }
}

}  // namespace
}  // namespace tilework::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tilework::fuzz::FuzzInput input(data, size);
  tilework::fuzz::run(input);
  return 0;
}
