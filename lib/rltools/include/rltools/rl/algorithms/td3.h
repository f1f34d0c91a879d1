// Twin Delayed Deep Deterministic policy gradient, TD3 (Fujimoto et al. 2018, algorithm 1).
#pragma once

#include <type_traits>

#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/rl/off_policy.h"
#include "rltools/rl/twin_critics.h"

namespace rlt {

// Noise is relative to the action range: actions are normalized to [-1, 1].
#define RLT_TD3_HYPERPARAMETERS(X)                                                       \
  RLT_RUN_HYPERPARAMETERS(X)                                                             \
  X(std::uint32_t, learning_starts, 100, 1, 4294967295.0, "steps",                       \
    "Steps with uniformly random actions before the first update.")                      \
  X(float, learning_rate, 1e-3, 0, 1, "", "Adam's learning rate, of actor and critics.") \
  X(float, gamma, 0.99, 0, 1, "", "Discount of future rewards per step.")                \
  X(float, tau, 0.005, 0, 1, "", "Share of the trained weights in each target update.")  \
  X(float, action_noise, 0.1, 0, 10, "", "Standard deviation of the exploration noise.") \
  X(float, target_policy_noise, 0.2, 0, 10, "",                                          \
    "Standard deviation of the target policy's noise.")                                  \
  X(float, target_noise_clip, 0.5, 0, 10, "", "Bound on the target policy's noise.")     \
  X(std::uint32_t, policy_delay, 2, 1, 4294967295.0, "updates",                          \
    "Critic updates for each update of the actor and the target networks.")              \
  RLT_ADAM_HYPERPARAMETERS(X)

RLT_DEFINE_HYPERPARAMETERS(Td3Hyperparameters, RLT_TD3_HYPERPARAMETERS)

#define RLT_TD3_METRICS(X)                                                        \
  X(critic_1_loss, "Mean squared error of the first critic against its target.")  \
  X(critic_2_loss, "Mean squared error of the second critic against its target.") \
  X(actor_loss, "Minus the first critic's value of the actor's actions.")

RLT_DEFINE_METRICS(Td3Metrics, RLT_TD3_METRICS)

// An experiment E names its Environment, Actor and Critic networks, kBatchSize, kTileRows (a
// divisor of the batch; activations are held for this many samples), kReplayCapacity and
// kEpisodeSteps. Its Hyperparameters are Td3Hyperparameters, or derive from it with a constructor
// that sets other defaults.
struct Td3 : OffPolicy {
  static constexpr const char* kName = "TD3";
  using Metrics = Td3Metrics;

  // What a task of Gymnasium's learns with, which says the widths of its hidden layers.
  template <class Environment, int... Hidden>
  using TaskActor = ReluMlp<typename Environment::Scalar, Activation::tanh,
                            Environment::kObservationDim, Hidden..., Environment::kActionDim>;
  using TaskHyperparameters = OffPolicyTaskHyperparameters<Td3Hyperparameters>;

  // True where E fits together. Instantiating it says in one sentence what does not.
  template <class E>
  struct ExperimentContract : OffPolicyContract<E> {
    static constexpr int kAction = E::Environment::kActionDim;
    static constexpr bool kHyperparameters =
        std::is_base_of_v<Td3Hyperparameters, typename E::Hyperparameters>;
    static constexpr Activation kLast = E::Actor::activation(E::Actor::kLayerCount - 1);
    static constexpr bool kKept = OffPolicyContract<E>::kKept && kHyperparameters &&
                                  E::Actor::kOutputDim == kAction && kLast == Activation::tanh;
    static_assert(
        kHyperparameters,
        "the experiment's Hyperparameters are not Td3Hyperparameters nor derived from it");
    static_assert(Size<E::Actor::kOutputDim>::template kIs<kAction>,
                  "the actor's output width differs from the environment's action width");
    static_assert(kLast == Activation::tanh,
                  "the actor's last activation must be tanh, because actions lie in [-1, 1]");
  };

  template <class E>
  using PolicyNetwork = typename E::Actor;

  template <class E>
  struct Learner : OffPolicyLearner<E> {
    typename E::Actor actor_target;
  };

  template <class E>
  using Scratch = OffPolicyScratch<E>;
};

template <class Device, class E>
void initialize_algorithm(Device device, Td3, Training<E>& training) {
  initialize_off_policy(device, training);
  training.learner.actor_target = training.learner.actor;
}

template <class Device, class E, class Observation, class Action>
void act_algorithm(Device device, Td3, Training<E>& training, const Observation& observation,
                   Action& action) {
  MlpBuffer<typename E::Actor, 1> buffer;
  forward(device, policy_actor(training), seen_by_policy(training, observation), action, buffer);
}

template <class E>
const PolicyNetwork<E>& policy_algorithm(Td3, const Training<E>& training) {
  return policy_actor(training);
}

namespace td3 {

// The actions taken in training: uniformly random while warming up, then the policy's with Gaussian
// noise.
template <class Device, class E>
void exploring_action(Device device, Training<E>& training, Actions<E>& action) {
  using T = typename E::Scalar;
  constexpr int kCount = kEnvironmentCount<E> * E::Environment::kActionDim;
  const auto& hyper = training.hyperparameters;
  if (is_warming_up(training)) return warmup_action(device, training, action);
  forward(device, training.learner.actor, current_observations(training), action,
          training.scratch.exploring_buffer);
  T noise[kCount];
  fill_standard_normal(device, {hyper.seed, Purpose::exploration, training.learner.progress.step},
                       noise, kCount);
  add_noise<kCount>(device, static_cast<T>(hyper.action_noise), noise, action.data());
}

// target_value = reward + gamma (1 - terminated) min(Q1', Q2')(s', clip(pi'(s') + clip(noise)))
template <class Device, class E>
void compute_target_values(Device device, Training<E>& training) {
  using T = typename E::Scalar;
  auto& learner = training.learner;
  auto& scratch = training.scratch;
  const auto& hyper = training.hyperparameters;
  fill_standard_normal(device, {hyper.seed, Purpose::target_noise, learner.progress.updates},
                       scratch.target_noise.data(), E::kBatchSize * E::Environment::kActionDim);
  for (int first = 0; first < E::kBatchSize; first += E::kTileRows) {
    const auto next_observation = rows<E::kTileRows>(scratch.next_observation, first);
    forward(device, learner.actor_target, policy_part(device, next_observation, scratch),
            scratch.action, scratch.actor_buffer);
    add_bounded_noise<E::kTileRows * E::Environment::kActionDim>(
        device, static_cast<T>(hyper.target_policy_noise), static_cast<T>(hyper.target_noise_clip),
        scratch.target_noise.row(first), scratch.action.data());
    set_critic_input(device, training, next_observation);
    evaluate_target_critics(device, training);
    set_target_values(device, training, first);
  }
}

// One Adam step on the mean of -Q1(s, pi(s)); returns that mean.
template <class Device, class E>
typename E::Scalar update_actor(Device device, Training<E>& training) {
  using T = typename E::Scalar;
  constexpr T kBatch = static_cast<T>(E::kBatchSize);
  auto& learner = training.learner;
  auto& scratch = training.scratch;
  const CriticWork<E> critic = shared_work_of_first_critic(training);
  T loss = T(0);
  set_zero(scratch.actor_gradient);
  for (int first = 0; first < E::kBatchSize; first += E::kTileRows) {
    const auto observation = rows<E::kTileRows>(scratch.observation, first);
    const auto& seen = policy_part(device, observation, scratch);
    forward(device, learner.actor, seen, scratch.action, scratch.actor_buffer);
    set_critic_input(device, training, observation);
    forward(device, critic.critic, scratch.critic_input, critic.value, critic.buffer);
    for (int row = 0; row < E::kTileRows; row++) loss -= critic.value(row, 0) / kBatch;
    fill<E::kTileRows>(device, T(-1) / kBatch, critic.value_gradient.data());
    backward_input<Scratch<E>::kObservation>(
        device, critic.critic, scratch.critic_input, critic.value, critic.buffer,
        critic.value_gradient.data(), critic.action_gradient.data(), critic.gradient_buffer);
    backward(device, learner.actor, seen, scratch.action, scratch.actor_buffer,
             critic.action_gradient.data(), scratch.actor_gradient, nullptr,
             critic.gradient_buffer);
  }
  average_actor_over_mirrors(training, scratch.actor_gradient);
  step_actor(device, training, learner.progress.updates / training.hyperparameters.policy_delay);
  return loss;
}

template <class Device, class E>
void update_targets(Device device, Training<E>& training) {
  auto& learner = training.learner;
  const auto rate = static_cast<typename E::Scalar>(training.hyperparameters.tau);
  polyak_update<E::Actor::kParameterCount>(device, rate, learner.actor.values,
                                           learner.actor_target.values);
  update_critic_targets(device, training);
}

}  // namespace td3

template <class Device, class E>
StepReport<E> train_step_algorithm(Device device, Td3, Training<E>& training) {
  Actions<E> action;
  td3::exploring_action(device, training, action);
  return off_policy_step(device, training, action, [&](StepReport<E>& report) {
    auto& progress = training.learner.progress;
    td3::compute_target_values(device, training);
    auto sum = update_critics(device, training, report);
    progress.updates++;
    if (progress.updates % training.hyperparameters.policy_delay == 0) {
      const auto actor_loss = td3::update_actor(device, training);
      td3::update_targets(device, training);
      report.metrics.actor_loss = static_cast<float>(actor_loss);
      sum += actor_loss;
    }
    return sum;
  });
}

// The documented order of the state (docs/protocol.md): networks, optimizer moments,
// normalizer, environment, progress, replay.
template <class E, class Visitor>
void for_each_state_tensor_algorithm(Td3, Training<E>& training, Visitor&& visitor) {
  for_each_actor_tensor(training, visitor);
  for_each_tensor("actor_target", training.learner.actor_target, visitor);
  for_each_critic_tensor(training, visitor);
  for_each_optimizer_tensor(training, visitor);
  for_each_run_tensor(training, visitor);
}

}  // namespace rlt
