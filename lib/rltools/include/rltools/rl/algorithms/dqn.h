// Deep Q-learning, DQN (Mnih et al. 2015, "Human-level control through deep reinforcement
// learning", algorithm 1), and double DQN (van Hasselt, Guez and Silver 2016, arXiv 1509.06461,
// equation 4). A network gives the value of each choice; the policy takes the largest.
// Actions: choice
#pragma once

#include <type_traits>

#include "rltools/core/require.h"
#include "rltools/nn/loss.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/rl/learning_rate.h"
#include "rltools/rl/off_policy.h"

namespace rlt {

#define RLT_DQN_HYPERPARAMETERS(X)                                                               \
  RLT_RUN_HYPERPARAMETERS(X)                                                                     \
  X(std::uint32_t, learning_starts, 1000, 1, 4294967295.0, "steps",                              \
    "Steps with uniformly random choices before the first update.")                              \
  X(float, learning_rate, 1e-3, 0, 1, "", "Adam's learning rate, at the start.")                 \
  X(float, lr_end_factor, 1, 0, 1, "",                                                           \
    "Factor of the learning rate at the end; falls linearly to it.")                             \
  X(float, gamma, 0.99, 0, 1, "", "Discount of future rewards per step.")                        \
  X(float, reward_scale, 1, 1e-6, 1e6, "", "Factor of rewards in learning.")                     \
  X(float, tau, 0.01, 0, 1, "", "Share of the trained weights in each target update.")           \
  X(std::uint32_t, target_update_interval, 1, 1, 4294967295.0, "updates",                        \
    "Updates from one of the target network to the next.")                                       \
  X(std::uint32_t, train_freq, 1, 1, 4294967295.0, "steps",                                      \
    "Steps of each environment from one update to the next.")                                    \
  X(std::uint32_t, double_dqn, 1, 0, 1, "", "1: the trained network chooses in the next state.") \
  X(float, exploration_initial_eps, 1, 0, 1, "", "Share of random choices at the start.")        \
  X(float, exploration_final_eps, 0.05, 0, 1, "", "Share of random choices at the end.")         \
  X(float, exploration_fraction, 0.1, 1e-6, 1, "",                                               \
    "Part of the run in which the share of random choices falls.")                               \
  RLT_ADAM_HYPERPARAMETERS(X)

RLT_DEFINE_HYPERPARAMETERS(DqnHyperparameters, RLT_DQN_HYPERPARAMETERS)

#define RLT_DQN_METRICS(X)                                              \
  X(loss, "Huber's loss of the chosen values against their targets.")   \
  X(q_value, "Value of the choices of a batch, mean over its samples.") \
  X(epsilon, "Share of random choices.")

RLT_DEFINE_METRICS(DqnMetrics, RLT_DQN_METRICS)

struct Dqn : OffPolicy {
  static constexpr const char* kName = "DQN";
  using Metrics = DqnMetrics;
  struct Reads : ReadsNothing {
    static constexpr bool kNormalized = true, kAveragedUpdates = true;
  };

  // ---- What is learned --------------------------------------------------------------------------

  template <class E>
  struct Learner : WithNormalizer<E>, WithAverage<E, typename E::Critic> {
    typename E::Critic critic, critic_target;
    AdamState<typename E::Critic> critic_optimizer;
    Environments<E> environments;
    Progress<typename E::Scalar> progress;
  };

  template <class Device, class E>
  static void initialize(Device device, Training<E>& training) {
    auto& learner = training.learner;
    initialize_kaiming(device, learner.critic, training.hyperparameters.seed, 0);
    learner.critic_target = learner.critic;
    begin_average(training, learner.critic);
    rlt::initialize(learner.critic_optimizer);
    reset_progress(training);
    clear(training.replay);
    begin_episodes(device, training);
  }

  template <class E, class Visitor>
  static void for_each_network(const Training<E>& training, Visitor&& visitor) {
    visitor("critic", training.learner.critic);
  }

  // ---- A step of training -----------------------------------------------------------------------

  // Take a step of every environment and, where one is due, an update.
  template <class Device, class E>
  static StepReport<E> train_step(Device device, Training<E>& training) {
    using T = typename E::Scalar;
    constexpr auto kEnvironments = static_cast<std::uint32_t>(kEnvironmentCount<E>);
    const auto& hyper = training.hyperparameters;
    auto& learner = training.learner;
    StepReport<E> report;
    Actions<E> action;
    explore(device, training, action);
    report.metrics.epsilon = static_cast<float>(epsilon(training));
    collect(device, training, action.data(), report);
    if (!report.finite || report.lost) return report;
    update_normalizer(device, training);
    const std::uint32_t step = learner.progress.step;
    const bool is_due = step / kEnvironments % hyper.train_freq == 0;
    if (step <= hyper.learning_starts || !is_due) return report;
    gather_batch(device, training);
    compute_target_values(device, training);
    T value_sum;
    const T loss = update_critic(device, training, value_sum);
    learner.progress.updates++;
    update_average(device, training, learner.critic, learner.progress.updates);
    if (learner.progress.updates % hyper.target_update_interval == 0) {
      polyak_update<E::Critic::kParameterCount>(
          device, static_cast<T>(hyper.tau), learner.critic.values, learner.critic_target.values);
    }
    report.metrics.loss = static_cast<float>(loss);
    report.metrics.q_value = static_cast<float>(value_sum / static_cast<T>(E::kBatchSize));
    report.finite = report.finite && is_finite(loss);
    return report;
  }

  // Return the share of random choices, which falls linearly to its end.
  template <class E>
  static typename E::Scalar epsilon(const Training<E>& training) {
    using T = typename E::Scalar;
    const auto& hyper = training.hyperparameters;
    const T first = static_cast<T>(hyper.exploration_initial_eps),
            last = static_cast<T>(hyper.exploration_final_eps);
    const T fallen = progress_fraction<T>(training) / static_cast<T>(hyper.exploration_fraction);
    return math::fma(math::minimum(fallen, T(1)), last - first, first);
  }

  // Make the choices: random ones while warming up, then that of the largest value or, with the
  // probability epsilon, a random one.
  template <class Device, class E>
  static void explore(Device device, Training<E>& training, Actions<E>& action) {
    using T = typename E::Scalar;
    using Environment = typename E::Environment;
    constexpr int kCount = kEnvironmentCount<E>;
    const std::uint32_t seed = training.hyperparameters.seed, step = training.learner.progress.step;
    const bool is_random = is_warming_up(training);
    const T share = epsilon(training);
    Matrix<T, kCount, E::Critic::kOutputDim> values;
    if (!is_random) {
      forward(device, training.learner.critic, current_observations(training), values,
              training.scratch.exploring_buffer);
    }
    for (int i = 0; i < kCount; i++) {
      const auto number = static_cast<std::uint32_t>(i);
      const bool explores = is_random || uniform<T>({seed, Purpose::exploration, step, number}, 0,
                                                    T(0), T(1)) < share;
      const T* observation = current_observation(buffer_of(training.replay, i));
      if (explores) {
        choose_uniformly<Environment>({seed, Purpose::warmup_action, step, number}, observation,
                                      action.row(i));
      } else {
        take_outputs<Environment>(observation, values.row(i), action.row(i));
      }
    }
  }

  // target_value = reward_scale reward + gamma (1 - terminated) Q'(s', a'), where a' is the choice
  // that Q' values most in s', or the trained network where double_dqn is.
  template <class Device, class E>
  static void compute_target_values(Device device, Training<E>& training) {
    using T = typename E::Scalar;
    constexpr int kTile = E::kTileRows, kChoices = kOutputDim<typename E::Environment>;
    auto& scratch = training.scratch;
    const auto& hyper = training.hyperparameters;
    for (int first = 0; first < E::kBatchSize; first += kTile) {
      const auto next = rows<kTile>(scratch.next_observation, first);
      forward(device, training.learner.critic_target, next, scratch.target_values, scratch.buffer);
      const bool is_double = hyper.double_dqn != 0;
      if (is_double) {
        forward(device, training.learner.critic, next, scratch.values, scratch.buffer);
      }
      for (int row = 0; row < kTile; row++) {
        const auto* judged = is_double ? scratch.values.row(row) : scratch.target_values.row(row);
        const auto* seen = scratch.next_observation.row(first + row);
        const int best = largest_allowed(judged, kChoices, [&](int choice) {
          return is_allowed<typename E::Environment>(seen, choice);
        });
        scratch.value(row, 0) = scratch.target_values(row, best);
        scratch.scaled_reward(row, 0) =
            static_cast<T>(hyper.reward_scale) * scratch.reward(first + row, 0);
      }
      discounted_targets<kTile>(device, static_cast<T>(hyper.gamma), scratch.scaled_reward.data(),
                                scratch.not_terminated.row(first), scratch.value.data(),
                                scratch.target_value.row(first));
    }
  }

  // Take one Adam step on Huber's loss of Q(s, a) against target_value; return that loss, and add
  // up the values.
  template <class Device, class E>
  static typename E::Scalar update_critic(Device device, Training<E>& training,
                                          typename E::Scalar& value_sum) {
    using T = typename E::Scalar;
    constexpr int kTile = E::kTileRows;
    auto& learner = training.learner;
    auto& scratch = training.scratch;
    T loss = T(0);
    value_sum = T(0);
    set_zero(device, scratch.gradient);
    for (int first = 0; first < E::kBatchSize; first += kTile) {
      const auto observation = rows<kTile>(scratch.observation, first);
      const auto taken = [&](int row) {
        return static_cast<int>(
            scratch.observation_action(first + row, E::Environment::kObservationDim));
      };
      forward(device, learner.critic, observation, scratch.values, scratch.buffer);
      for (int row = 0; row < kTile; row++) {
        scratch.value(row, 0) = scratch.values(row, taken(row));
        value_sum += scratch.value(row, 0);
      }
      loss += huber_loss<kTile>(device, scratch.value.data(), scratch.target_value.row(first),
                                static_cast<T>(E::kBatchSize), scratch.value_gradient.data());
      for (T& gradient : scratch.values_gradient.values) gradient = T(0);
      for (int row = 0; row < kTile; row++) {
        scratch.values_gradient(row, taken(row)) = scratch.value_gradient(row, 0);
      }
      backward(device, learner.critic, observation, scratch.values, scratch.buffer,
               scratch.values_gradient.data(), scratch.gradient, nullptr, scratch.gradient_buffer);
    }
    auto adam = adam_parameters(training);
    adam.learning_rate *= rate_factor(static_cast<T>(training.hyperparameters.lr_end_factor),
                                      progress_fraction<T>(training));
    adam_step(device, adam, learner.critic_optimizer, scratch.gradient, learner.critic);
    return loss;
  }

  // ---- The policy -------------------------------------------------------------------------------

  template <class E>
  using PolicyNetwork = typename E::Critic;

  template <class E>
  static const PolicyNetwork<E>& policy(const Training<E>& training) {
    return average_of(training, training.learner.critic);
  }

  template <class Device, class E, class Observation, class Action>
  static void act(Device device, Training<E>& training, const Observation& observation,
                  Action& action) {
    Matrix<typename E::Scalar, 1, E::Critic::kOutputDim> values;
    MlpBuffer<typename E::Critic, 1> buffer;
    forward(device, policy(training), seen_by_policy(training, observation), values, buffer);
    take_outputs<typename E::Environment>(observation.data(), values.data(), action.data());
  }

  // ---- The experiment ---------------------------------------------------------------------------

  // An experiment E names its Environment, whose one action is a choice, its Critic, which has an
  // output for each choice, kBatchSize, kTileRows (a divisor of the batch; activations are held for
  // this many samples), kReplayCapacity and kEpisodeSteps. Its Hyperparameters are
  // DqnHyperparameters, or derive from it with a constructor that sets other defaults.
  template <class E>
  struct ExperimentContract {
    template <bool Asserts>
    static constexpr bool check() {
      using Environment = typename E::Environment;
      bool kept = true;
      RLT_REQUIRE((std::is_same_v<typename Environment::Scalar, typename E::Scalar>),
                  "the environment's Scalar differs from that of the experiment");
      RLT_REQUIRE(
          kIsDiscrete<Environment> && Environment::kActionDim == 1,
          "DQN learns one choice: the environment's action is not one, as choice() makes it");
      RLT_REQUIRE(
          (std::is_base_of_v<DqnHyperparameters, typename E::Hyperparameters>),
          "the experiment's Hyperparameters are not DqnHyperparameters nor derived from it");
      RLT_REQUIRE(!kIsNormalized<E> || !kChoiceMasks<Environment>.any,
                  "the experiment is kNormalized, and the environment's observations forbid "
                  "choices: PPO learns with both");
      RLT_REQUIRE(Environment::kPrivilegedDim == 0,
                  "DQN has no critic beside its policy, which could see privileged observations");
      RLT_REQUIRE(Size<E::Critic::kInputDim>::template kIs<Environment::kObservationDim>,
                  "the critic's input width differs from the environment's observation width");
      RLT_REQUIRE(Size<E::Critic::kOutputDim>::template kIs<kOutputDim<Environment>>,
                  "the critic's output width differs from the number of choices");
      RLT_REQUIRE(E::Critic::activation(E::Critic::kLayerCount - 1) == Activation::identity,
                  "the critic's last activation must be identity, because values have no bounds");
      RLT_REQUIRE(Size<E::kBatchSize % E::kTileRows>::template kIs<0>,
                  "kTileRows does not divide kBatchSize: the remainder is not 0");
      return kept;
    }
  };

  // Network and hyperparameters of a Gymnasium task, with hidden layers of these widths.
  template <class Environment, int... Hidden>
  using TaskCritic = ReluMlp<typename Environment::Scalar, Activation::identity,
                             Environment::kObservationDim, Hidden..., kOutputDim<Environment>>;
  template <class Environment, int... Hidden>
  using TaskActor = TaskCritic<Environment, Hidden...>;
  struct TaskHyperparameters : DqnHyperparameters {
    TaskHyperparameters() {
      steps = 100000;
      eval_freq = 10000;
      train_freq = 2;
    }
  };

  // ---- State and scratch memory -----------------------------------------------------------------

  // Visit the state in the documented order (docs/protocol.md): networks, optimizer moments,
  // progress, environment, replay.
  template <class E, class Visitor>
  static void for_each_state_tensor(Training<E>& training, Visitor&& visitor) {
    auto& learner = training.learner;
    for_each_tensor("critic", learner.critic, visitor);
    for_each_average_tensor("critic_average", training, visitor);
    for_each_tensor("critic_target", learner.critic_target, visitor);
    visit_optimizer("critic_optimizer/first_moment", "critic_optimizer/second_moment",
                    "critic_optimizer/decay_power", learner.critic_optimizer, visitor);
    for_each_run_tensor(training, visitor);
  }

  template <class E>
  struct Scratch : TransitionScratch<E> {
    using T = typename E::Scalar;
    static constexpr int kBatch = E::kBatchSize, kTile = E::kTileRows;
    static constexpr int kObservation = E::Environment::kObservationDim, kAction = 1;
    static constexpr int kChoices = kOutputDim<typename E::Environment>;

    // The batch, gathered from the replay buffer.
    Matrix<T, kBatch, kObservation + kAction> observation_action;
    Matrix<T, kBatch, kObservation> observation;
    Matrix<T, kBatch, kObservation> next_observation;
    Matrix<T, kBatch, 1> reward;
    Matrix<T, kBatch, 1> not_terminated;  // 1, or 0 where the transition ended its episode
    Matrix<T, kBatch, 1> target_value;

    // A tile of it.
    Matrix<T, kTile, kChoices> values, target_values, values_gradient;
    Matrix<T, kTile, 1> value, value_gradient, scaled_reward;
    MlpBuffer<typename E::Critic, kTile> buffer;
    GradientBuffer<T, kTile, E::Critic::widest_hidden()> gradient_buffer;

    typename E::Critic gradient;
    MlpBuffer<typename E::Critic, kEnvironmentCount<E>> exploring_buffer;
  };
};

}  // namespace rlt
