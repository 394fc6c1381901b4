// Transposes the rectangles of box_transpose.h, whose rows and columns stand anywhere. Internal to each file,
// as transpose_places.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "io/checked_math.h"
#include "reorder/box_transpose.h"
#include "reorder/transpose_places.h"

namespace tilework {
namespace {

template <class Block>
void transpose_in(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  transpose_places<Block>(source, Listed{places.rows}, places.row_count, destination, Listed{places.columns},
                          places.column_count, places.strip);
}

// Listed rows and columns in wide blocks, or in narrow ones, of which one fits: see make_transpose in
// box_transpose.h.
template <class Wide, class Narrow>
void transpose_listed(const ListedPlaces& places, const uint8_t* source, uint8_t* destination) {
  if (places.row_count >= Wide::kRows && places.column_count >= Wide::kColumns) {
    transpose_in<Wide>(places, source, destination);
  } else {
    transpose_in<Narrow>(places, source, destination);
  }
}

}  // namespace
}  // namespace tilework
