// What the runs of td3_golden_run.h and sac_golden_run.h share: inputs of an update as arrays, for
// the golden file and for the program that hands them to PyTorch.
#pragma once

#include <string>

#include "golden_file.h"

namespace golden {

template <class T>
Array to_array(const T* values, int count) {
  return Array(values, values + count);
}

template <class Matrix>
Array to_array(const Matrix& matrix) {
  return to_array(matrix.data(), Matrix::kRows * Matrix::kColumns);
}

// The pendulum never terminates: here every third transition counts as terminal.
template <class Replay>
void terminate_every_third(Replay& replay) {
  for (std::uint32_t slot = 0; slot < replay.size; slot += 3) {
    if (replay.flags[slot] & Replay::kTransition) replay.flags[slot] |= Replay::kTerminated;
  }
}

// The networks before the first update: put(name, array).
template <class Learner, class Put>
void put_networks(const Learner& learner, Put&& put) {
  const auto parameters = [](const auto& network) {
    return to_array(network.values, network.kParameterCount);
  };
  put("actor", parameters(learner.actor));
  put("critic_1", parameters(learner.critic_1));
  put("critic_2", parameters(learner.critic_2));
}

// The batch that an update has used.
template <class Scratch, class Put>
void put_batch(int update, const Scratch& scratch, Put&& put) {
  const std::string prefix = std::to_string(update) + "/";
  put(prefix + "observation_action", to_array(scratch.observation_action));
  put(prefix + "next_observation", to_array(scratch.next_observation));
  put(prefix + "target_noise", to_array(scratch.target_noise));
  put(prefix + "reward", to_array(scratch.reward));
  put(prefix + "not_terminated", to_array(scratch.not_terminated));
}

}  // namespace golden
