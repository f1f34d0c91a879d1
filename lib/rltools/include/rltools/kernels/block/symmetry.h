// Means of parameters over their images in an environment's mirrors (rl/symmetry/symmetry.h): an
// element for each thread, with its image.
#pragma once

#include "rltools/kernels/block/threads.h"
#include "rltools/rl/environment.h"

namespace rlt {

namespace block {

// As the rows' loop computes it: the sums of two elements of a row that are each other's images are
// those from the other's side.
template <int Columns, class Images>
void average_element(int i, float* values, const Images& images) {
  const Mirrored row = images.row(i / Columns), column = images.column(i % Columns);
  const int image = row.element * Columns + column.element;
  if (image < i) return;  // its image's thread does both
  const float row_sign = static_cast<float>(row.sign), sign = static_cast<float>(column.sign);
  const float half = 0.5f * row_sign;
  const float own = values[i], other = values[image];
  const float mean = 0.5f * own + half * sign * other;
  const bool is_in_row = row.element == i / Columns;
  values[i] = is_in_row ? row_sign * sign * (0.5f * other + half * sign * own) : mean;
  values[image] = row_sign * sign * mean;
}

}  // namespace block

template <int Rows, int Columns, class Images>
Block average_with_images(Block device, float* values, const Images& images) {
  return block::for_each_element<Rows * Columns>(
      device, [=](int i) { block::average_element<Columns>(i, values, images); }, values);
}

}  // namespace rlt
