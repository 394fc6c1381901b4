#include "dtype/cell_pool.h"

#include <algorithm>
#include <cmath>

namespace tilework {
namespace {

uint8_t mark_of(double number) {
  if (std::isnan(number)) return kCellHasNan;
  return number > 0 ? kCellHasInfinity : kCellHasNegativeInfinity;
}

void pool_run(const double* numbers, int64_t count, CellValues& cell, uint8_t& marks) {
  // Members of the cell would be stored after every number.
  double min = cell.min;
  double max = cell.max;
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double number = numbers[i];
    if (!std::isfinite(number)) {
      marks |= mark_of(number);
      continue;
    }
    min = std::min(min, number);
    max = std::max(max, number);
    sum += number;
    ++finite;
  }
  cell = {min, max, cell.sum + sum, cell.count + static_cast<double>(finite)};
}

}  // namespace

void pool_cells(const CellGrid& grid, int64_t first_row, const double* numbers, int64_t row_count,
                CellValues* values, uint8_t* marks) {
  for (int64_t row = 0; row < row_count; ++row) {
    const double* const line = numbers + row * grid.columns;
    int64_t cell = grid.cell_of(first_row + row, 0);
    for (int64_t start = 0; start < grid.columns; start += grid.columns_per_cell, ++cell) {
      const int64_t count = std::min(grid.columns_per_cell, grid.columns - start);
      pool_run(line + start, count, values[cell], marks[cell]);
    }
  }
}

}  // namespace tilework
