// The values of a rollout's rows, by the critic as it is, and the advantages that follow from them.
#pragma once

#include "rltools/rl/advantages.h"
#include "rltools/rl/on_policy.h"

namespace rlt {

// Compute scratch.value_of_row, and scratch.current_value of the observations after the last step.
template <class Device, class E>
void compute_values_at_once(Device device, Training<E>& training) {
  constexpr int kObservation = kCriticObservationDim<typename E::Environment>;
  const auto& learner = training.learner;
  const auto& rollout = training.replay;
  auto& scratch = training.scratch;
  for (int first = 0; first < kRolloutRows<E>; first += E::kTileRows) {
    normalize_rows<E::kTileRows>(device, learner.normalizer,
                                 rollout.observation + first * kObservation,
                                 scratch.observation.data());
    forward(device, learner.critic, scratch.observation, scratch.value, scratch.critic_buffer);
    copy<E::kTileRows>(device, scratch.value.data(), scratch.value_of_row + first);
  }
  normalize_rows<kEnvironmentCount<E>>(device, learner.normalizer, rollout.current_observation,
                                       scratch.present.data());
  forward(device, learner.critic, scratch.present, scratch.current_value,
          scratch.current_value_buffer);
}

// Compute the values of a recurrent critic: scratch.value_of_row and scratch.current_value as
// above, step by step, and scratch.final_value of the states in which episodes were cut off. At the
// end the present states are those after the rollout.
template <class Device, class E>
void compute_values_in_order(Device device, Training<E>& training) {
  using T = typename E::Scalar;
  constexpr int kObservation = kCriticObservationDim<typename E::Environment>;
  constexpr int kCount = kEnvironmentCount<E>, kDim = kStateDim<typename E::Critic>;
  const auto& learner = training.learner;
  auto& rollout = training.replay;
  auto& scratch = training.scratch;
  auto& states = rollout.critic_state;
  if (learner.minibatches > 0) {  // they are that already
    for (int i = 0; i < kCount * kDim; i++) states.present[i] = states.window[i];
  }
  const auto copy_states = [&](int first, int count) {
    for (int i = 0; i < count * kDim; i++) scratch.next_state[i] = states.present[first * kDim + i];
  };
  for (int step = 0; step < E::kRolloutSteps; step++) {
    normalize_rows<kCount>(device, learner.normalizer,
                           rollout.observation + step * kCount * kObservation,
                           scratch.present.data());
    forward_present(device, training, learner.critic, states, static_cast<std::uint32_t>(step),
                    scratch.present, scratch.current_value, scratch.current_value_buffer);
    for (int i = 0; i < kCount; i++) {
      scratch.value_of_row[step * kCount + i] = scratch.current_value(i, 0);
      if (rollout.done[step * kCount + i] != rollout.kTruncated) continue;
      Matrix<T, 1, kObservation> normalized;
      Matrix<T, 1, 1> value;
      WindowBuffer<typename E::Critic, 1, 1> buffer;
      const int number = truncations_before(rollout, i, step);
      normalize(learner.normalizer, final_observation(rollout, i, number), normalized.data());
      copy_states(i, 1);
      forward_step(device, learner.critic, normalized, MatrixView<T, 1, kDim>{scratch.next_state},
                   value, buffer);
      scratch.final_value[i * rollout.kTruncations + number] = value(0, 0);
    }
    end_states<kDim>(states, rollout, step);
  }
  normalize_rows<kCount>(device, learner.normalizer, rollout.current_observation,
                         scratch.present.data());
  copy_states(0, kCount);
  forward_step(device, learner.critic, scratch.present,
               MatrixView<T, kCount, kDim>{scratch.next_state}, scratch.current_value,
               scratch.current_value_buffer);
}

// Return the value of the state in which an episode was truncated.
template <class Device, class E>
typename E::Scalar value_of_final(Device device, Training<E>& training, int environment, int step) {
  const int number = truncations_before(training.replay, environment, step);
  if constexpr (kIsRecurrent<typename E::Critic>) {
    return training.scratch.final_value[environment * training.replay.kTruncations + number];
  } else {
    using T = typename E::Scalar;
    const auto& learner = training.learner;
    Matrix<T, 1, kCriticObservationDim<typename E::Environment>> normalized;
    Matrix<T, 1, 1> value;
    MlpBuffer<typename E::Critic, 1> buffer;
    normalize(learner.normalizer, final_observation(training.replay, environment, number),
              normalized.data());
    forward(device, learner.critic, normalized, value, buffer);
    return value(0, 0);
  }
}

// Compute the advantages of all rows, and the targets of their values.
template <class Device, class E>
void compute_advantages(Device device, Training<E>& training) {
  using T = typename E::Scalar;
  const auto& hyper = training.hyperparameters;
  const auto& scratch = training.scratch;
  if constexpr (kIsRecurrent<typename E::Critic>) {
    compute_values_in_order(device, training);
  } else {
    compute_values_at_once(device, training);
  }
  compute_advantages(
      training.replay,
      AdvantageParameters<T>{static_cast<T>(hyper.gamma), static_cast<T>(hyper.gae_lambda),
                             static_cast<T>(hyper.reward_scale)},
      scratch.value_of_row, scratch.current_value.data(), [&](int environment, int step) {
        return value_of_final(device, training, environment, step);
      });
}

}  // namespace rlt
