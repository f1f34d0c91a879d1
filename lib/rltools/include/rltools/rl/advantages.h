// Generalized advantage estimation (Schulman et al. 2016, arXiv 1506.02438, equation 16) over a
// rollout, and figures of its quality.
#pragma once

#include "rltools/core/device.h"
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
void compute_advantages_of(RolloutBuffer<T, S, N, O, A, C, M>& rollout,
                           const AdvantageParameters<T>& parameters, const T* value,
                           const T* current_value, const FinalValue& final_value, int environment) {
  const T decay = parameters.gamma * parameters.lambda;
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
      next_value = rollout.done[row] == rollout.kTerminated ? T(0) : final_value(environment, step);
    }
    const T reward = parameters.reward_scale * rollout.reward[row];
    const T delta = math::fma(parameters.gamma, next_value, reward) - value[row];
    advantage = math::fma(decay, advantage, delta);
    rollout.advantage[row] = advantage;
    rollout.target[row] = advantage + value[row];
    next_value = value[row];
  }
}
// Compute them for all environments.
template <class T, int S, int N, int O, int A, int C, int M, class FinalValue>
void compute_advantages(RolloutBuffer<T, S, N, O, A, C, M>& rollout,
                        const AdvantageParameters<T>& parameters, const T* value,
                        const T* current_value, FinalValue&& final_value) {
  for (int environment = 0; environment < N; environment++) {
    compute_advantages_of(rollout, parameters, value, current_value, final_value, environment);
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

// values = (values - mean) / (standard deviation + 1e-8)
template <int Count, class T>
Generic standardize(Generic device, T* values) {
  const auto [mean, variance] = moments(values, Count);
  const T std = math::sqrt(variance) + static_cast<T>(1e-8f);
  for (int i = 0; i < Count; i++) values[i] = (values[i] - mean) / std;
  return device;
}

// Return 1 - variance(target - value) / variance(target); target - value is the advantage. NaN
// where the targets do not vary.
template <class T>
float explained_variance(T of_advantages, T of_targets) {
  return of_targets > T(0) ? static_cast<float>(T(1) - of_advantages / of_targets)
                           : math::kQuietNan;
}
template <class T, int S, int N, int O, int A, int C, int M>
float explained_variance(Generic, const RolloutBuffer<T, S, N, O, A, C, M>& rollout) {
  return explained_variance(moments(rollout.advantage, rollout.kRows).variance,
                            moments(rollout.target, rollout.kRows).variance);
}

}  // namespace rlt
