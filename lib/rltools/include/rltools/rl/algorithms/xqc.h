// XQC (Palenicek et al. 2025, "XQC: Well-conditioned optimization accelerates deep reinforcement
// learning", arXiv 2509.25174, ICLR 2026): soft actor-critic (sac.h) whose networks have batch
// normalization and weights of unit length (nn/batch_norm_mlp.h), and whose critics give the value
// as a distribution over bins (rl/categorical_value.h) that they learn by cross-entropy.
//
// Each critic sees (s, a) and (s', a'), a' ~ pi(s'), as one batch, so that means and variances are
// those of both (CrossQ, Bhatt et al. 2024, arXiv 1902.05605). Of the two targets, which see the
// same batch, that with the smaller value of (s', a') gives the distribution that both learn:
//   r / scale + gamma (1 - terminated) (z - alpha log pi(a' | s'))
// with rewards divided as rl/return_scale.h says. Actor and temperature learn as SAC's do, at every
// policy_delay-th update, from the critics with their running means and variances.
//
// Running means and variances are averages over the updates so far, and over about the last 100:
// the authors begin with 0 and 1, which takes the first hundreds of updates to forget.
// Normalizes: observations rewards
#pragma once

#include <type_traits>

#include "rltools/core/require.h"
#include "rltools/nn/batch_norm_mlp.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/rl/algorithms/sac.h"
#include "rltools/rl/batch.h"
#include "rltools/rl/categorical_value.h"
#include "rltools/rl/learning_rate.h"
#include "rltools/rl/off_policy.h"
#include "rltools/rl/return_scale.h"
#include "rltools/rl/squashed_gaussian.h"

namespace rlt {

#define RLT_XQC_HYPERPARAMETERS(X)                                                        \
  RLT_RUN_HYPERPARAMETERS(X)                                                              \
  X(std::uint32_t, learning_starts, 5000, 1, 4294967295.0, "steps",                       \
    "Steps with uniformly random actions before the first update.")                       \
  X(std::uint32_t, gradient_steps, 2, 1, 1000, "", "Updates after each step.")            \
  X(float, learning_rate, 3e-4, 0, 1, "",                                                 \
    "Adam's learning rate, of actor, critics and temperature.")                           \
  X(float, lr_end_factor, 0.1, 0, 1, "",                                                  \
    "What is left of the learning rate at the end of the run, to which it falls evenly.") \
  X(float, gamma, 0.99, 0, 1, "", "Discount of future rewards per step.")                 \
  X(float, tau, 0.005, 0, 1, "", "Share of the trained weights in each target update.")   \
  X(std::uint32_t, policy_delay, 3, 1, 4294967295.0, "updates",                           \
    "Updates of the critics for each one of actor and temperature.")                      \
  X(float, alpha, 0.01, 1e-6, 1e6, "",                                                    \
    "Weight of the policy's entropy against the reward, at the start.")                   \
  X(float, target_entropy, -0.5, -20, 0.6931, "nat",                                      \
    "Entropy that the temperature holds the policy to, per dimension of the action.")     \
  RLT_ADAM_HYPERPARAMETERS(X)

RLT_DEFINE_HYPERPARAMETERS(XqcHyperparameters, RLT_XQC_HYPERPARAMETERS)

#define RLT_XQC_METRICS(X)                                                                      \
  X(critic_1_loss, "Cross-entropy of the first critic to its target, in nats.")                 \
  X(critic_2_loss, "Cross-entropy of the second critic to its target, in nats.")                \
  X(actor_loss, "Temperature times log-probability, minus the critics' value, of its actions.") \
  X(entropy, "Of the policy, in nats.")                                                         \
  X(alpha, "The temperature: weight of the entropy against the scaled reward.")                 \
  X(reward_factor, "What rewards are multiplied by in learning.")

RLT_DEFINE_METRICS(XqcMetrics, RLT_XQC_METRICS)

struct Xqc : OffPolicy {
  static constexpr const char* kName = "XQC";
  using Metrics = XqcMetrics;
  using Reads = ReadsNothing;

  template <class E>
  using Bins = ValueBins<E::Critic::kOutputDim>;

  // Updates over which running means and variances are averaged.
  static constexpr int kStatisticsUpdates = 100;

  // ---- What is learned --------------------------------------------------------------------------

  template <class Network>
  struct Critic {
    Network network;
    Network target;  // takes means and variances from its batch alone
    BatchNormStatistics<Network> statistics;
    AdamState<Network> optimizer;
  };

  template <class E>
  struct Learner {
    using T = typename E::Scalar;
    typename E::Actor actor;
    BatchNormStatistics<typename E::Actor> actor_statistics;
    AdamState<typename E::Actor> actor_optimizer;
    Critic<typename E::Critic> critic[2];
    sac::LogTemperature<T> log_temperature;
    AdamState<sac::LogTemperature<T>> temperature_optimizer;
    ReturnScale<kEnvironmentCount<E>> return_scale;
    Environments<E> environments;
    Progress<T> progress;
  };

  template <class Device, class E>
  static void initialize(Device device, Training<E>& training) {
    using T = typename E::Scalar;
    auto& learner = training.learner;
    const std::uint32_t seed = training.hyperparameters.seed;
    initialize_orthogonal(device, learner.actor, learner.actor_statistics, seed, 0);
    rlt::initialize(learner.actor_optimizer);
    for (int index = 0; index < 2; index++) {
      auto& critic = learner.critic[index];
      initialize_orthogonal(device, critic.network, critic.statistics, seed,
                            static_cast<std::uint32_t>(1 + index));
      critic.target = critic.network;
      rlt::initialize(critic.optimizer);
    }
    learner.log_temperature.values[0] = math::log(static_cast<T>(training.hyperparameters.alpha));
    rlt::initialize(learner.temperature_optimizer);
    rlt::initialize(learner.return_scale);
    reset_progress(training);
    clear(training.replay);
    begin_episodes(device, training);
  }

  // ---- A step of training -----------------------------------------------------------------------

  // Take a step of every environment and, once learning has begun, the updates that go with it.
  template <class Device, class E>
  static StepReport<E> train_step(Device device, Training<E>& training) {
    auto& learner = training.learner;
    const auto& hyper = training.hyperparameters;
    StepReport<E> report;
    Actions<E> action;
    explore(device, training, action);
    collect(device, training, action.data(), report, [&](int index, const auto& transition) {
      if (transition.lost) return end_return(learner.return_scale, index);
      update_return(learner.return_scale, index, static_cast<double>(hyper.gamma),
                    static_cast<double>(transition.reward), transition.ended());
    });
    if (!report.finite || report.lost) return report;
    if (learner.progress.step <= hyper.learning_starts) return report;
    for (std::uint32_t i = 0; i < hyper.gradient_steps && report.finite; i++) {
      update(device, training, report);
    }
    return report;
  }

  template <class Device, class E>
  static void restart_episodes(Device device, Training<E>& training) {
    for (int i = 0; i < kEnvironmentCount<E>; i++) end_return(training.learner.return_scale, i);
    OffPolicy::restart_episodes(device, training);
  }

  template <class E>
  static bool is_consistent(const Training<E>& training) {
    const auto& learner = training.learner;
    return rlt::is_consistent(learner.actor_statistics) &&
           rlt::is_consistent(learner.critic[0].statistics) &&
           rlt::is_consistent(learner.critic[1].statistics) &&
           rlt::is_consistent(learner.return_scale) && OffPolicy::is_consistent(training);
  }

  // Draw actions from the policy; uniformly random ones while warming up.
  template <class Device, class E>
  static void explore(Device device, Training<E>& training, Actions<E>& action) {
    using T = typename E::Scalar;
    constexpr int kAction = E::Environment::kActionDim;
    constexpr int kEnvironments = kEnvironmentCount<E>;
    if (is_warming_up(training)) return warmup_action(device, training, action);
    auto& scratch = training.scratch;
    fold_actor(training);
    auto observations = current_observations(training);
    normalize_inputs<kEnvironments>(scratch.policy_input, observations.data());
    Matrix<T, kEnvironments, 2 * kAction> output;
    forward(device, scratch.folded_actor, observations, output, scratch.exploring_buffer);
    const RandomStream random{training.hyperparameters.seed, Purpose::exploration,
                              training.learner.progress.step};
    T noise[kEnvironments * kAction], log_probability[kEnvironments];
    fill_standard_normal(device, random, noise, kEnvironments * kAction);
    sample_actions<kEnvironments, kAction>(device, output.data(), noise, action.data(),
                                           log_probability);
  }

  // Take one step of the critics and, where it is the turn of them, of actor and temperature.
  template <class Device, class E>
  static void update(Device device, Training<E>& training, StepReport<E>& report) {
    auto& learner = training.learner;
    auto& scratch = training.scratch;
    using T = typename E::Scalar;
    gather_batch(device, training);
    const T factor = static_cast<T>(reward_factor(learner.return_scale, kMaxScaledReturn));
    scale<E::kBatchSize>(device, factor, scratch.reward.data());
    report.metrics.reward_factor = static_cast<float>(factor);
    compute_target(device, training);
    update_critics(device, training, report);
    learner.progress.updates++;
    if (learner.progress.updates % training.hyperparameters.policy_delay == 0) {
      update_actor(device, training, report);
    }
  }

  // The share by which running means and variances move at the `update`-th update, from 1.
  template <class T>
  static T statistics_share(std::uint32_t update) {
    return T(1) / math::minimum(static_cast<T>(update), static_cast<T>(kStatisticsUpdates));
  }

  template <class E>
  static AdamParameters<typename E::Scalar> adam(const Training<E>& training) {
    using T = typename E::Scalar;
    const auto& hyper = training.hyperparameters;
    const T factor =
        rate_factor(static_cast<T>(hyper.lr_end_factor), progress_fraction<T>(training));
    return rlt::adam_parameters(hyper, static_cast<T>(hyper.learning_rate) * factor);
  }

  // Set scratch.critics.target, the distribution that both critics learn, and the second half of
  // scratch.observation_action: next observations with the policy's actions.
  template <class Device, class E>
  static void compute_target(Device device, Training<E>& training) {
    using T = typename E::Scalar;
    constexpr int kBatch = E::kBatchSize, kAction = E::Environment::kActionDim;
    constexpr int kBins = Bins<E>::kCount;
    auto& learner = training.learner;
    auto& scratch = training.scratch;
    const auto& hyper = training.hyperparameters;
    fold_actor(training);
    copy_columns<kBatch, Scratch<E>::kObservation, 0, E::Environment::kObservationDim>(
        device, scratch.next_observation.data(), scratch.actor_input.data());
    normalize_inputs<kBatch>(scratch.policy_input, scratch.actor_input.data());
    forward(device, scratch.folded_actor, scratch.actor_input, scratch.actor_output,
            scratch.folded_actor_buffer);
    fill_standard_normal(device, {hyper.seed, Purpose::target_noise, learner.progress.updates},
                         scratch.noise.data(), kBatch * kAction);
    sample_actions<kBatch, kAction>(device, scratch.actor_output.data(), scratch.noise.data(),
                                    scratch.action.data(), scratch.log_probability.data());
    join_columns<kBatch, Scratch<E>::kObservation, kAction>(device, scratch.next_observation.data(),
                                                            scratch.action.data(),
                                                            scratch.observation_action.row(kBatch));
    for (int index = 0; index < 2; index++) {
      forward_training<kBatch>(device, learner.critic[index].target, scratch.observation_action,
                               scratch.logits, scratch.critics.buffer);
      auto& probability = scratch.probability[index];
      softmax_rows<kBatch, kBins>(device, scratch.logits.data(), probability.data(),
                                  scratch.log_denominator.data());
      mean_values<kBatch, Bins<E>>(device, probability.data(), scratch.value[index].data());
    }
    const T alpha = Sac::temperature(training);
    for (int row = 0; row < kBatch; row++) {
      const bool first_is_smaller = scratch.value[0](row, 0) <= scratch.value[1](row, 0);
      const T discount = static_cast<T>(hyper.gamma) * scratch.not_terminated(row, 0);
      const T offset =
          math::fma(-discount * alpha, scratch.log_probability(row, 0), scratch.reward(row, 0));
      project<Bins<E>>(offset, discount, scratch.probability[first_is_smaller ? 0 : 1].row(row),
                       scratch.critics.target.row(row));
    }
  }

  // Take one Adam step of both critics on the mean cross-entropy to scratch.critics.target, and
  // move their targets.
  template <class Device, class E>
  static void update_critics(Device device, Training<E>& training, StepReport<E>& report) {
    using T = typename E::Scalar;
    constexpr int kBatch = E::kBatchSize, kBins = Bins<E>::kCount;
    constexpr T kShare = T(1) / static_cast<T>(kBatch);
    auto& learner = training.learner;
    auto& scratch = training.scratch;
    const auto parameters = adam(training);
    const T share = statistics_share<T>(learner.progress.updates + 1);
    T loss[2];
    for (int index = 0; index < 2; index++) {
      auto& critic = learner.critic[index];
      forward_training(device, critic.network, scratch.observation_action, scratch.logits,
                       scratch.critics.buffer);
      auto& probability = scratch.probability[index];
      softmax_rows<kBatch, kBins>(device, scratch.logits.data(), probability.data(),
                                  scratch.log_denominator.data());
      loss[index] = kShare * cross_entropy<kBatch, kBins>(scratch.critics.target.data(),
                                                          scratch.logits.data(), probability.data(),
                                                          scratch.log_denominator.data(), kShare,
                                                          probability.data());
      set_zero(device, scratch.critics.gradient);
      backward_training(device, critic.network, scratch.critics.buffer, probability,
                        scratch.critics.gradient, scratch.critics.gradient_buffer);
      adam_step(device, parameters, critic.optimizer, scratch.critics.gradient, critic.network);
      normalize_weights(device, critic.network);
      move_statistics(share, scratch.critics.buffer.batch, critic.statistics);
      polyak_update<E::Critic::kParameterCount>(device,
                                                static_cast<T>(training.hyperparameters.tau),
                                                critic.network.values, critic.target.values);
    }
    report.metrics.critic_1_loss = static_cast<float>(loss[0]);
    report.metrics.critic_2_loss = static_cast<float>(loss[1]);
    report.finite = report.finite && is_finite(loss[0] + loss[1]);
  }

  // Take one Adam step of the actor on the mean of alpha log pi(a | s) - min(Q1, Q2)(s, a), a ~
  // pi(s), and one of log alpha on -alpha (mean log pi + target entropy).
  template <class Device, class E>
  static void update_actor(Device device, Training<E>& training, StepReport<E>& report) {
    using T = typename E::Scalar;
    constexpr int kBatch = E::kBatchSize, kAction = E::Environment::kActionDim;
    auto& learner = training.learner;
    auto& scratch = training.scratch;
    const auto& hyper = training.hyperparameters;
    const T alpha = Sac::temperature(training);
    fill_standard_normal(device, {hyper.seed, Purpose::policy_sample, learner.progress.updates},
                         scratch.noise.data(), kBatch * kAction);
    forward_training(device, learner.actor, policy_part(device, scratch.observation, scratch),
                     scratch.actor_output, scratch.actor.buffer);
    sample_actions<kBatch, kAction>(device, scratch.actor_output.data(), scratch.noise.data(),
                                    scratch.action.data(), scratch.log_probability.data());
    for (int index = 0; index < 2; index++) evaluate_critic(device, training, index);
    T loss = T(0), log_probability = T(0);
    for (int row = 0; row < kBatch; row++) {
      const T value = math::minimum(scratch.value[0](row, 0), scratch.value[1](row, 0));
      loss += math::fma(alpha, scratch.log_probability(row, 0), -value);
      log_probability += scratch.log_probability(row, 0);
    }
    constexpr T kShare = T(-1) / static_cast<T>(kBatch);
    minimum_backward<kBatch>(device, scratch.value[0].data(), scratch.value[1].data(), kShare,
                             scratch.value_gradient[0].data(), scratch.value_gradient[1].data());
    for (int index = 0; index < 2; index++) differentiate_critic(device, training, index);
    add_scaled<kBatch * kAction>(device, T(1), scratch.actor.action_gradient[1].data(),
                                 scratch.actor.action_gradient[0].data());
    sample_actions_backward<kBatch, kAction>(
        device, scratch.actor_output.data(), scratch.noise.data(), scratch.action.data(),
        scratch.actor.action_gradient[0].data(), alpha / static_cast<T>(kBatch),
        scratch.actor_output_gradient.data());
    set_zero(device, scratch.actor.gradient);
    backward_training(device, learner.actor, scratch.actor.buffer, scratch.actor_output_gradient,
                      scratch.actor.gradient, scratch.actor.gradient_buffer);
    const auto parameters = adam(training);
    adam_step(device, parameters, learner.actor_optimizer, scratch.actor.gradient, learner.actor);
    normalize_weights(device, learner.actor);
    move_statistics(statistics_share<T>(learner.progress.updates / hyper.policy_delay),
                    scratch.actor.buffer.batch, learner.actor_statistics);
    const T mean_log_probability = log_probability / static_cast<T>(kBatch);
    Sac::update_temperature(device, training, parameters, mean_log_probability);
    report.metrics.actor_loss = static_cast<float>(loss / static_cast<T>(kBatch));
    report.metrics.entropy = static_cast<float>(-mean_log_probability);
    report.metrics.alpha = static_cast<float>(alpha);
    report.finite = report.finite && is_finite(loss);
  }

  // Set scratch.value[index] of the critic with its running means and variances, for the batch's
  // observations and scratch.action, and what differentiate_critic() needs.
  template <class Device, class E>
  static void evaluate_critic(Device device, Training<E>& training, int index) {
    constexpr int kBatch = E::kBatchSize;
    auto& scratch = training.scratch;
    auto& work = scratch.actor;
    const auto& critic = training.learner.critic[index];
    auto& input = work.critic_input[index];
    auto& probability = scratch.probability[index];
    fold(critic.network, critic.statistics, work.critic[index]);
    set_input_norm(critic.statistics, work.critic_norm[index]);
    join_columns<kBatch, Scratch<E>::kObservation, E::Environment::kActionDim>(
        device, scratch.observation.data(), scratch.action.data(), input.data());
    normalize_inputs<kBatch>(work.critic_norm[index], input.data());
    forward(device, work.critic[index], input, scratch.logits, work.critic_buffer[index]);
    softmax_rows<kBatch, Bins<E>::kCount>(device, scratch.logits.data(), probability.data(),
                                          scratch.log_denominator.data());
    mean_values<kBatch, Bins<E>>(device, probability.data(), scratch.value[index].data());
  }

  // Set scratch.actor.action_gradient[index] from scratch.value_gradient[index].
  template <class Device, class E>
  static void differentiate_critic(Device device, Training<E>& training, int index) {
    constexpr int kBatch = E::kBatchSize, kAction = E::Environment::kActionDim;
    constexpr int kObservation = Scratch<E>::kObservation;
    auto& scratch = training.scratch;
    auto& work = scratch.actor;
    auto& action_gradient = work.action_gradient[index];
    auto& gradient = scratch.logits;
    mean_values_backward<kBatch, Bins<E>>(device, scratch.probability[index].data(),
                                          scratch.value[index].data(),
                                          scratch.value_gradient[index].data(), gradient.data());
    backward_input<kObservation>(device, work.critic[index], work.critic_input[index],
                                 scratch.logits, work.critic_buffer[index], gradient.data(),
                                 action_gradient.data(), work.critic_gradient_buffer);
    const auto* scale = work.critic_norm[index].scale + kObservation;
    for (int row = 0; row < kBatch; row++) {
      for (int i = 0; i < kAction; i++) action_gradient(row, i) *= scale[i];
    }
  }

  // ---- The policy -------------------------------------------------------------------------------

  // The actor's mean, squashed, is the action once training is over. The normalization of its
  // observations is the policy's normalizer.
  template <class E>
  using PolicyNetwork =
      typename sac::WithOutputs<typename E::Actor::Folded, E::Environment::kActionDim,
                                Activation::tanh>::Type;
  template <class E>
  static constexpr bool kPolicyIsNormalized = true;

  // Set scratch.folded_actor and scratch.policy_input, with the running means and variances.
  template <class E>
  static void fold_actor(const Training<E>& training) {
    const auto& learner = training.learner;
    fold(learner.actor, learner.actor_statistics, training.scratch.folded_actor);
    set_input_norm(learner.actor_statistics, training.scratch.policy_input);
  }
  template <class E>
  static const auto& policy_normalizer(const Training<E>& training) {
    fold_actor(training);
    return training.scratch.policy_input;
  }

  // Return the folded actor without its outputs for log_std.
  template <class E>
  static const PolicyNetwork<E>& policy(const Training<E>& training) {
    fold_actor(training);
    return sac::without_log_std<E::Environment::kActionDim>(training.scratch.folded_actor,
                                                            training.scratch.policy);
  }

  // Act by the most probable action before squashing: tanh(mean).
  template <class Device, class E, class Observation, class Action>
  static void act(Device device, Training<E>& training, const Observation& observation,
                  Action& action) {
    using T = typename E::Scalar;
    const auto& network = policy(training);
    Matrix<T, 1, E::Environment::kObservationDim> seen;
    for (int i = 0; i < seen.kColumns; i++) seen(0, i) = observation.data()[i];
    normalize_inputs<1>(training.scratch.policy_input, seen.data());
    MlpBuffer<PolicyNetwork<E>, 1> buffer;
    forward(device, network, seen, action, buffer);
  }

  template <class E, class Visitor>
  static void for_each_network(const Training<E>& training, Visitor&& visitor) {
    visitor("actor", training.learner.actor);
    visitor("critic", training.learner.critic[0].network);
  }

  // ---- The experiment ---------------------------------------------------------------------------

  // An experiment E names its Environment, Actor and Critic, each a BatchNormMlp, kBatchSize,
  // kReplayCapacity and kEpisodeSteps. The actor's outputs are the mean of every dimension of the
  // action, then every log_std; the critic's are the logits of a value's bins, as many as it has
  // outputs. E's Hyperparameters are XqcHyperparameters, or derive from it with a constructor that
  // sets other defaults.
  template <class E>
  struct ExperimentContract {
    template <bool Asserts>
    static constexpr bool check() {
      using Environment = typename E::Environment;
      bool kept = ActorCriticContract<E>::template check<Asserts>();
      RLT_REQUIRE(
          (std::is_base_of_v<XqcHyperparameters, typename E::Hyperparameters>),
          "the experiment's Hyperparameters are not XqcHyperparameters nor derived from it");
      RLT_REQUIRE(kIsBatchNormMlp<typename E::Actor> && kIsBatchNormMlp<typename E::Critic>,
                  "the experiment's Actor and Critic have to be a BatchNormMlp each");
      RLT_REQUIRE(Size<E::Actor::kOutputDim>::template kIs<2 * Environment::kActionDim>,
                  "the actor's output width differs from twice the environment's action width, for "
                  "mean and log_std");
      RLT_REQUIRE(E::Critic::kOutputDim >= 2,
                  "the critic's output width, the bins of a value, is less than 2");
      return kept;
    }
  };

  // Networks and hyperparameters of a Gymnasium task, with hidden layers of these widths.
  static constexpr int kTaskBins = 101;
  template <class Environment, int... Hidden>
  using TaskActor =
      BatchNormMlp<typename Environment::Scalar, Dimensions<Environment::kObservationDim, Hidden...,
                                                            2 * Environment::kActionDim>>;
  template <class Environment, int... Hidden>
  using TaskCritic =
      BatchNormMlp<typename Environment::Scalar,
                   Dimensions<kCriticObservationDim<Environment> + Environment::kActionDim,
                              Hidden..., kTaskBins>>;
  using TaskHyperparameters = OffPolicyTaskHyperparameters<XqcHyperparameters>;

  // ---- State and scratch memory -----------------------------------------------------------------

  // Visit the state in the documented order (docs/protocol.md): networks with their statistics,
  // temperature, optimizer moments, return scale, environment, progress, replay.
  template <class E, class Visitor>
  static void for_each_state_tensor(Training<E>& training, Visitor&& visitor) {
    auto& learner = training.learner;
    auto& [first, second] = learner.critic;
    auto& returns = learner.return_scale;
    for_each_tensor("actor", learner.actor, visitor);
    for_each_tensor("actor_statistics", learner.actor_statistics, visitor);
    for_each_tensor("critic_1", first.network, visitor);
    for_each_tensor("critic_1_statistics", first.statistics, visitor);
    for_each_tensor("critic_2", second.network, visitor);
    for_each_tensor("critic_2_statistics", second.statistics, visitor);
    for_each_tensor("critic_1_target", first.target, visitor);
    for_each_tensor("critic_2_target", second.target, visitor);
    visit_array("log_temperature", learner.log_temperature.values, 1, 1, visitor);
    visit_optimizer("actor_optimizer/first_moment", "actor_optimizer/second_moment",
                    "actor_optimizer/decay_power", learner.actor_optimizer, visitor);
    visit_optimizer("critic_1_optimizer/first_moment", "critic_1_optimizer/second_moment",
                    "critic_1_optimizer/decay_power", first.optimizer, visitor);
    visit_optimizer("critic_2_optimizer/first_moment", "critic_2_optimizer/second_moment",
                    "critic_2_optimizer/decay_power", second.optimizer, visitor);
    sac::visit_temperature_optimizer(learner.temperature_optimizer, visitor);
    visit_array("return_scale/discounted_return", returns.discounted_return, kEnvironmentCount<E>,
                1, visitor);
    visit_array("return_scale/count", &returns.count, 1, 1, visitor);
    visit_array("return_scale/mean", &returns.mean, 1, 1, visitor);
    visit_array("return_scale/sum_of_squares", &returns.sum_of_squares, 1, 1, visitor);
    visit_array("return_scale/largest", &returns.largest, 1, 1, visitor);
    for_each_run_tensor(training, visitor);
  }

  // Memory of an update of the critics.
  template <class E>
  struct CriticsUpdate {
    using T = typename E::Scalar;
    static constexpr int kRows = 2 * E::kBatchSize;
    Matrix<T, E::kBatchSize, Bins<E>::kCount> target;
    BatchNormBuffer<typename E::Critic, kRows> buffer;
    GradientBuffer<T, kRows, E::Critic::widest_input()> gradient_buffer;
    typename E::Critic gradient;
  };

  // Memory of an update of the actor.
  template <class E>
  struct ActorUpdate {
    using T = typename E::Scalar;
    using FoldedCritic = typename E::Critic::Folded;
    static constexpr int kBatch = E::kBatchSize;
    BatchNormBuffer<typename E::Actor, kBatch> buffer;
    GradientBuffer<T, kBatch, E::Actor::widest_input()> gradient_buffer;
    typename E::Actor gradient;
    // The critics with their running means and variances.
    FoldedCritic critic[2];
    InputNorm<typename E::Critic> critic_norm[2];
    Matrix<T, kBatch, E::Critic::kInputDim> critic_input[2];
    MlpBuffer<FoldedCritic, kBatch> critic_buffer[2];
    GradientBuffer<T, kBatch, FoldedCritic::widest_hidden()> critic_gradient_buffer;
    Matrix<T, kBatch, E::Environment::kActionDim> action_gradient[2];
  };

  template <class E>
  struct Scratch : PolicyRows<typename E::Environment, E::kBatchSize>, TransitionScratch<E> {
    using T = typename E::Scalar;
    static constexpr int kBatch = E::kBatchSize;
    static constexpr int kObservation = kCriticObservationDim<typename E::Environment>;
    static constexpr int kAction = E::Environment::kActionDim;

    // The batch, gathered from the replay buffer, and in the second half of observation_action the
    // next observations with the policy's actions.
    Matrix<T, 2 * kBatch, kObservation + kAction> observation_action;
    Matrix<T, kBatch, kObservation> observation, next_observation;
    Matrix<T, kBatch, 1> reward;
    Matrix<T, kBatch, 1> not_terminated;  // 1, or 0 where the transition ended its episode

    // The actor's actions.
    Matrix<T, kBatch, E::Environment::kObservationDim> actor_input;
    Matrix<T, kBatch, 2 * kAction> actor_output, actor_output_gradient;  // mean, then log_std
    Matrix<T, kBatch, kAction> noise, action;
    Matrix<T, kBatch, 1> log_probability;

    // The critics' outputs.
    Matrix<T, kBatch, Bins<E>::kCount> logits, probability[2];
    Matrix<T, kBatch, 1> log_denominator, value[2], value_gradient[2];

    // The actor with its running means and variances.
    typename E::Actor::Folded folded_actor;
    InputNorm<typename E::Actor> policy_input;
    MlpBuffer<typename E::Actor::Folded, kBatch> folded_actor_buffer;
    MlpBuffer<typename E::Actor::Folded, kEnvironmentCount<E>> exploring_buffer;

    union {  // an update of the actor comes after that of the critics
      CriticsUpdate<E> critics;
      ActorUpdate<E> actor;
    };
    PolicyNetwork<E> policy;
  };
};

}  // namespace rlt
