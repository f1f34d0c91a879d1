// Soft actor-critic, SAC, with automatic temperature (Haarnoja et al. 2018, "Soft actor-critic
// algorithms and applications", arXiv 1812.05905, algorithm 1).
//
// The actor gives, for each dimension of the action, mean and log_std of a Gaussian that is
// squashed to [-1, 1] (rl/squashed_gaussian.h).
//
// It minimizes the mean of J = alpha log pi(action | s) - min(Q1, Q2)(s, action) over the batch,
// for fixed noise (equation 9). With d log(1 - tanh(u)^2) / du = -2 tanh(u) and
// d action / du = 1 - action^2 the chain rule gives
//   dJ/du_i       = 2 alpha action_i - (1 - action_i^2) dmin(Q1, Q2)/daction_i
//   dJ/dmean_i    = dJ/du_i
//   dJ/dlog_std_i = dJ/du_i std_i noise_i - alpha
// where -alpha is all that the Gaussian's density contributes: its noise is given.
//
// The temperature alpha holds the entropy, -log pi, to a target (equation 18). With log alpha as
// the parameter:
//   J = -alpha (mean log pi + target entropy),  dJ/dlog alpha = J
//
// The critics learn as TD3's do (td3.h).
#pragma once

#include <type_traits>
#include <utility>

#include "rltools/core/require.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/rl/algorithms/td3.h"
#include "rltools/rl/batch.h"
#include "rltools/rl/off_policy.h"
#include "rltools/rl/squashed_gaussian.h"
#include "rltools/rl/twin_critics.h"

namespace rlt {

#define RLT_SAC_HYPERPARAMETERS(X)                                                      \
  RLT_RUN_HYPERPARAMETERS(X)                                                            \
  X(std::uint32_t, learning_starts, 100, 1, 4294967295.0, "steps",                      \
    "Steps with uniformly random actions before the first update.")                     \
  X(float, learning_rate, 1e-3, 0, 1, "",                                               \
    "Adam's learning rate, of actor, critics and temperature.")                         \
  X(float, gamma, 0.99, 0, 1, "", "Discount of future rewards per step.")               \
  X(float, tau, 0.005, 0, 1, "", "Share of the trained weights in each target update.") \
  X(float, alpha, 1, 1e-6, 1e6, "",                                                     \
    "Weight of the policy's entropy against the reward, at the start.")                 \
  X(float, target_entropy, -1, -20, 0.6931, "nat",                                      \
    "Entropy that the temperature holds the policy to, per dimension of the action.")   \
  RLT_ADAM_HYPERPARAMETERS(X)

RLT_DEFINE_HYPERPARAMETERS(SacHyperparameters, RLT_SAC_HYPERPARAMETERS)

#define RLT_SAC_METRICS(X)                                                        \
  X(critic_1_loss, "Mean squared error of the first critic against its target.")  \
  X(critic_2_loss, "Mean squared error of the second critic against its target.") \
  X(actor_loss, "Temperature times log-probability, minus the critics' value, of its actions.")

RLT_DEFINE_METRICS(SacMetrics, RLT_SAC_METRICS)

namespace sac {

// log alpha, as a network of one parameter for Adam.
template <class T>
struct LogTemperature {
  using Scalar = T;
  static constexpr int kParameterCount = 1;
  alignas(64) T values[1];
};

template <class T, class Visitor>
void visit_temperature_optimizer(AdamState<LogTemperature<T>>& optimizer, Visitor&& visitor) {
  visit_array("temperature_optimizer/first_moment", optimizer.first_moment.values, 1, 1, visitor);
  visit_array("temperature_optimizer/second_moment", optimizer.second_moment.values, 1, 1, visitor);
  visit_array("temperature_optimizer/decay_power", optimizer.decay_power, 2, 1, visitor);
}

// The network that is like `Network` but for `Outputs` outputs and another last activation.
template <class Network, int Outputs, Activation Output,
          class Layers = std::make_integer_sequence<int, Network::kLayerCount>>
struct WithOutputs;
template <class Network, int Outputs, Activation Output, int... Layer>
struct WithOutputs<Network, Outputs, Output, std::integer_sequence<int, Layer...>> {
  using Type = Mlp<typename Network::Scalar, Dimensions<Network::input_dim(Layer)..., Outputs>,
                   Network::activation(0), Output>;
};

// Set the policy's network from an actor's whose last layer gives means and then log_stds; return
// it.
template <int Action, class Actor, class Policy>
const Policy& without_log_std(const Actor& actor, Policy& policy) {
  constexpr int kLast = Actor::kLayerCount - 1;
  for (int i = 0; i < Actor::weights_offset(kLast); i++) policy.values[i] = actor.values[i];
  for (int in = 0; in <= Actor::input_dim(kLast); in++) {  // the last row is the bias
    for (int i = 0; i < Action; i++) {
      policy.weights(kLast)[in * Action + i] = actor.weights(kLast)[in * 2 * Action + i];
    }
  }
  return policy;
}

}  // namespace sac

struct Sac : TwinCritics {
  static constexpr const char* kName = "SAC";
  using Metrics = SacMetrics;

  // ---- What is learned --------------------------------------------------------------------------

  template <class E>
  struct Learner : TwinCriticsLearner<E> {
    using T = typename E::Scalar;
    sac::LogTemperature<T> log_temperature;
    AdamState<sac::LogTemperature<T>> temperature_optimizer;
  };

  template <class Device, class E>
  static void initialize(Device device, Training<E>& training) {
    using T = typename E::Scalar;
    auto& learner = training.learner;
    initialize_actor_and_critics(device, training);
    learner.log_temperature.values[0] = math::log(static_cast<T>(training.hyperparameters.alpha));
    rlt::initialize(learner.temperature_optimizer);
  }

  template <class E>
  static typename E::Scalar temperature(const Training<E>& training) {
    return math::exp(training.learner.log_temperature.values[0]);
  }

  // ---- A step of training -----------------------------------------------------------------------

  // Take a step of every environment and, once learning has begun, one update.
  template <class Device, class E>
  static StepReport<E> train_step(Device device, Training<E>& training) {
    auto& progress = training.learner.progress;
    StepReport<E> report;
    Actions<E> action;
    explore(device, training, action);
    collect(device, training, action.data(), report);
    if (!report.finite || report.lost) return report;
    update_normalizer(device, training);
    if (progress.step <= training.hyperparameters.learning_starts) return report;

    gather_batch(device, training);
    compute_target_values(device, training);
    const auto critic_loss = Td3::update_critics(device, training, report);
    const auto actor = update_actor(device, training);
    update_temperature(device, training, adam_parameters(training), actor.log_probability);
    update_targets(device, training);
    progress.updates++;
    report.metrics.actor_loss = static_cast<float>(actor.loss);
    report.finite = is_finite(critic_loss + actor.loss);
    return report;
  }

  // Draw actions from the policy; uniformly random ones while warming up.
  template <class Device, class E>
  static void explore(Device device, Training<E>& training, Actions<E>& action) {
    using T = typename E::Scalar;
    constexpr int kAction = E::Environment::kActionDim;
    constexpr int kEnvironments = kEnvironmentCount<E>;
    if (is_warming_up(training)) return warmup_action(device, training, action);
    const RandomStream random{training.hyperparameters.seed, Purpose::exploration,
                              training.learner.progress.step};
    Matrix<T, kEnvironments, E::Actor::kOutputDim> output;
    forward(device, training.learner.actor, current_observations(training), output,
            training.scratch.exploring_buffer);
    T noise[kEnvironments * kAction], log_probability[kEnvironments];
    fill_standard_normal(device, random, noise, kEnvironments * kAction);
    sample_actions<kEnvironments, kAction>(device, output.data(), noise, action.data(),
                                           log_probability);
  }

  // Draw scratch.action and its scratch.log_probability from the policy, for a tile of
  // observations.
  template <class Device, class E, class Observation>
  static void sample_policy(Device device, Training<E>& training, const Observation& observation,
                            const typename E::Scalar* noise) {
    auto& scratch = training.scratch;
    forward(device, training.learner.actor, observation, scratch.actor_output,
            scratch.actor_buffer);
    sample_actions<E::kTileRows, E::Environment::kActionDim>(device, scratch.actor_output.data(),
                                                             noise, scratch.action.data(),
                                                             scratch.log_probability.data());
  }

  // target_value =
  //   reward + gamma (1 - terminated) (min(Q1', Q2')(s', a') - alpha log pi(a' | s')), a' ~ pi(s')
  template <class Device, class E>
  static void compute_target_values(Device device, Training<E>& training) {
    auto& scratch = training.scratch;
    const auto alpha = temperature(training);
    fill_standard_normal(
        device,
        {training.hyperparameters.seed, Purpose::target_noise, training.learner.progress.updates},
        scratch.target_noise.data(), E::kBatchSize * E::Environment::kActionDim);
    for (int first = 0; first < E::kBatchSize; first += E::kTileRows) {
      const auto next_observation = rows<E::kTileRows>(scratch.next_observation, first);
      sample_policy(device, training, policy_part(device, next_observation, scratch),
                    scratch.target_noise.row(first));
      set_critic_input(device, training, next_observation);
      for_both_critics(device, training, [&](auto one_device, CriticWork<E> critic) {
        forward(one_device, critic.target, scratch.critic_input, critic.value, critic.buffer);
      });
      take_minimum<E::kTileRows>(device, scratch.value[1].data(), scratch.value[0].data());
      add_scaled<E::kTileRows>(device, -alpha, scratch.log_probability.data(),
                               scratch.value[0].data());
      discounted_targets<E::kTileRows>(
          device, static_cast<typename E::Scalar>(training.hyperparameters.gamma),
          scratch.reward.row(first), scratch.not_terminated.row(first), scratch.value[0].data(),
          scratch.target_value.row(first));
    }
  }

  // Results of an update of the actor: means over the batch.
  template <class T>
  struct ActorReport {
    T loss;
    T log_probability;
  };

  // action_gradient[0] = d(batch's mean of -min(Q1, Q2)(s, action)) / d action, for a tile whose
  // values are known
  template <class Device, class E>
  static void compute_action_gradient(Device device, Training<E>& training) {
    using T = typename E::Scalar;
    constexpr T kShare = T(-1) / static_cast<T>(E::kBatchSize);
    auto& scratch = training.scratch;
    minimum_backward<E::kTileRows>(device, scratch.value[0].data(), scratch.value[1].data(), kShare,
                                   scratch.value_gradient[0].data(),
                                   scratch.value_gradient[1].data());
    for_both_critics(device, training, [&](auto one_device, CriticWork<E> critic) {
      backward_input<TwinCriticsScratch<E>::kObservation>(
          one_device, critic.network, scratch.critic_input, critic.value, critic.buffer,
          critic.value_gradient.data(), critic.action_gradient.data(), critic.gradient_buffer);
    });
    add_scaled<E::kTileRows * E::Environment::kActionDim>(
        device, T(1), scratch.action_gradient[1].data(), scratch.action_gradient[0].data());
  }

  // Take one Adam step of the actor on the mean of alpha log pi(a | s) - min(Q1, Q2)(s, a), a ~
  // pi(s).
  template <class Device, class E>
  static ActorReport<typename E::Scalar> update_actor(Device device, Training<E>& training) {
    using T = typename E::Scalar;
    constexpr int kAction = E::Environment::kActionDim;
    constexpr T kBatch = static_cast<T>(E::kBatchSize);
    auto& learner = training.learner;
    auto& scratch = training.scratch;
    const T alpha = temperature(training);
    fill_standard_normal(
        device, {training.hyperparameters.seed, Purpose::policy_sample, learner.progress.updates},
        scratch.policy_noise.data(), E::kBatchSize * kAction);
    ActorReport<T> report{T(0), T(0)};  // sums until the end
    set_zero(device, scratch.actor_gradient);
    for (int first = 0; first < E::kBatchSize; first += E::kTileRows) {
      const auto observation = rows<E::kTileRows>(scratch.observation, first);
      const T* noise = scratch.policy_noise.row(first);
      const auto& seen = policy_part(device, observation, scratch);
      sample_policy(device, training, seen, noise);
      set_critic_input(device, training, observation);
      for_both_critics(device, training, [&](auto one_device, CriticWork<E> critic) {
        forward(one_device, critic.network, scratch.critic_input, critic.value, critic.buffer);
      });
      for (int row = 0; row < E::kTileRows; row++) {
        const T value = math::minimum(scratch.value[0](row, 0), scratch.value[1](row, 0));
        const T log_probability = scratch.log_probability(row, 0);
        report.loss += math::fma(alpha, log_probability, -value);
        report.log_probability += log_probability;
      }
      compute_action_gradient(device, training);
      sample_actions_backward<E::kTileRows, kAction>(
          device, scratch.actor_output.data(), noise, scratch.action.data(),
          scratch.action_gradient[0].data(), alpha / kBatch, scratch.actor_output_gradient.data());
      backward(device, learner.actor, seen, scratch.actor_output, scratch.actor_buffer,
               scratch.actor_output_gradient.data(), scratch.actor_gradient, nullptr,
               scratch.gradient_buffer[TwinCriticsScratch<E, true>::kSharedGradient]);
    }
    step_actor(device, training, learner.progress.updates + 1);
    return {report.loss / kBatch, report.log_probability / kBatch};
  }

  // Take one Adam step of log alpha on -alpha (mean log pi + target entropy).
  template <class Device, class E>
  static void update_temperature(Device device, Training<E>& training,
                                 const AdamParameters<typename E::Scalar>& parameters,
                                 typename E::Scalar mean_log_probability) {
    using T = typename E::Scalar;
    auto& learner = training.learner;
    const T target_entropy = static_cast<T>(training.hyperparameters.target_entropy) *
                             static_cast<T>(E::Environment::kActionDim);
    const sac::LogTemperature<T> gradient{
        {-temperature(training) * (mean_log_probability + target_entropy)}};
    adam_step(device, parameters, learner.temperature_optimizer, gradient, learner.log_temperature);
  }

  // target = target + tau (network - target), of both critics
  template <class Device, class E>
  static void update_targets(Device device, Training<E>& training) {
    const auto rate = static_cast<typename E::Scalar>(training.hyperparameters.tau);
    for_both_critics(device, training, [&](auto one_device, CriticWork<E> critic) {
      polyak_update<E::Critic::kParameterCount>(one_device, rate, critic.network.values,
                                                critic.target.values);
    });
  }

  // ---- The policy -------------------------------------------------------------------------------

  // The actor's mean, squashed, is the action once training is over.
  template <class E>
  using PolicyNetwork = typename sac::WithOutputs<typename E::Actor, E::Environment::kActionDim,
                                                  Activation::tanh>::Type;

  // Return the actor without its outputs for log_std.
  template <class E>
  static const PolicyNetwork<E>& policy(const Training<E>& training) {
    return sac::without_log_std<E::Environment::kActionDim>(policy_actor(training),
                                                            training.scratch.policy);
  }

  // Act by the most probable action before squashing: tanh(mean).
  template <class Device, class E, class Observation, class Action>
  static void act(Device device, Training<E>& training, const Observation& observation,
                  Action& action) {
    Matrix<typename E::Scalar, 1, E::Actor::kOutputDim> output;
    MlpBuffer<typename E::Actor, 1> buffer;
    forward(device, policy_actor(training), seen_by_policy(training, observation), output, buffer);
    activation_forward<Activation::tanh, E::Environment::kActionDim>(device, output.data(),
                                                                     action.data());
  }

  // ---- The experiment ---------------------------------------------------------------------------

  // An experiment E names its Environment, Actor and Critic networks, kBatchSize, kTileRows (a
  // divisor of the batch; activations are held for this many samples), kReplayCapacity and
  // kEpisodeSteps. The actor's outputs are the mean of every dimension of the action, then every
  // log_std. E's Hyperparameters are SacHyperparameters, or derive from it with a constructor that
  // sets other defaults.
  template <class E>
  struct ExperimentContract {
    template <bool Asserts>
    static constexpr bool check() {
      bool kept = TwinCriticsContract<E>::template check<Asserts>();
      RLT_REQUIRE(
          (std::is_base_of_v<SacHyperparameters, typename E::Hyperparameters>),
          "the experiment's Hyperparameters are not SacHyperparameters nor derived from it");
      RLT_REQUIRE(Size<E::Actor::kOutputDim>::template kIs<2 * E::Environment::kActionDim>,
                  "the actor's output width differs from twice the environment's action width, for "
                  "mean and log_std");
      RLT_REQUIRE(E::Actor::activation(E::Actor::kLayerCount - 1) == Activation::identity,
                  "the actor's last activation must be identity, because SAC squashes the action");
      return kept;
    }
  };

  // Networks and hyperparameters of a Gymnasium task, with hidden layers of these widths.
  template <class Environment, int... Hidden>
  using TaskActor = ReluMlp<typename Environment::Scalar, Activation::identity,
                            Environment::kObservationDim, Hidden..., 2 * Environment::kActionDim>;
  using TaskHyperparameters = OffPolicyTaskHyperparameters<SacHyperparameters>;

  // ---- State and scratch memory -----------------------------------------------------------------

  // Visit the state in the documented order (docs/protocol.md): networks, temperature, optimizer
  // moments, normalizer, environment, progress, replay.
  template <class E, class Visitor>
  static void for_each_state_tensor(Training<E>& training, Visitor&& visitor) {
    auto& learner = training.learner;
    for_each_actor_tensor(training, visitor);
    for_each_critic_tensor(training, visitor);
    visit_array("log_temperature", learner.log_temperature.values, 1, 1, visitor);
    for_each_optimizer_tensor(training, visitor);
    sac::visit_temperature_optimizer(learner.temperature_optimizer, visitor);
    for_each_run_tensor(training, visitor);
  }

  // Which critic gives the smaller value is known only when both have been evaluated.
  template <class E>
  struct Scratch : TwinCriticsScratch<E, true> {
    using T = typename E::Scalar;
    static constexpr int kTile = E::kTileRows;
    static constexpr int kAction = E::Environment::kActionDim;
    Matrix<T, E::kBatchSize, kAction> policy_noise;
    Matrix<T, kTile, 2 * kAction> actor_output, actor_output_gradient;  // mean, then log_std
    Matrix<T, kTile, 1> log_probability;
    PolicyNetwork<E> policy;
  };
};

}  // namespace rlt
