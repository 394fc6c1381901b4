// Invalid descriptions, by design and by chance: they are refused with a code, or harmless.
#include <algorithm>
#include <random>
#include <vector>

#include "check.h"
#include "random_layout.h"
#include "reorder/plan/plan.h"

namespace tilework::test {
namespace {

Side valid() {
  Side side;
  side.lower = {0, 0};
  side.upper = {0, 0};
  side.elements = 32;
  side.pieces = {Piece{0, 0, INT64_MAX, {{{0}, 2, 1}, {{1}, 4, 4}, {{1}, 4, 1}}}};
  return side;
}

template <class Change>
std::string code_after(Change change) {
  Side side = valid();
  change(side);
  return code_of([&] { bind_side({2, 13}, side, "from"); });
}

void test_each_rule() {
  CHECK(code_after([](Side&) {}).empty());
  CHECK(code_after([](Side& s) { s.elements = 31; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.elements = -1; }) == "ERR_OVERFLOW");
  CHECK(code_after([](Side& s) { s.lower.pop_back(); }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.upper[1] = -1; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.upper[1] = 4; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.upper[1] = INT64_MAX; }) == "ERR_OVERFLOW");
  CHECK(code_after([](Side& s) { s.pieces.clear(); }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces[0].axis = 2; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces[0].lo = 1; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces[0].hi = 1; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces.push_back(s.pieces[0]); }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces[0].digits[0].radix = 0; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces[0].digits[0].radix = -2; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces[0].digits[0].radix = INT64_MAX; }) == "ERR_OVERFLOW");
  CHECK(code_after([](Side& s) { s.pieces[0].digits[1].weight = 0; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces[0].digits[1].weight = 8; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces[0].digits[1].weight = 1; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces[0].digits[1].axes = {1, 1}; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces[0].digits[1].axes = {0, 1}; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces[0].digits[1].axes = {}; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces[0].digits[1].axes = {-1}; }) == "ERR_ARGUMENT");
  CHECK(code_after([](Side& s) { s.pieces[0].digits.resize(kMaxDigits + 1); }) == "ERR_ARGUMENT");
}

// Pieces with overlapping slots would leave other slots unwritten.
void test_pieces_reach_the_end_of_a_fused_axis() {
  Side side = valid();
  side.elements = 26;
  side.pieces = {Piece{0, 0, INT64_MAX, {{{1, 0}, 26, 1}}}};
  CHECK(code_of([&] { bind_side({2, 13}, side, "from"); }).empty());
  side.pieces[0].hi = 1;
  CHECK(code_of([&] { bind_side({2, 13}, side, "from"); }) == "ERR_ARGUMENT");
}

void test_pieces_are_apart() {
  // Layouts that store an odd last column separately: x in pairs, the last one alone.
  Side side = valid();
  side.elements = 2 * 7 * 2;
  side.pieces = {Piece{1, 0, 12, {{{1}, 7, 2}, {{0}, 2, 1}, {{1}, 2, 1}}},
                 Piece{1, 12, INT64_MAX, {{{1}, 7, 2}, {{1}, 2, 1}, {{0}, 2, 1}}}};
  const auto code = [&](auto change) {
    Side changed = side;
    change(changed);
    return code_of([&] { bind_side({2, 13}, changed, "to"); });
  };
  CHECK(code([](Side&) {}).empty());
  const auto bound_at = [](int64_t bound) {
    return [bound](Side& s) { s.pieces[0].hi = s.pieces[1].lo = bound; };
  };
  CHECK(code(bound_at(4)).empty());
  // Half a pair belongs to each piece.
  CHECK(code(bound_at(11)) == "ERR_ARGUMENT");
  // The outermost digit of the second piece differs.
  CHECK(code([](Side& s) {
          s.pieces[1].digits = {{{0}, 2, 1}, {{1}, 7, 2}, {{1}, 2, 1}};
        }) == "ERR_ARGUMENT");
  CHECK(code([](Side& s) {
          s.pieces[1].digits = {{{1}, 2, 7}, {{1}, 7, 1}, {{0}, 2, 1}};
        }) == "ERR_ARGUMENT");
  CHECK(code([](Side& s) { s.pieces[1].digits = {{{1}, 14, 1}, {{0}, 2, 1}}; }) == "ERR_ARGUMENT");
}

void test_overflow_of_products() {
  const int64_t large = int64_t{1} << 40;
  Side side;
  side.lower = {0, 0};
  side.upper = {0, 0};
  side.elements = 0;
  side.pieces = {Piece{0, 0, INT64_MAX, {{{0}, large, 1}, {{1}, large, 1}}}};
  CHECK(code_of([&] { bind_side({large, large}, side, "from"); }) == "ERR_OVERFLOW");
  // The element count fits, the byte count overflows.
  side.elements = large;
  side.pieces[0].digits[1].radix = 1;
  ReorderDescription description{128, {large, 1}, side, side};
  CHECK(code_of([&] { ReorderPlan plan(description); }).empty());
  side.pieces[0].digits[1].radix = int64_t{1} << 12;
  side.elements = large << 12;
  description = {128, {large, int64_t{1} << 12}, side, side};
  CHECK(code_of([&] { ReorderPlan plan(description); }) == "ERR_OVERFLOW");
  description = {7, {2, 13}, valid(), valid()};
  CHECK(code_of([&] { ReorderPlan plan(description); }) == "ERR_ARGUMENT");
}

int64_t wild(std::mt19937_64& random) {
  static constexpr int64_t kValues[] = {
      0, 1, 2, 3, 4, 8, 16, -1, INT64_MAX, INT64_MIN, int64_t{1} << 32, (int64_t{1} << 53) - 1};
  return kValues[random() % (sizeof(kValues) / sizeof(kValues[0]))];
}

// Changes one number of a description.
void damage(Side& side, std::mt19937_64& random) {
  Piece& piece = side.pieces[random() % side.pieces.size()];
  switch (random() % 8) {
    case 0:
      side.elements = wild(random);
      break;
    case 1:
      piece.lo = wild(random);
      break;
    case 2:
      piece.hi = wild(random);
      break;
    case 3:
      piece.axis = static_cast<int>(wild(random));
      break;
    case 4:
      if (!side.lower.empty()) side.lower[random() % side.lower.size()] = wild(random);
      break;
    default:
      if (piece.digits.empty()) break;
      Digit& digit = piece.digits[random() % piece.digits.size()];
      if (random() % 3 == 0) digit.radix = wild(random);
      if (random() % 3 == 0) digit.weight = wild(random);
      if (random() % 3 == 0) digit.axes.push_back(static_cast<int>(wild(random)));
      break;
  }
}

// Reorders the digits of one piece, which may make its slots overlap those of another.
void damage_pieces(Side& side, std::mt19937_64& random) {
  Piece& piece = side.pieces[random() % side.pieces.size()];
  std::shuffle(piece.digits.begin(), piece.digits.end(), random);
}

// Every accepted description must stay inside buffers of the sizes that the plan states; the sanitizer
// watches.
void test_damaged_descriptions() {
  std::mt19937_64 random(99);
  RandomLayout layouts(random);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    ReorderDescription description;
    description.element_bits = 8;
    description.shape = layouts.shape();
    description.from = layouts.side(description.shape);
    description.to = layouts.side(description.shape);
    if (random() % 3 == 0) damage_pieces(description.to, random);
    damage(random() % 2 == 0 ? description.from : description.to, random);
    try {
      const ReorderPlan plan(description);
      if (plan.source_bytes() > 100000 || plan.destination_bytes() > 100000) continue;
      const std::vector<uint8_t> source(static_cast<size_t>(plan.source_bytes()), 1);
      std::vector<uint8_t> destination(static_cast<size_t>(plan.destination_bytes()), 9);
      plan.run(source.data(), destination.data(), 0, plan.destination_bytes());
      // Every byte is an element or zero; none is left unwritten.
      CHECK(std::find(destination.begin(), destination.end(), 9) == destination.end());
      ++accepted;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kArgument || error.code() == ErrorCode::kOverflow);
    }
  }
  CHECK(accepted > 0);
}

}  // namespace
}  // namespace tilework::test

int main() {
  using namespace tilework::test;
  test_each_rule();
  test_pieces_reach_the_end_of_a_fused_axis();
  test_pieces_are_apart();
  test_overflow_of_products();
  test_damaged_descriptions();
  return result();
}
