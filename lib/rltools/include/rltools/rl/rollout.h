// Off-policy data collection: one environment step into a replay buffer, with episode ends and
// resets.
#pragma once

#include "rltools/core/finite.h"
#include "rltools/rl/replay_buffer.h"
#include "rltools/rl/training.h"

namespace rlt {

// A new episode: draws its initial state and makes its observation the present one.
template <class Device, class E>
void reset_environment(Device device, Training<E>& training) {
  const typename E::Environment environment{};
  auto& learner = training.learner;
  const RandomStream random{training.hyperparameters.seed, Purpose::environment_reset,
                            learner.progress.episodes};
  learner.environment_state = initial_state(device, environment, random);
  learner.progress.episode_step = 0;
  learner.progress.episode_return = typename E::Scalar(0);
  observe(device, environment, learner.environment_state, advance(training.replay));
}

// Takes `action` in the environment and stores the transition; fills the report's episode fields.
// An episode of kEpisodeSteps steps is truncated, which is not stored as a termination. An action
// that is not finite is a fault: the environment is not stepped with it. So is a reward, or a sum
// of rewards.
template <class Device, class E>
void collect(Device device, Training<E>& training, const typename E::Scalar* action,
             StepReport& report) {
  using T = typename E::Scalar;
  const typename E::Environment environment{};
  auto& learner = training.learner;
  auto& progress = learner.progress;
  report.finite = all_finite(action, E::Environment::kActionDim);
  if (!report.finite) return;
  const auto state = learner.environment_state;
  const auto next = step(device, environment, state, action);
  const T step_reward = reward(device, environment, state, action, next);
  const bool is_terminated = terminated(device, environment, next);
  record(training.replay, action, step_reward, is_terminated);
  observe(device, environment, next, advance(training.replay));
  learner.environment_state = next;
  progress.step++;
  progress.episode_step++;
  progress.episode_return += step_reward;
  report.finite = is_finite(progress.episode_return);
  if (is_terminated || progress.episode_step >= static_cast<std::uint32_t>(E::kEpisodeSteps)) {
    const T episode_return = progress.episode_return;
    progress.last_return = episode_return;
    // Written so that the first return replaces the initial NaN.
    if (!(progress.best_return >= episode_return)) progress.best_return = episode_return;
    progress.episodes++;
    report.episode_ended = true;
    report.episode_return = static_cast<float>(episode_return);
    reset_environment(device, training);
  }
}

}  // namespace rlt
