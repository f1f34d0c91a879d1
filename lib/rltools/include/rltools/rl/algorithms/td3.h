// Twin Delayed Deep Deterministic policy gradient, TD3 (Fujimoto et al. 2018, algorithm 1).
//
// The file reads from top to bottom: hyperparameters, what is learned, and a step of training in
// the order in which it happens: actions with noise, target values, the critics' update, the
// actor's update, the targets' update. Then what an experiment states, and the scratch memory.
#pragma once

#include <type_traits>

#include "rltools/core/require.h"
#include "rltools/nn/loss.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/rl/batch.h"
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

struct Td3 : TwinCritics {
  static constexpr const char* kName = "TD3";
  using Metrics = Td3Metrics;

  // ---- What is learned --------------------------------------------------------------------------

  // Actor, both critics, their targets and optimizers.
  template <class E>
  struct Learner : TwinCriticsLearner<E> {
    typename E::Actor actor_target;
  };

  template <class Device, class E>
  static void initialize(Device device, Training<E>& training) {
    initialize_actor_and_critics(device, training);
    training.learner.actor_target = training.learner.actor;
  }

  // ---- A step of training -----------------------------------------------------------------------

  // Take a step of every environment and, once learning has begun, one update.
  template <class Device, class E>
  static StepReport<E> train_step(Device device, Training<E>& training) {
    const auto& hyper = training.hyperparameters;
    auto& progress = training.learner.progress;
    StepReport<E> report;
    Actions<E> action;
    explore(device, training, action);
    collect(device, training, action.data(), report);
    if (!report.finite || report.lost) return report;
    update_normalizer(device, training);
    if (progress.step <= hyper.learning_starts) return report;

    gather_batch(device, training);
    compute_target_values(device, training);
    auto loss_sum = update_critics(device, training, report);
    progress.updates++;
    if (progress.updates % hyper.policy_delay == 0) {
      const auto actor_loss = update_actor(device, training);
      update_targets(device, training);
      report.metrics.actor_loss = static_cast<float>(actor_loss);
      loss_sum += actor_loss;
    }
    report.finite = is_finite(loss_sum);
    return report;
  }

  // action = clip(pi(s) + action_noise N(0, 1)); uniformly random while warming up
  template <class Device, class E>
  static void explore(Device device, Training<E>& training, Actions<E>& action) {
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
  static void compute_target_values(Device device, Training<E>& training) {
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
          device, static_cast<T>(hyper.target_policy_noise),
          static_cast<T>(hyper.target_noise_clip), scratch.target_noise.row(first),
          scratch.action.data());
      set_critic_input(device, training, next_observation);
      for_both_critics(device, training, [&](auto one_device, CriticWork<E> critic) {
        forward(one_device, critic.target, scratch.critic_input, critic.value, critic.buffer);
      });
      take_minimum<E::kTileRows>(device, scratch.value[1].data(), scratch.value[0].data());
      discounted_targets<E::kTileRows>(device, static_cast<T>(hyper.gamma),
                                       scratch.reward.row(first), scratch.not_terminated.row(first),
                                       scratch.value[0].data(), scratch.target_value.row(first));
    }
  }

  // Take one Adam step of each critic on the mean of (Q(s, a) - target_value)^2; fill the report
  // and return the sum of these means.
  template <class Device, class E>
  static typename E::Scalar update_critics(Device device, Training<E>& training,
                                           StepReport<E>& report) {
    typename E::Scalar loss[2];
    for_both_critics(device, training, [&](auto one_device, CriticWork<E> critic) {
      loss[critic.index] = update_critic(one_device, training, critic);
    });
    report.metrics.critic_1_loss = static_cast<float>(loss[0]);
    report.metrics.critic_2_loss = static_cast<float>(loss[1]);
    return loss[0] + loss[1];
  }

  // Take the step of one of them; return its mean.
  template <class Device, class E>
  static typename E::Scalar update_critic(Device device, const Training<E>& training,
                                          CriticWork<E> critic) {
    using T = typename E::Scalar;
    const auto& scratch = training.scratch;
    T loss = T(0);
    set_zero(device, critic.gradient);
    for (int first = 0; first < E::kBatchSize; first += E::kTileRows) {
      const auto input = rows<E::kTileRows>(scratch.observation_action, first);
      forward(device, critic.network, input, critic.value, critic.buffer);
      loss += mean_squared_error<E::kTileRows>(
          device, critic.value.data(), scratch.target_value.row(first),
          static_cast<T>(E::kBatchSize), critic.value_gradient.data());
      backward(device, critic.network, input, critic.value, critic.buffer,
               critic.value_gradient.data(), critic.gradient, nullptr, critic.gradient_buffer);
    }
    step_critic(device, training, critic);
    return loss;
  }

  // Take one Adam step of the actor on the mean of -Q1(s, pi(s)); return that mean.
  template <class Device, class E>
  static typename E::Scalar update_actor(Device device, Training<E>& training) {
    using T = typename E::Scalar;
    constexpr T kBatch = static_cast<T>(E::kBatchSize);
    auto& learner = training.learner;
    auto& scratch = training.scratch;
    const CriticWork<E> critic = first_critic(training);
    T loss = T(0);
    set_zero(device, scratch.actor_gradient);
    for (int first = 0; first < E::kBatchSize; first += E::kTileRows) {
      const auto observation = rows<E::kTileRows>(scratch.observation, first);
      const auto& seen = policy_part(device, observation, scratch);
      forward(device, learner.actor, seen, scratch.action, scratch.actor_buffer);
      set_critic_input(device, training, observation);
      forward(device, critic.network, scratch.critic_input, critic.value, critic.buffer);
      loss = subtract_quotients<E::kTileRows>(device, loss, critic.value.data(), kBatch);
      fill<E::kTileRows>(device, T(-1) / kBatch, critic.value_gradient.data());
      backward_input<TwinCriticsScratch<E>::kObservation>(
          device, critic.network, scratch.critic_input, critic.value, critic.buffer,
          critic.value_gradient.data(), critic.action_gradient.data(), critic.gradient_buffer);
      backward(device, learner.actor, seen, scratch.action, scratch.actor_buffer,
               critic.action_gradient.data(), scratch.actor_gradient, nullptr,
               critic.gradient_buffer);
    }
    step_actor(device, training, learner.progress.updates / training.hyperparameters.policy_delay);
    return loss;
  }

  // target = target + tau (network - target), of actor and critics
  template <class Device, class E>
  static void update_targets(Device device, Training<E>& training) {
    auto& learner = training.learner;
    const auto rate = static_cast<typename E::Scalar>(training.hyperparameters.tau);
    polyak_update<E::Actor::kParameterCount>(device, rate, learner.actor.values,
                                             learner.actor_target.values);
    for_both_critics(device, training, [&](auto one_device, CriticWork<E> critic) {
      polyak_update<E::Critic::kParameterCount>(one_device, rate, critic.network.values,
                                                critic.target.values);
    });
  }

  // ---- The policy -------------------------------------------------------------------------------

  template <class E>
  using PolicyNetwork = typename E::Actor;

  template <class E>
  static const PolicyNetwork<E>& policy(const Training<E>& training) {
    return policy_actor(training);
  }

  template <class Device, class E, class Observation, class Action>
  static void act(Device device, Training<E>& training, const Observation& observation,
                  Action& action) {
    MlpBuffer<typename E::Actor, 1> buffer;
    forward(device, policy_actor(training), seen_by_policy(training, observation), action, buffer);
  }

  // ---- The experiment ---------------------------------------------------------------------------

  // An experiment E names its Environment, Actor and Critic networks, kBatchSize, kTileRows (a
  // divisor of the batch; activations are held for this many samples), kReplayCapacity and
  // kEpisodeSteps. Its Hyperparameters are Td3Hyperparameters, or derive from it with a constructor
  // that sets other defaults.
  template <class E>
  struct ExperimentContract {
    template <bool Asserts>
    static constexpr bool check() {
      bool kept = TwinCriticsContract<E>::template check<Asserts>();
      RLT_REQUIRE(
          (std::is_base_of_v<Td3Hyperparameters, typename E::Hyperparameters>),
          "the experiment's Hyperparameters are not Td3Hyperparameters nor derived from it");
      RLT_REQUIRE(Size<E::Actor::kOutputDim>::template kIs<E::Environment::kActionDim>,
                  "the actor's output width differs from the environment's action width");
      RLT_REQUIRE(E::Actor::activation(E::Actor::kLayerCount - 1) == Activation::tanh,
                  "the actor's last activation must be tanh, because actions lie in [-1, 1]");
      return kept;
    }
  };

  // Networks and hyperparameters of a Gymnasium task, with hidden layers of these widths.
  template <class Environment, int... Hidden>
  using TaskActor = ReluMlp<typename Environment::Scalar, Activation::tanh,
                            Environment::kObservationDim, Hidden..., Environment::kActionDim>;
  using TaskHyperparameters = OffPolicyTaskHyperparameters<Td3Hyperparameters>;

  // ---- State and scratch memory -----------------------------------------------------------------

  // Visit the state in the documented order (docs/protocol.md): networks, optimizer moments,
  // normalizer, environment, progress, replay.
  template <class E, class Visitor>
  static void for_each_state_tensor(Training<E>& training, Visitor&& visitor) {
    for_each_actor_tensor(training, visitor);
    for_each_tensor("actor_target", training.learner.actor_target, visitor);
    for_each_critic_tensor(training, visitor);
    for_each_optimizer_tensor(training, visitor);
    for_each_run_tensor(training, visitor);
  }

  template <class E>
  using Scratch = TwinCriticsScratch<E>;
};

}  // namespace rlt
