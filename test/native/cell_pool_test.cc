// Cells against a plain loop: random matrices and cells, rows in several calls, stripes of a wider grid, NaN
// and infinities.
#include "dtype/cell_pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "io/checked_math.h"

namespace tilework::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Cells {
  std::vector<CellValues> values;
  std::vector<uint8_t> marks;
  explicit Cells(int64_t count)
      : values(static_cast<size_t>(count), {kInfinity, -kInfinity, 0, 0}),
        marks(static_cast<size_t>(count)) {}

  void add(int64_t cell, double number) {
    CellValues& found = values[static_cast<size_t>(cell)];
    uint8_t& mark = marks[static_cast<size_t>(cell)];
    if (std::isnan(number)) {
      mark |= kCellHasNan;
    } else if (std::isinf(number)) {
      mark |= number > 0 ? kCellHasInfinity : kCellHasNegativeInfinity;
    } else {
      found = {std::min(found.min, number), std::max(found.max, number), found.sum + number, found.count + 1};
    }
  }
  bool is_same(const Cells& other) const {
    const auto same = [](const CellValues& a, const CellValues& b) {
      return a.min == b.min && a.max == b.max && a.count == b.count && a.sum == b.sum;
    };
    return marks == other.marks &&
           std::equal(values.begin(), values.end(), other.values.begin(), other.values.end(), same);
  }
};

void test_cells() {
  std::mt19937_64 random(27);
  const auto below = [&](int64_t most) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(most));
  };
  for (int round = 0; round < 2000; ++round) {
    const int64_t rows = 1 + below(30);
    const int64_t columns = 1 + below(80);
    const int64_t first_cell = below(5);
    CellGrid grid{columns, 1 + below(8), 1 + below(round % 2 == 0 ? 8 : 100), first_cell, 0};
    grid.cell_stride = first_cell + ceil_div(columns, grid.columns_per_cell) + below(3);
    std::vector<double> numbers(static_cast<size_t>(rows * columns));
    for (double& number : numbers) {
      const int64_t kind = below(40);
      const double special[] = {std::nan(""), kInfinity, -kInfinity, 0};
      // Whole numbers: their sums do not depend on the order.
      number = kind < 4 ? special[kind] : static_cast<double>(below(2001) - 1000);
    }
    const int64_t cells = first_cell + ceil_div(rows, grid.rows_per_cell) * grid.cell_stride;
    Cells expected(cells);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        expected.add(grid.cell_of(row, column), numbers[static_cast<size_t>(row * columns + column)]);
      }
    }
    Cells found(cells);
    for (int64_t first = 0; first < rows;) {
      const int64_t count = std::min(rows - first, 1 + below(9));
      pool_cells(grid, first, numbers.data() + first * columns, count, found.values.data(),
                 found.marks.data());
      first += count;
    }
    CHECK_IN(std::to_string(rows) + " x " + std::to_string(columns), found.is_same(expected));
  }
}

}  // namespace
}  // namespace tilework::test

int main() {
  tilework::test::test_cells();
  return tilework::test::result();
}
