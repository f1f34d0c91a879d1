// Generalized advantage estimation (Schulman et al. 2016, arXiv 1506.02438, equation 16) over a
// rollout, and figures of its quality.
#pragma once

#include "rltools/core/math.h"
#include "rltools/rl/rollout_buffer.h"

namespace rlt {

template <class T>
struct AdvantageParameters {
  T gamma, lambda, reward_scale;
};

// delta_t = reward + gamma value' - value,  advantage_t = delta_t + gamma lambda advantage_t+1:
// nothing comes after a terminal state, and after a truncated episode its last state's value,
// final_value(environment, step). A row whose step was lost has no advantage, and the episode is
// cut off in the state before it. `value` (rows) is that of each row's observation, `current_value`
// (N) that of the observations after the last step. The targets are advantage + value.
template <class T, int S, int N, int O, int A, int C, int M, class FinalValue>
void compute_advantages(RolloutBuffer<T, S, N, O, A, C, M>& rollout,
                        const AdvantageParameters<T>& parameters, const T* value,
                        const T* current_value, FinalValue&& final_value) {
  const T decay = parameters.gamma * parameters.lambda;
  for (int environment = 0; environment < N; environment++) {
    T next_value = current_value[environment], advantage = T(0);
    for (int step = S - 1; step >= 0; step--) {
      const int row = step * N + environment;
      if (rollout.done[row] == rollout.kLost) {
        rollout.advantage[row] = advantage = T(0);
        rollout.target[row] = next_value = value[row];
        continue;
      }
      if (rollout.done[row] != rollout.kRunning) {
        advantage = T(0);
        next_value =
            rollout.done[row] == rollout.kTerminated ? T(0) : final_value(environment, step);
      }
      const T reward = parameters.reward_scale * rollout.reward[row];
      const T delta = math::fma(parameters.gamma, next_value, reward) - value[row];
      advantage = math::fma(decay, advantage, delta);
      rollout.advantage[row] = advantage;
      rollout.target[row] = advantage + value[row];
      next_value = value[row];
    }
  }
}

template <class T>
struct Moments {
  T mean, variance;
};

// Return the mean and (population) variance of `count` numbers, added up in their order.
template <class T>
Moments<T> moments(const T* values, int count) {
  T sum = T(0), squares = T(0);
  for (int i = 0; i < count; i++) sum += values[i];
  const T mean = sum / static_cast<T>(count);
  for (int i = 0; i < count; i++) {
    const T difference = values[i] - mean;
    squares = math::fma(difference, difference, squares);
  }
  return {mean, squares / static_cast<T>(count)};
}

// Return 1 - variance(target - value) / variance(target); target - value is the advantage. NaN
// where the targets do not vary.
template <class T, int S, int N, int O, int A, int C, int M>
float explained_variance(const RolloutBuffer<T, S, N, O, A, C, M>& rollout) {
  const T left = moments(rollout.advantage, rollout.kRows).variance;
  const T whole = moments(rollout.target, rollout.kRows).variance;
  return whole > T(0) ? static_cast<float>(T(1) - left / whole) : math::kQuietNan;
}

}  // namespace rlt
