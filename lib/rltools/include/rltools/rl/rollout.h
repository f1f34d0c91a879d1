// Off-policy data collection: a step of every environment into the replay buffer.
#pragma once

#include "rltools/core/finite.h"
#include "rltools/rl/replay_buffer.h"
#include "rltools/rl/training.h"

namespace rlt {

// First episodes, whose observations are the present ones.
template <class Device, class E>
void begin_episodes(Device device, Training<E>& training) {
  begin_all(device, environment_of(training), training.learner.environments,
            training.hyperparameters.seed,
            [&](int index) { return advance(buffer_of(training.replay, index)); });
}

namespace detail {

// Where step_all() puts what it finds. A truncated episode is not stored as terminated.
template <class E>
struct IntoReplay {
  using T = typename E::Scalar;
  Replay<E>& replay;
  const T* action;
  Transition<T>* transitions;

  T* reached(int index, const Transition<T>& transition) const {
    transitions[index] = transition;
    auto& buffer = buffer_of(replay, index);
    if constexpr (kIsExternal<typename E::Environment>) {  // the observation is the present one
      if (transition.lost) return current_observation(buffer);
    }
    record(buffer, action + index * E::Environment::kActionDim, transition.reward,
           transition.terminated);
    return advance(buffer);
  }
  T* begun(int index) const { return advance(buffer_of(replay, index)); }
  void broken(int index) const { transitions[index].broken = true; }
};

}  // namespace detail

// Takes `action` (environments, ActionDim) in the environments and stores the transitions; fills
// the report's fields of episodes. An action that is not finite is a fault: no environment is
// stepped with it. So is a reward, a sum of rewards, or an observation.
template <class Device, class E>
void collect(Device device, Training<E>& training, const typename E::Scalar* action,
             StepReport<E>& report) {
  using T = typename E::Scalar;
  constexpr int kEnvironments = kEnvironmentCount<E>;
  auto& progress = training.learner.progress;
  if (!all_finite(action, kEnvironments * E::Environment::kActionDim)) {
    return note_no_action(
        report, [&](int index) { return current_observation(buffer_of(training.replay, index)); });
  }
  Transition<T> transitions[kEnvironments];
  step_all(device, environment_of(training), training.learner.environments,
           training.hyperparameters.seed, progress.step,
           static_cast<std::uint32_t>(E::kEpisodeSteps), action,
           detail::IntoReplay<E>{training.replay, action, transitions});
  progress.step += static_cast<std::uint32_t>(kEnvironments);
  note_transitions(progress, transitions, action, report);
}

}  // namespace rlt
