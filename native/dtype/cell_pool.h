// Reduces a matrix to a coarser grid of cells, for drawings of tensors that have more elements than a screen
// has pixels.
#pragma once

#include <cstdint>

namespace tilework {

// What a cell has besides finite numbers.
constexpr uint8_t kCellHasNan = 1;
constexpr uint8_t kCellHasInfinity = 2;
constexpr uint8_t kCellHasNegativeInfinity = 4;

// Of the finite numbers of a cell. The caller fills `min` with infinity, `max` with -infinity and the others
// with 0.
struct CellValues {
  double min;
  double max;
  double sum;
  double count;
};

// The element at row r and column c belongs to cell
// first_cell + floor(r / rows_per_cell) * cell_stride + floor(c / columns_per_cell).
struct CellGrid {
  int64_t columns;
  // At least 1.
  int64_t rows_per_cell;
  int64_t columns_per_cell;
  int64_t first_cell;
  int64_t cell_stride;

  int64_t cell_of(int64_t row, int64_t column) const {
    return first_cell + row / rows_per_cell * cell_stride + column / columns_per_cell;
  }
};

// Adds `row_count` whole rows of numbers, the first of which is row `first_row`.
void pool_cells(const CellGrid& grid, int64_t first_row, const double* numbers, int64_t row_count,
                CellValues* values, uint8_t* marks);

}  // namespace tilework
