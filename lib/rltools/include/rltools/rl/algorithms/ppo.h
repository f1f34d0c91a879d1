// Proximal policy optimization, PPO, with a clipped objective (Schulman et al. 2017, "Proximal
// policy optimization algorithms", arXiv 1707.06347, equations 7 and 9) and generalized advantage
// estimation (Schulman et al. 2016, arXiv 1506.02438, equation 16).
//
// An iteration: the environments take kRolloutSteps steps each; then `n_epochs` times all their
// rows are gone through in another order, kBatchSize at a time, with an Adam step each. A call of
// train_step() is one step of every environment, or one of the minibatches.
//
// The policy is a Gaussian in each dimension of the action: its mean is the actor's output, the
// logarithm of its standard deviation a parameter of its own. Actions are drawn without bounds; an
// environment is given them clamped to [-1, 1]. Where actions are choices, it is a categorical
// policy, whose logits are the actor's outputs.
//
// Actor and critic may be recurrent (nn/sequential.h). Then rows are gone through in windows of
// kWindowSteps steps of an environment, a minibatch is a number of whole windows, and gradients go
// back to the beginning of a window or of an episode (rl/windows.h).
//
// An experiment that is kMirrored learns networks that compute mirrored actions for mirrored
// observations, and the same values (rl/symmetry/symmetry.h).
// Actions: numbers choice choices
#pragma once

#include <type_traits>

#include "rltools/core/require.h"
#include "rltools/nn/loss.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/nn/orthogonal.h"
#include "rltools/rl/batch.h"
#include "rltools/rl/learning_rate.h"
#include "rltools/rl/on_policy.h"
#include "rltools/rl/ppo_loss.h"
#include "rltools/rl/ppo_parameters.h"
#include "rltools/rl/rollout_values.h"
#include "rltools/rl/state_tensors.h"

namespace rlt {

namespace ppo {

// The actor's last layer is begun this much smaller: the first actions are about zero.
constexpr double kFirstOutputs = 0.01;

// A task with at most so many continuous actions learns with OrthogonalHyperparameters.
constexpr int kMaxOrthogonalActions = 3;
// Gain of orthogonal first weights: keeps the size of what ReLU lets through.
constexpr double kHiddenGain = 1.4142135623730951;

}  // namespace ppo

struct Ppo : OnPolicy {
  static constexpr const char* kName = "PPO";
  using Metrics = PpoMetrics;

  // ---- What is learned --------------------------------------------------------------------------

  template <class E>
  struct Learner {
    using T = typename E::Scalar;
    using Deviations = LogStd<T, ppo::kDeviations<E>>;
    typename E::Actor actor;
    typename E::Critic critic;
    Deviations log_std;
    T acting_log_std[sizeof(Deviations::values) / sizeof(T)];  // of the policy that acted
    AdamState<typename E::Actor> actor_optimizer;
    AdamState<typename E::Critic> critic_optimizer;
    AdamState<Deviations> log_std_optimizer;
    T learning_rate;
    Normalizer<T, kCriticObservationDim<typename E::Environment>> normalizer;
    Environments<E> environments;
    Progress<T> progress;
    std::uint32_t iteration;    // complete ones
    std::uint32_t minibatches;  // gone through in this iteration
  };

  template <class E>
  using Replay = OnPolicyRollout<E>;

  template <class Device, class E>
  static void initialize(Device device, Training<E>& training) {
    using T = typename E::Scalar;
    auto& learner = training.learner;
    const auto& hyper = training.hyperparameters;
    initialize_networks(device, training);
    make_symmetric(training, learner.actor, learner.critic);
    for (int i = 0; i < ppo::kDeviations<E>; i++) {
      learner.log_std.values[i] = learner.acting_log_std[i] = static_cast<T>(hyper.log_std_init);
    }
    rlt::initialize(learner.actor_optimizer);
    rlt::initialize(learner.critic_optimizer);
    rlt::initialize(learner.log_std_optimizer);
    learner.learning_rate = static_cast<T>(hyper.learning_rate);
    rlt::initialize(learner.normalizer);
    begin_rollouts(device, training);
    if constexpr (kSpreadsEpisodes<E>) spread_episodes(training);
  }

  template <class Device, class E>
  static void initialize_networks(Device device, Training<E>& training) {
    using T = typename E::Scalar;
    using Hyperparameters = typename E::Hyperparameters;
    auto& learner = training.learner;
    const std::uint32_t seed = training.hyperparameters.seed;
    if constexpr (std::is_base_of_v<OrthogonalHyperparameters, Hyperparameters>) {
      initialize_orthogonal(device, learner.actor, seed, 0, ppo::kHiddenGain, ppo::kFirstOutputs);
      initialize_orthogonal(device, learner.critic, seed, 1, ppo::kHiddenGain, 1);
    } else {
      initialize_kaiming(device, learner.actor, seed, 0);
      constexpr int kLast = E::Actor::kLayerCount - 1;
      for (int i = E::Actor::weights_offset(kLast); i < E::Actor::kParameterCount; i++) {
        learner.actor.values[i] *= static_cast<T>(ppo::kFirstOutputs);
      }
      initialize_kaiming(device, learner.critic, seed, 1);
    }
  }

  template <class E>
  static constexpr bool kSpreadsEpisodes =
      std::is_base_of_v<PpoTaskHyperparameters, typename E::Hyperparameters>;

  // Truncate the first episodes of a task after fewer steps, each environment's after others.
  // Otherwise all episodes that nothing ends before are at the same step for the whole run, and an
  // iteration learns from a part of an episode alone.
  template <class E>
  static void spread_episodes(Training<E>& training) {
    for (int i = 0; i < kEnvironmentCount<E>; i++) {
      training.learner.environments.episode_step[i] = steps_ahead<E>(i);
    }
  }
  // Return the step at which the first episode of environment `index` begins.
  template <class E>
  static std::uint32_t steps_ahead(int index) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(index) *
                                      static_cast<std::uint64_t>(E::kEpisodeSteps) /
                                      static_cast<std::uint64_t>(kEnvironmentCount<E>));
  }
  // Note the steps that first episodes which have just ended really had, and which of them were
  // truncated before their time. (Episodes that begin after a checkpoint are not the first ones.)
  template <class E>
  static void note_shortened(const Training<E>& training,
                             Transition<typename E::Scalar> (&transitions)[kEnvironmentCount<E>]) {
    for (int i = 1; i < kEnvironmentCount<E>; i++) {
      auto& transition = transitions[i];
      if (!transition.ended() || training.learner.environments.episodes[i] != 1) continue;
      transition.shortened =
          transition.truncated &&
          transition.episode_steps >= static_cast<std::uint32_t>(E::kEpisodeSteps);
      transition.episode_steps -= steps_ahead<E>(i);
    }
  }

  // ---- A step of training -----------------------------------------------------------------------

  // Take a step of every environment or, once the rollout is full, learn from one minibatch.
  template <class Device, class E>
  static StepReport<E> train_step(Device device, Training<E>& training) {
    constexpr auto kSteps = static_cast<std::uint32_t>(E::kRolloutSteps);
    constexpr auto kCount = static_cast<std::uint32_t>(kMinibatches<E>);
    StepReport<E> report;
    if (training.replay.size < kSteps) {
      collect_on_policy(device, training, report, [&]([[maybe_unused]] auto& transitions) {
        if constexpr (kSpreadsEpisodes<E>) note_shortened(training, transitions);
      });
    } else {
      learn(device, training, report);
      if (training.learner.minibatches >= training.hyperparameters.n_epochs * kCount) {
        auto& learner =
            training.learner;  // the next rollout is that of the policy that was learned
        for (int i = 0; i < ppo::kDeviations<E>; i++) {
          learner.acting_log_std[i] = learner.log_std.values[i];
        }
        end_iteration(device, training);
      }
    }
    return report;
  }

  // Learn from one minibatch: take an Adam step of actor, critic and log_std.
  template <class Device, class E>
  static void learn(Device device, Training<E>& training, StepReport<E>& report) {
    using T = typename E::Scalar;
    constexpr T kBatch = static_cast<T>(E::kBatchSize);
    auto& learner = training.learner;
    auto& scratch = training.scratch;
    const auto& hyper = training.hyperparameters;
    auto& metrics = report.metrics;
    const bool begins = learner.minibatches == 0;
    const bool begins_epoch = learner.minibatches % kMinibatches<E> == 0;
    if (begins || (begins_epoch && hyper.recompute_advantage != 0))
      compute_advantages(device, training);
    if (begins) metrics.explained_variance = explained_variance(device, training.replay);
    gather_minibatch(device, training);
    const auto sums = compute_gradients(device, training);
    average_over_mirrors(device, training, scratch.actor_gradient, scratch.critic_gradient,
                         scratch.log_std_gradient);
    const T norm = bound_norm(device, static_cast<T>(hyper.max_grad_norm), scratch.actor_gradient,
                              scratch.critic_gradient, scratch.log_std_gradient);
    const T factor =
        rate_factor(static_cast<T>(hyper.lr_end_factor), progress_fraction<T>(training));
    adapt_learning_rate(training, factor, sums.kl / kBatch);
    const T rate = learner.learning_rate * factor;
    const AdamParameters<T> adam = adam_parameters(hyper, rate);
    adam_step(device, adam, learner.actor_optimizer, scratch.actor_gradient, learner.actor);
    adam_step(device, adam, learner.critic_optimizer, scratch.critic_gradient, learner.critic);
    T entropy = sums.entropy / kBatch, std = T(0);
    for (int i = 0; i < ppo::kDeviations<E>; i++) {
      const T log_std = learner.log_std.values[i];
      entropy += log_std + static_cast<T>(1.4189385332046727);  // log(2 pi e) / 2
      std += math::exp(log_std);
    }
    adam_step(device, adam, learner.log_std_optimizer, scratch.log_std_gradient, learner.log_std);
    learner.minibatches++;
    learner.progress.updates++;
    metrics.policy_loss = static_cast<float>(sums.policy_loss / kBatch);
    metrics.value_loss = static_cast<float>(sums.value_loss);
    metrics.entropy = static_cast<float>(entropy);
    metrics.kl = static_cast<float>(sums.kl / kBatch);
    metrics.clip_fraction = static_cast<float>(sums.clipped) / static_cast<float>(E::kBatchSize);
    metrics.learning_rate = static_cast<float>(rate);
    if (ppo::kDeviations<E> > 0)
      metrics.action_std = static_cast<float>(std / T(ppo::kDeviations<E>));
    metrics.gradient_norm = static_cast<float>(norm);
    report.finite = is_finite(sums.policy_loss) && is_finite(sums.value_loss) && is_finite(norm);
  }

  // Gather the minibatch's rows, and their advantages and targets.
  template <class Device, class E>
  static void gather_minibatch(Device device, Training<E>& training) {
    constexpr int kBatch = E::kBatchSize;
    const auto& rollout = training.replay;
    auto& scratch = training.scratch;
    choose_rows(device, training, training.learner.iteration);
    gather<kBatch>(device, rollout.advantage, scratch.row, scratch.advantage);
    gather<kBatch>(device, rollout.target, scratch.row, scratch.target.data());
    if (training.hyperparameters.normalize_advantage == 0) return;
    standardize<kBatch>(device, scratch.advantage);
  }

  // Compute the gradients of actor, critic and log_std for the minibatch; return its sums.
  template <class Device, class E>
  static ppo::Sums<typename E::Scalar> compute_gradients(Device device, Training<E>& training) {
    using T = typename E::Scalar;
    constexpr int kTile = E::kTileRows;
    auto& learner = training.learner;
    auto& scratch = training.scratch;
    const auto& hyper = training.hyperparameters;
    const T vf_coef = static_cast<T>(hyper.vf_coef);
    const ppo::PolicyChange<E> change = ppo::policy_change(training);
    ppo::Sums<T> sums{};
    set_zero(device, scratch.actor_gradient);
    set_zero(device, scratch.critic_gradient);
    for (int i = 0; i < ppo::kDeviations<E>; i++) {
      scratch.log_std_gradient.values[i] = -static_cast<T>(hyper.ent_coef);
    }
    for (int first = 0; first < E::kBatchSize; first += kTile) {
      normalize_rows<kTile>(device, learner.normalizer, training.replay.observation,
                            scratch.row + first, scratch.observation.data());
      const auto& seen = policy_part(device, scratch.observation, scratch);
      find_beginnings(training, first);
      forward_tile(device, training, learner.actor, actor_state_of(training.replay), first, seen,
                   scratch.tile_mean, scratch.actor_buffer);
      policy_loss_of_tile(device, training, change, first, sums);
      backward_tile(device, training, learner.actor, seen, scratch.tile_mean, scratch.actor_buffer,
                    scratch.mean_gradient.data(), scratch.actor_gradient);
      forward_tile(device, training, learner.critic, critic_state_of(training.replay), first,
                   scratch.observation, scratch.value, scratch.critic_buffer);
      sums.value_loss +=
          mean_squared_error<kTile>(device, scratch.value.data(), scratch.target.row(first),
                                    static_cast<T>(E::kBatchSize), scratch.value_gradient.data());
      scale<kTile>(device, vf_coef, scratch.value_gradient.data());
      backward_tile(device, training, learner.critic, scratch.observation, scratch.value,
                    scratch.critic_buffer, scratch.value_gradient.data(), scratch.critic_gradient);
    }
    return sums;
  }

  // Adapt the learning rate to the divergence of a minibatch. The first one of an iteration has the
  // policy that acted, whose divergence says nothing.
  template <class E>
  static void adapt_learning_rate(Training<E>& training, typename E::Scalar factor,
                                  typename E::Scalar kl) {
    using T = typename E::Scalar;
    const auto& hyper = training.hyperparameters;
    auto& learner = training.learner;
    if (hyper.adaptive_lr == 0 || learner.minibatches == 0) return;
    const T target = scheduled_divergence(static_cast<T>(hyper.target_kl), factor);
    learner.learning_rate = adapted_rate(learner.learning_rate, kl, target);
  }

  // ---- The experiment ---------------------------------------------------------------------------

  // An experiment E names its Environment, Actor and Critic networks, kEnvironments, kRolloutSteps,
  // kBatchSize (a divisor of the product of these two), kTileRows (a divisor of the batch;
  // activations are held for this many samples) and kEpisodeSteps; where a network is recurrent,
  // kWindowSteps (a divisor of rollout steps and tile). Its Hyperparameters are PpoHyperparameters,
  // or derive from it with a constructor that sets other defaults.
  template <class E>
  struct ExperimentContract {
    template <bool Asserts>
    static constexpr bool check() {
      bool kept = OnPolicyContract<E>::template check<Asserts>();
      RLT_REQUIRE(
          (std::is_base_of_v<PpoHyperparameters, typename E::Hyperparameters>),
          "the experiment's Hyperparameters are not PpoHyperparameters nor derived from it");
      RLT_REQUIRE(E::Actor::activation(E::Actor::kLayerCount - 1) == Activation::identity,
                  "the actor's last activation must be identity, because PPO clamps the action");
      return kept;
    }
  };

  // Networks and hyperparameters of a Gymnasium task, with hidden layers of these widths.
  template <class Environment, int... Hidden>
  using TaskActor = ReluMlp<typename Environment::Scalar, Activation::identity,
                            Environment::kObservationDim, Hidden..., kOutputDim<Environment>>;
  template <class Environment, int... Hidden>
  using TaskCritic = ReluMlp<typename Environment::Scalar, Activation::identity,
                             kCriticObservationDim<Environment>, Hidden..., 1>;
  using TaskHyperparameters = PpoTaskHyperparameters;
  using OrthogonalHyperparameters = PpoOrthogonalHyperparameters;
  template <class Environment>
  using HyperparametersOfTask =
      std::conditional_t<!kIsDiscrete<Environment> &&
                             Environment::kActionDim <= ppo::kMaxOrthogonalActions,
                         OrthogonalHyperparameters, TaskHyperparameters>;

  // ---- State and scratch memory -----------------------------------------------------------------

  // Visit the state in the documented order (docs/protocol.md): networks, deviations, optimizer
  // moments, normalizer, progress, environments, rollout, hidden states.
  template <class E, class Visitor>
  static void for_each_state_tensor(Training<E>& training, Visitor&& visitor) {
    constexpr int kCount = ppo::kDeviations<E>;
    auto& learner = training.learner;
    auto& log_std = learner.log_std_optimizer;
    for_each_tensor("actor", learner.actor, visitor);
    for_each_tensor("critic", learner.critic, visitor);
    if constexpr (kCount > 0) {
      visit_array("log_std", learner.log_std.values, kCount, 1, visitor);
      visit_array("acting_log_std", learner.acting_log_std, kCount, 1, visitor);
    }
    visit_optimizer("actor_optimizer/first_moment", "actor_optimizer/second_moment",
                    "actor_optimizer/decay_power", learner.actor_optimizer, visitor);
    visit_optimizer("critic_optimizer/first_moment", "critic_optimizer/second_moment",
                    "critic_optimizer/decay_power", learner.critic_optimizer, visitor);
    if constexpr (kCount > 0) {
      visit_array("log_std_optimizer/first_moment", log_std.first_moment.values, kCount, 1,
                  visitor);
      visit_array("log_std_optimizer/second_moment", log_std.second_moment.values, kCount, 1,
                  visitor);
      visit_array("log_std_optimizer/decay_power", log_std.decay_power, 2, 1, visitor);
    }
    visit_array("learning_rate", &learner.learning_rate, 1, 1, visitor);
    for_each_normalizer_tensor(learner.normalizer, visitor);
    for_each_environment_tensor(training, visitor);
    visit_progress("iteration", &learner.iteration, 1, false, visitor);
    visit_progress("minibatches", &learner.minibatches, 1, false, visitor);
    for_each_rollout_tensor(training.replay, visitor);
    for_each_state_of_rollout(training.replay, visitor);
  }

  template <class E>
  struct Scratch : OnPolicyScratch<E> {
    using T = typename E::Scalar;
    static constexpr int kBatch = E::kBatchSize, kTile = E::kTileRows;
    static constexpr int kOutput = kOutputDim<typename E::Environment>;
    static constexpr int kWidest =
        E::Actor::max_of(E::Actor::widest_hidden(), E::Critic::widest_hidden());

    // A minibatch: its rows of the rollout, their advantages and targets.
    std::uint32_t row[kBatch];
    T advantage[kBatch];
    Matrix<T, kBatch, 1> target;

    // A tile of it.
    Matrix<T, kTile, kOutput> tile_mean, mean_gradient;
    Matrix<T, kTile, 1> value_gradient;
    TileBuffer<E, typename E::Actor> actor_buffer;
    TileGradientBuffer<E, kWidest> gradient_buffer;

    typename E::Actor actor_gradient;
    typename E::Critic critic_gradient;
    LogStd<T, ppo::kDeviations<E>> log_std_gradient;
  };
};

}  // namespace rlt
