// Steps of N environments with one policy, for on-policy learning. A row is a step of an
// environment: row = step * N + environment.
#pragma once

#include <cstdint>

namespace rlt {

// `Truncations`: how many of an environment's episodes can be cut off within the steps;
// `OutputDim`: of the policy's network, which is wider where actions are choices.
template <class T, int Steps, int N, int ObservationDim, int ActionDim, int Truncations,
          int OutputDim = ActionDim>
struct RolloutBuffer {
  static constexpr int kSteps = Steps;
  static constexpr int kEnvironments = N;
  static constexpr int kRows = Steps * N;
  static constexpr int kObservationDim = ObservationDim;
  static constexpr int kActionDim = ActionDim;
  static constexpr int kOutputDim = OutputDim;
  static constexpr int kTruncations = Truncations;

  // Ends of a row's step.
  static constexpr std::uint8_t kRunning = 0;
  static constexpr std::uint8_t kTerminated = 1;
  static constexpr std::uint8_t kTruncated = 2;
  static constexpr std::uint8_t kLost = 3;  // it did not take place

  T observation[kRows * ObservationDim];
  T action[kRows * ActionDim];  // as it was drawn, also beyond [-1, 1]
  T mean[kRows * OutputDim];    // of the policy that it was drawn from; of choices the logits
  T reward[kRows];
  std::uint8_t done[kRows];
  T advantage[kRows];
  T target[kRows];  // of the value
  // The observations that the next actions answer, and those at the end of truncated episodes, in
  // the order in which each environment's were cut off.
  T current_observation[N * ObservationDim];
  T final_observation[N * Truncations * ObservationDim];
  std::uint32_t size;  // steps, of each environment
};

template <class T, int S, int N, int O, int A, int C, int M>
void clear(RolloutBuffer<T, S, N, O, A, C, M>& rollout) {
  const auto zero = [](auto& values) {
    for (auto& value : values) value = 0;
  };
  zero(rollout.observation);
  zero(rollout.action);
  zero(rollout.mean);
  zero(rollout.reward);
  zero(rollout.done);
  zero(rollout.advantage);
  zero(rollout.target);
  zero(rollout.current_observation);
  zero(rollout.final_observation);
  rollout.size = 0;
}

// Return the number of an environment's episodes that were truncated before row step `step`.
template <class T, int S, int N, int O, int A, int C, int M>
int truncations_before(const RolloutBuffer<T, S, N, O, A, C, M>& rollout, int environment,
                       int step) {
  int count = 0;
  for (int earlier = 0; earlier < step; earlier++) {
    count += rollout.done[earlier * N + environment] == rollout.kTruncated;
  }
  return count;
}

// Return the final observation of an environment's truncated episode number `truncation`.
template <class T, int S, int N, int O, int A, int C, int M>
T* final_observation(RolloutBuffer<T, S, N, O, A, C, M>& rollout, int environment, int truncation) {
  return rollout.final_observation + (environment * C + truncation) * O;
}

namespace detail {

// Return whether an environment's steps are those of episodes, of which the one under way has had
// `episode_step`. Then no rollout has more truncations than there is room for.
template <class T, int S, int N, int O, int A, int C, int M>
bool are_episodes(const RolloutBuffer<T, S, N, O, A, C, M>& rollout, int environment,
                  std::uint32_t episode_step, std::uint32_t episode_steps) {
  bool has_begun = false;   // the episode, within the rollout
  std::uint32_t steps = 0;  // of it that the rollout has
  for (int step = 0; step < static_cast<int>(rollout.size); step++) {
    const std::uint8_t done = rollout.done[step * N + environment];
    steps++;
    if (done == rollout.kRunning && steps >= episode_steps) return false;
    if (done == rollout.kTruncated && has_begun && steps != episode_steps) return false;
    if (done != rollout.kRunning) {
      has_begun = true;
      steps = 0;
    }
  }
  return episode_step < episode_steps &&
         (has_begun ? episode_step == steps : episode_step >= steps);
}

}  // namespace detail

// Return false where the contents cannot be those of a rollout under way, in which the
// environments' present episodes have had episode_step[i] of `episode_steps` steps: a state from
// elsewhere is checked with this before anything is computed from it. Where episodes may end at any
// step (`free_episodes`: the environment truncates them) there must be room for as many
// truncations.
template <class T, int S, int N, int O, int A, int C, int M>
bool is_consistent(const RolloutBuffer<T, S, N, O, A, C, M>& rollout,
                   const std::uint32_t* episode_step, std::uint32_t episode_steps,
                   bool free_episodes = false, bool may_be_lost = false) {
  if (rollout.size > static_cast<std::uint32_t>(S)) return false;
  const std::uint8_t last_done = may_be_lost ? rollout.kLost : rollout.kTruncated;
  for (const std::uint8_t done : rollout.done) {
    if (done > last_done) return false;
  }
  for (int environment = 0; environment < N; environment++) {
    if (free_episodes) {
      if (C < S || episode_step[environment] >= episode_steps) return false;
      continue;
    }
    if (!detail::are_episodes(rollout, environment, episode_step[environment], episode_steps)) {
      return false;
    }
  }
  return true;
}

}  // namespace rlt
