// A divisor of rewards, for returns to lie between the bins of a categorical value: the standard
// deviation of the discounted returns so far, and at least their largest magnitude over the bins'
// (Lee et al. 2025, arXiv 2502.15280, "SimbaV2", section 4.2; FlashSAC, arXiv 2604.04539, has the
// same, and XQC, arXiv 2509.25174, the deviation alone).
//   G = gamma G + reward, from 0 in each episode
#pragma once

#include "rltools/core/math.h"

namespace rlt {

template <int Environments>
struct ReturnScale {
  double discounted_return[Environments];
  double count, mean, sum_of_squares;  // of returns, and of their differences from the mean
  double largest;                      // of magnitudes
};

template <int N>
void initialize(ReturnScale<N>& scale) {
  for (double& value : scale.discounted_return) value = 0;
  scale.count = scale.mean = scale.sum_of_squares = scale.largest = 0;
}

// Forget the episode of environment `index`, which is over without a further reward.
template <int N>
void end_return(ReturnScale<N>& scale, int index) {
  scale.discounted_return[index] = 0;
}

// Return false where the scale is not one of rewards: of a state from elsewhere no root or quotient
// must fail.
template <int N>
bool is_consistent(const ReturnScale<N>& scale) {
  return scale.count >= 0 && scale.sum_of_squares >= 0 && scale.largest >= 0;
}

// Take in the reward of a step of environment `index`, and whether it ended its episode (Welford
// 1962, Technometrics 4).
template <int N>
void update_return(ReturnScale<N>& scale, int index, double gamma, double reward, bool ended) {
  double& value = scale.discounted_return[index];
  value = gamma * value + reward;
  scale.count += 1;
  const double difference = value - scale.mean;
  scale.mean += difference / scale.count;
  scale.sum_of_squares += difference * (value - scale.mean);
  scale.largest = math::maximum(scale.largest, math::absolute(value));
  if (ended) end_return(scale, index);
}

// Return the factor of rewards, for returns of up to `bound`.
template <int N>
double reward_factor(const ReturnScale<N>& scale, double bound) {
  const double variance = scale.count > 0 ? scale.sum_of_squares / scale.count : 0;
  return 1 / math::maximum(math::sqrt(variance + 1e-8), scale.largest / bound);
}

}  // namespace rlt
