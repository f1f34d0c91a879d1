// Two critics that learn from the smaller of their targets' values (clipped double Q-learning,
// Fujimoto et al. 2018, section 4.2), as td3.h and sac.h have them.
#pragma once

#include "rltools/core/tasks.h"
#include "rltools/nn/loss.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/rl/batch.h"
#include "rltools/rl/off_policy.h"
#include "rltools/rl/symmetry.h"

namespace rlt {

// critic_input row = (observation row, action row), for a tile
template <class Device, class E, class Observation>
void set_critic_input(Device device, Training<E>& training, const Observation& observation) {
  auto& scratch = training.scratch;
  join_columns<E::kTileRows, Scratch<E>::kObservation, Scratch<E>::kAction>(
      device, observation.data(), scratch.action.data(), scratch.critic_input.data());
}

// A critic of the two, and the scratch memory that it uses.
template <class E>
struct CriticWork {
  using T = typename E::Scalar;
  int index;
  typename E::Critic& critic;
  typename E::Critic& target;
  AdamState<typename E::Critic>& optimizer;
  Matrix<T, E::kTileRows, 1>& value;
  MlpBuffer<typename E::Critic, E::kTileRows>& buffer;
  Matrix<T, E::kTileRows, 1>& value_gradient;
  decltype(Scratch<E>::action)& action_gradient;
  GradientBuffer<T, E::kTileRows, Scratch<E>::kWidest>& gradient_buffer;
  typename E::Critic& gradient;
};

// The critic `index`, 0 or 1, with the workspaces `pass` and `gradient`.
template <class E>
CriticWork<E> critic_work(Training<E>& training, int index, int pass, int gradient) {
  auto& learner = training.learner;
  auto& scratch = training.scratch;
  return {index,
          index == 0 ? learner.critic_1 : learner.critic_2,
          index == 0 ? learner.critic_1_target : learner.critic_2_target,
          index == 0 ? learner.critic_1_optimizer : learner.critic_2_optimizer,
          scratch.value[index],
          scratch.critic_buffer[pass],
          scratch.value_gradient[pass],
          scratch.action_gradient[pass],
          scratch.gradient_buffer[gradient],
          scratch.critic_gradient[gradient]};
}

// The first critic, for work whose rows are shared.
template <class E>
CriticWork<E> shared_work_of_first_critic(Training<E>& training) {
  return critic_work(training, 0, Scratch<E>::kSharedPass, Scratch<E>::kSharedGradient);
}

// Calls function(device, critic_work) for both critics, as tasks where each has its own workspace.
template <class Device, class E, class Function>
void for_both_critics(Device device, Training<E>& training, Function&& function) {
  const auto call = [&](auto part, auto index) {
    constexpr int kIndex = decltype(index)::value;
    function(part, critic_work(training, kIndex, Scratch<E>::kPassOfCritic[kIndex],
                               Scratch<E>::kGradientOfCritic[kIndex]));
  };
  if constexpr (Scratch<E>::kAtOnce) {
    for_each_task<2>(device, call);
  } else {
    call(device, std::integral_constant<int, 0>{});
    call(device, std::integral_constant<int, 1>{});
  }
}

// value[0] = min(Q1', Q2')(critic_input), for a tile
template <class Device, class E>
void evaluate_target_critics(Device device, Training<E>& training) {
  auto& scratch = training.scratch;
  for_both_critics(device, training, [&](auto one_device, CriticWork<E> work) {
    forward(one_device, work.target, scratch.critic_input, work.value, work.buffer);
  });
  take_minimum<E::kTileRows>(device, scratch.value[1].data(), scratch.value[0].data());
}

// target_value = reward + gamma (1 - terminated) value[0], for the tile that begins at row
// `first`
template <class Device, class E>
void set_target_values(Device device, Training<E>& training, int first) {
  auto& scratch = training.scratch;
  discounted_targets<E::kTileRows>(device,
                                   static_cast<typename E::Scalar>(training.hyperparameters.gamma),
                                   scratch.reward.row(first), scratch.not_terminated.row(first),
                                   scratch.value[0].data(), scratch.target_value.row(first));
}

// One Adam step on the mean of (Q(s, a) - target_value)^2; returns that mean.
template <class Device, class E>
typename E::Scalar update_critic(Device device, const Training<E>& training, CriticWork<E> work) {
  using T = typename E::Scalar;
  const auto& scratch = training.scratch;
  T loss = T(0);
  set_zero(work.gradient);
  for (int first = 0; first < E::kBatchSize; first += E::kTileRows) {
    const auto input = rows<E::kTileRows>(scratch.observation_action, first);
    forward(device, work.critic, input, work.value, work.buffer);
    loss +=
        mean_squared_error<E::kTileRows>(device, work.value.data(), scratch.target_value.row(first),
                                         static_cast<T>(E::kBatchSize), work.value_gradient.data());
    backward(device, work.critic, input, work.value, work.buffer, work.value_gradient.data(),
             work.gradient, nullptr, work.gradient_buffer);
  }
  average_critic_over_mirrors(training, work.gradient);
  adam_step(device, adam_parameters(training), work.optimizer, work.gradient, work.critic);
  return loss;
}

// One step of both critics toward target_value; fills the report and returns the sum of the
// losses.
template <class Device, class E>
typename E::Scalar update_critics(Device device, Training<E>& training, StepReport<E>& report) {
  typename E::Scalar loss[2];
  for_both_critics(device, training, [&](auto one_device, CriticWork<E> work) {
    loss[work.index] = update_critic(one_device, training, work);
  });
  report.metrics.critic_1_loss = static_cast<float>(loss[0]);
  report.metrics.critic_2_loss = static_cast<float>(loss[1]);
  return loss[0] + loss[1];
}

template <class Device, class E>
void update_critic_targets(Device device, Training<E>& training) {
  const auto rate = static_cast<typename E::Scalar>(training.hyperparameters.tau);
  for_both_critics(device, training, [&](auto one_device, CriticWork<E> work) {
    polyak_update<E::Critic::kParameterCount>(one_device, rate, work.critic.values,
                                              work.target.values);
  });
}

}  // namespace rlt
