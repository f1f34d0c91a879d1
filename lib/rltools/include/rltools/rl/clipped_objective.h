// PPO's clipped objective (Schulman et al. 2017, arXiv 1707.06347, equation 7) of the rows of a
// batch. For a row with action a, advantage A and ratio r = pi(a | s) / pi_old(a | s):
//   J = min(r A, clamp(r, 1 - clip_range, 1 + clip_range) A)
//   dJ/dlog pi(a | s) = r A where that is the smaller one, else 0
//
// The loop over the rows of compute_clipped_objective() is plain C++: its passes are independent
// and without branches, so that the compiler makes vectors of them, a row in each lane.
#pragma once

#include "rltools/core/lanes.h"
#include "rltools/core/unrolled.h"
#include "rltools/rl/gaussian.h"

namespace rlt {

// A few rows, whose actions were drawn with `mean_before` and have mean `mean` now; matrices are
// (Rows, Action).
template <class T, int Rows, int Action>
struct ClippedRows {
  T action[Rows * Action], mean_before[Rows * Action], mean[Rows * Action], advantage[Rows];
  T objective[Rows], kl[Rows];
  // Gradients of the loss, -J / batch_size.
  T mean_gradient[Rows * Action], log_std_gradient[Rows * Action];
  std::uint32_t is_clipped[Rows];  // 1: the ratio is beyond the range
};

// The objective of one row: J, the slope of the loss, -J / batch_size, in log pi, and 1 where the
// ratio is beyond the range.
template <class T>
struct ClippedObjective {
  T objective, slope;
  std::uint32_t is_clipped;
};

template <class T>
[[gnu::always_inline]] inline ClippedObjective<T> clipped_objective(T ratio, T advantage,
                                                                    T clip_range, T batch_size) {
  const T plain = ratio * advantage;
  const T bounded = math::clamp(ratio, T(1) - clip_range, T(1) + clip_range) * advantage;
  return {math::minimum(plain, bounded), plain <= bounded ? -plain / batch_size : T(0),
          math::absolute(ratio - T(1)) > clip_range ? 1u : 0u};
}

// Return the number of a tile's rows that are taken at once: as many as there are lanes, or a
// divisor of the rows.
constexpr int rows_at_once(int tile_rows) {
  int rows = 1;
  while (rows < kLaneCount && tile_rows % (2 * rows) == 0) rows *= 2;
  return rows;
}

// Compute the objective of rows, by straight-line code for each, which the compiler makes vectors
// of.
template <class T, int Rows, int Action>
RLT_LOOP_OVER_LANES void compute_clipped_objective(const GaussianChange<T, Action>& of_all,
                                                   T clip_range, T batch_size,
                                                   ClippedRows<T, Rows, Action>& rows) {
  const GaussianChange<T, Action> change = of_all;
  for (int row = 0; row < Rows; row++) {
    const int first = row * Action;
    T mean_slope[Action], log_std_slope[Action];
    const auto [log_ratio, kl] =
        gaussian_change(change, rows.action + first, rows.mean_before + first, rows.mean + first,
                        mean_slope, log_std_slope);
    const ClippedObjective<T> clipped =
        clipped_objective(math::exp(log_ratio), rows.advantage[row], clip_range, batch_size);
    unrolled<Action>([&](int i) {
      rows.mean_gradient[first + i] = clipped.slope * mean_slope[i];
      rows.log_std_gradient[first + i] = clipped.slope * log_std_slope[i];
    });
    rows.objective[row] = clipped.objective;
    rows.kl[row] = kl;
    rows.is_clipped[row] = clipped.is_clipped;
  }
}

}  // namespace rlt
