// Test: as-firmware
// PPO's objective of several rows at once against that of each, bit for bit. Compiled as firmware
// is, with the compiler's vector instructions. That the slopes are right is the business of
// test_gaussian.cpp and of the golden runs.
#include <doctest/doctest.h>

#include "rltools/core/random.h"
#include "rltools/rl/clipped_objective.h"

using namespace rlt;

namespace {

struct Counts {
  int clipped = 0, stopped = 0;
};

template <int Rows, int Action>
void check_rows(Counts& counts) {
  CAPTURE(Rows);
  CAPTURE(Action);
  const RandomStream random{3, Purpose::shuffle, Rows, Action};
  const auto draw = [&](std::uint32_t what, int i) {
    return uniform<float>(random, what * 1000 + static_cast<std::uint32_t>(i), -1.0f, 1.0f);
  };
  constexpr float kClip = 0.2f, kBatchSize = 48.0f;
  float before[Action], now[Action];
  for (int i = 0; i < Action; i++) {
    before[i] = draw(0, i);
    now[i] = before[i] + 0.1f * draw(1, i);
  }
  const GaussianChange<float, Action> change(before, now);
  ClippedRows<float, Rows, Action> rows;
  for (int row = 0; row < Rows; row++) {
    for (int k = row * Action; k < (row + 1) * Action; k++) {
      rows.action[k] = draw(2, k);
      rows.mean_before[k] = draw(3, k);
      // Every fourth row's mean stays; others move so far that many ratios are beyond the range.
      rows.mean[k] = row % 4 == 3 ? rows.mean_before[k] : rows.mean_before[k] + 0.9f * draw(4, k);
    }
    rows.advantage[row] = row % 5 == 4 ? 0.0f : draw(5, row) + (row % 2 == 0 ? 1.0f : -1.0f);
  }
  compute_clipped_objective(change, kClip, kBatchSize, rows);
  for (int row = 0; row < Rows; row++) {
    CAPTURE(row);
    float mean_slope[Action], log_std_slope[Action];
    const auto [log_ratio, kl] =
        gaussian_change(change, rows.action + row * Action, rows.mean_before + row * Action,
                        rows.mean + row * Action, mean_slope, log_std_slope);
    const float ratio = math::exp(log_ratio), advantage = rows.advantage[row];
    const bool is_clipped = ratio < 1.0f - kClip || ratio > 1.0f + kClip;
    const float bounded = ratio < 1.0f - kClip ? 1.0f - kClip : 1.0f + kClip;
    const float objective = is_clipped && bounded * advantage < ratio * advantage
                                ? bounded * advantage
                                : ratio * advantage;
    const bool stops = objective != ratio * advantage;
    CHECK(rows.objective[row] == objective);
    CHECK(rows.kl[row] == kl);
    CHECK((rows.is_clipped[row] != 0) == is_clipped);
    for (int i = 0; i < Action; i++) {
      const float slope = stops ? 0.0f : -(ratio * advantage) / kBatchSize;
      CHECK(rows.mean_gradient[row * Action + i] == slope * mean_slope[i]);
      CHECK(rows.log_std_gradient[row * Action + i] == slope * log_std_slope[i]);
    }
    counts.clipped += is_clipped;
    counts.stopped += stops;
  }
}

}  // namespace

TEST_CASE("the objective of several rows has the bits of each") {
  Counts counts;
  check_rows<1, 1>(counts);
  check_rows<8, 2>(counts);
  check_rows<16, 4>(counts);
  CHECK(counts.stopped > 5);
  CHECK(counts.clipped > counts.stopped + 5);
}
