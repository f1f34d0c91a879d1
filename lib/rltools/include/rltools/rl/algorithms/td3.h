// Twin Delayed Deep Deterministic policy gradient, TD3 (Fujimoto, van Hoof, Meger 2018, algorithm 1).
#pragma once

#include "rltools/nn/loss.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/rl/rollout.h"

namespace rlt {

// Noise is relative to the action range: actions are normalised to [-1, 1].
#define RLT_TD3_HYPERPARAMETERS(X)                                                                \
  RLT_RUN_HYPERPARAMETERS(X)                                                                      \
  X(std::uint32_t, warmup_steps, 100, 1, 4294967295.0, "steps",                                   \
    "Steps with uniformly random actions before the first update.")                               \
  X(float, learning_rate, 1e-3, 0, 1, "", "Adam's step size, of actor and critics.")              \
  X(float, discount, 0.99, 0, 1, "", "Discount of future rewards per step.")                      \
  X(float, polyak, 0.005, 0, 1, "", "Share of the trained weights in each target update.")        \
  X(float, exploration_std, 0.1, 0, 10, "", "Standard deviation of the exploration noise.")       \
  X(float, target_std, 0.2, 0, 10, "", "Standard deviation of the target policy's noise.")        \
  X(float, target_clip, 0.5, 0, 10, "", "Bound on the target policy's noise.")                    \
  X(std::uint32_t, policy_delay, 2, 1, 4294967295.0, "updates",                                   \
    "Critic updates for each update of the actor and the target networks.")                       \
  X(float, adam_beta1, 0.9, 0, 0.9999999, "", "Adam's decay rate of the first moment.")           \
  X(float, adam_beta2, 0.999, 0, 0.9999999, "", "Adam's decay rate of the second moment.")        \
  X(float, adam_epsilon, 1e-8, 1e-30, 1, "", "Adam's term against division by zero.")

RLT_DEFINE_HYPERPARAMETERS(Td3Hyperparameters, RLT_TD3_HYPERPARAMETERS)

// An experiment E names its Environment, Actor and Critic networks, kBatchSize, kTileRows (a divisor of the batch;
// activations are held for this many samples), kReplayCapacity and kEpisodeSteps.
struct Td3 {
  static constexpr const char* kName = "TD3";

  template <class E>
  struct Learner {
    using T = typename E::Scalar;
    typename E::Actor actor, actor_target;
    typename E::Critic critic_1, critic_2, critic_1_target, critic_2_target;
    AdamState<typename E::Actor> actor_optimizer;
    AdamState<typename E::Critic> critic_1_optimizer, critic_2_optimizer;
    typename E::Environment::State environment_state;
    Progress<T> progress;
  };

  // One slot more for each episode's last observation, and one for the observation under way. Where episodes end
  // early the buffer holds correspondingly fewer transitions.
  template <class E>
  using Replay = ReplayBuffer<typename E::Scalar,
                              E::kReplayCapacity +
                                  (E::kReplayCapacity + E::kEpisodeSteps - 1) / E::kEpisodeSteps + 1,
                              E::Environment::kObservationDim, E::Environment::kActionDim>;

  template <class E>
  struct Scratch {
    using T = typename E::Scalar;
    static constexpr int kBatch = E::kBatchSize;
    static constexpr int kTile = E::kTileRows;
    static constexpr int kObservation = E::Environment::kObservationDim;
    static constexpr int kAction = E::Environment::kActionDim;
    static constexpr int kWidest =
        E::Actor::max_of(E::Actor::widest_hidden(), E::Critic::widest_hidden());
    static_assert(kBatch % kTile == 0, "kTileRows must divide kBatchSize");
    static_assert(E::Actor::kInputDim == kObservation,
                  "the actor's input width differs from the environment's observation width");
    static_assert(E::Actor::kOutputDim == kAction,
                  "the actor's output width differs from the environment's action width");
    static_assert(E::Critic::kInputDim == kObservation + kAction,
                  "the critic's input width differs from observation plus action width");
    static_assert(E::Critic::kOutputDim == 1, "the critic's output width must be 1");

    // The batch, gathered from the replay buffer.
    Matrix<T, kBatch, kObservation + kAction> observation_action;
    Matrix<T, kBatch, kObservation> observation;
    Matrix<T, kBatch, kObservation> next_observation;
    Matrix<T, kBatch, kAction> target_noise;
    Matrix<T, kBatch, 1> reward;
    Matrix<T, kBatch, 1> not_terminated;  // 1, or 0 where the transition ended its episode
    Matrix<T, kBatch, 1> target_value;

    // A tile of it.
    MlpBuffer<typename E::Actor, kTile> actor_buffer;
    MlpBuffer<typename E::Critic, kTile> critic_buffer;
    GradientBuffer<T, kTile, kWidest> gradient_buffer;
    Matrix<T, kTile, kAction> action, action_gradient;
    Matrix<T, kTile, kObservation + kAction> critic_input, critic_input_gradient;
    Matrix<T, kTile, 1> value_1, value_2, value_gradient;

    typename E::Actor actor_gradient;
    typename E::Critic critic_gradient;
    MlpBuffer<typename E::Actor, 1> acting_buffer;
  };
};

template <class Device, class E>
void initialize_algorithm(Device device, Td3, Training<E>& training) {
  using T = typename E::Scalar;
  auto& learner = training.learner;
  const std::uint32_t seed = training.hyperparameters.seed;
  initialize_kaiming(device, learner.actor, seed, 0);
  initialize_kaiming(device, learner.critic_1, seed, 1);
  initialize_kaiming(device, learner.critic_2, seed, 2);
  learner.actor_target = learner.actor;
  learner.critic_1_target = learner.critic_1;
  learner.critic_2_target = learner.critic_2;
  initialize(learner.actor_optimizer);
  initialize(learner.critic_1_optimizer);
  initialize(learner.critic_2_optimizer);
  const T nan = static_cast<T>(__builtin_nanf(""));
  learner.progress = {0, 0, 0, 0, T(0), nan, nan};
  clear(training.replay);
  begin_episode(device, training);
}

template <class Device, class E, class Observation, class Action>
void act_algorithm(Device device, Td3, Training<E>& training, const Observation& observation,
                   Action& action) {
  forward(device, training.learner.actor, observation, action, training.scratch.acting_buffer);
}

namespace td3 {

// The action taken in training: uniformly random while warming up, then the policy's with Gaussian noise.
template <class Device, class E>
void exploring_action(Device device, Training<E>& training,
                      Matrix<typename E::Scalar, 1, E::Environment::kActionDim>& action) {
  using T = typename E::Scalar;
  constexpr int kAction = E::Environment::kActionDim;
  const auto& hyper = training.hyperparameters;
  const std::uint32_t step = training.learner.progress.step;
  if (step < hyper.warmup_steps) {
    fill_uniform(device, {hyper.seed, Purpose::warmup_action, step}, action.data(), kAction, T(-1),
                 T(1));
    return;
  }
  constexpr int kObservation = E::Environment::kObservationDim;
  const MatrixView<const T, 1, kObservation> observation{
      training.replay.observation + training.replay.present() * kObservation};
  forward(device, training.learner.actor, observation, action, training.scratch.acting_buffer);
  T noise[kAction];
  fill_standard_normal(device, {hyper.seed, Purpose::exploration, step}, noise, kAction);
  for (int i = 0; i < kAction; i++) {
    const T noisy = math::fma(static_cast<T>(hyper.exploration_std), noise[i], action.data()[i]);
    action.data()[i] = math::clamp(noisy, T(-1), T(1));
  }
}

// Draws a batch of transitions into the scratch memory.
template <class Device, class E>
void gather_batch(Device, Training<E>& training) {
  constexpr int kObservation = E::Environment::kObservationDim;
  constexpr int kAction = E::Environment::kActionDim;
  using T = typename E::Scalar;
  const auto& replay = training.replay;
  auto& scratch = training.scratch;
  const RandomStream random{training.hyperparameters.seed, Purpose::replay_sample,
                            training.learner.progress.updates};
  for (int sample = 0; sample < E::kBatchSize; sample++) {
    const std::uint32_t slot = sample_slot(replay, random, static_cast<std::uint32_t>(sample));
    const T* next = next_observation(replay, slot);
    for (int i = 0; i < kObservation; i++) {
      const T value = replay.observation[slot * kObservation + i];
      scratch.observation(sample, i) = value;
      scratch.observation_action(sample, i) = value;
      scratch.next_observation(sample, i) = next[i];
    }
    for (int i = 0; i < kAction; i++) {
      scratch.observation_action(sample, kObservation + i) = replay.action[slot * kAction + i];
    }
    scratch.reward(sample, 0) = replay.reward[slot];
    scratch.not_terminated(sample, 0) =
        replay.flags[slot] & Replay<E>::kTerminated ? T(0) : T(1);
  }
}

// critic_input row = (observation row, action row), for a tile
template <class E, class Observation, class Action>
void concatenate(const Observation& observation, const Action& action, Scratch<E>& scratch) {
  constexpr int kObservation = E::Environment::kObservationDim;
  for (int row = 0; row < E::kTileRows; row++) {
    for (int i = 0; i < kObservation; i++) scratch.critic_input(row, i) = observation(row, i);
    for (int i = 0; i < E::Environment::kActionDim; i++) {
      scratch.critic_input(row, kObservation + i) = action(row, i);
    }
  }
}

// target_value = reward + discount (1 - terminated) min(Q1', Q2')(s', clip(pi'(s') + clip(noise)))
template <class Device, class E>
void compute_target_values(Device device, Training<E>& training) {
  using T = typename E::Scalar;
  auto& learner = training.learner;
  auto& scratch = training.scratch;
  const auto& hyper = training.hyperparameters;
  const T clip = static_cast<T>(hyper.target_clip);
  fill_standard_normal(device,
                       {hyper.seed, Purpose::target_noise, learner.progress.updates},
                       scratch.target_noise.data(),
                       E::kBatchSize * E::Environment::kActionDim);
  for (int first = 0; first < E::kBatchSize; first += E::kTileRows) {
    const auto next_observation = rows<E::kTileRows>(scratch.next_observation, first);
    forward(device, learner.actor_target, next_observation, scratch.action, scratch.actor_buffer);
    for (int row = 0; row < E::kTileRows; row++) {
      for (int i = 0; i < E::Environment::kActionDim; i++) {
        const T noise = static_cast<T>(hyper.target_std) * scratch.target_noise(first + row, i);
        scratch.action(row, i) = math::clamp(
            scratch.action(row, i) + math::clamp(noise, -clip, clip), T(-1), T(1));
      }
    }
    concatenate<E>(next_observation, scratch.action, scratch);
    forward(device, learner.critic_1_target, scratch.critic_input, scratch.value_1,
            scratch.critic_buffer);
    forward(device, learner.critic_2_target, scratch.critic_input, scratch.value_2,
            scratch.critic_buffer);
    for (int row = 0; row < E::kTileRows; row++) {
      const T value = math::min(scratch.value_1(row, 0), scratch.value_2(row, 0));
      scratch.target_value(first + row, 0) =
          math::fma(static_cast<T>(hyper.discount) * scratch.not_terminated(first + row, 0), value,
                    scratch.reward(first + row, 0));
    }
  }
}

template <class E>
AdamParameters<typename E::Scalar> adam_parameters(const typename E::Hyperparameters& hyper) {
  using T = typename E::Scalar;
  return {static_cast<T>(hyper.learning_rate), static_cast<T>(hyper.adam_beta1),
          static_cast<T>(hyper.adam_beta2), static_cast<T>(hyper.adam_epsilon)};
}

// One Adam step on the mean of (Q(s, a) - target_value)^2; returns that mean.
template <class Device, class E>
typename E::Scalar update_critic(Device device, Training<E>& training, typename E::Critic& critic,
                                 AdamState<typename E::Critic>& optimizer) {
  using T = typename E::Scalar;
  auto& scratch = training.scratch;
  T loss = T(0);
  set_zero(scratch.critic_gradient);
  for (int first = 0; first < E::kBatchSize; first += E::kTileRows) {
    const auto input = rows<E::kTileRows>(scratch.observation_action, first);
    forward(device, critic, input, scratch.value_1, scratch.critic_buffer);
    loss += mean_squared_error<E::kTileRows>(device, scratch.value_1.data(),
                                             scratch.target_value.row(first),
                                             static_cast<T>(E::kBatchSize),
                                             scratch.value_gradient.data());
    backward(device, critic, input, scratch.value_1, scratch.critic_buffer,
             scratch.value_gradient.data(), scratch.critic_gradient, static_cast<T*>(nullptr),
             scratch.gradient_buffer);
  }
  adam_step(device, adam_parameters<E>(training.hyperparameters), optimizer,
            scratch.critic_gradient, critic);
  return loss;
}

// One Adam step on the mean of -Q1(s, pi(s)); returns that mean.
template <class Device, class E>
typename E::Scalar update_actor(Device device, Training<E>& training) {
  using T = typename E::Scalar;
  constexpr int kObservation = E::Environment::kObservationDim;
  constexpr T kBatch = static_cast<T>(E::kBatchSize);
  auto& learner = training.learner;
  auto& scratch = training.scratch;
  T loss = T(0);
  set_zero(scratch.actor_gradient);
  for (int first = 0; first < E::kBatchSize; first += E::kTileRows) {
    const auto observation = rows<E::kTileRows>(scratch.observation, first);
    forward(device, learner.actor, observation, scratch.action, scratch.actor_buffer);
    concatenate<E>(observation, scratch.action, scratch);
    forward(device, learner.critic_1, scratch.critic_input, scratch.value_1,
            scratch.critic_buffer);
    for (int row = 0; row < E::kTileRows; row++) {
      loss -= scratch.value_1(row, 0) / kBatch;
      scratch.value_gradient(row, 0) = T(-1) / kBatch;
    }
    backward_input(device, learner.critic_1, scratch.critic_input, scratch.value_1,
                   scratch.critic_buffer, scratch.value_gradient.data(),
                   scratch.critic_input_gradient.data(), scratch.gradient_buffer);
    for (int row = 0; row < E::kTileRows; row++) {
      for (int i = 0; i < E::Environment::kActionDim; i++) {
        scratch.action_gradient(row, i) = scratch.critic_input_gradient(row, kObservation + i);
      }
    }
    backward(device, learner.actor, observation, scratch.action, scratch.actor_buffer,
             scratch.action_gradient.data(), scratch.actor_gradient, static_cast<T*>(nullptr),
             scratch.gradient_buffer);
  }
  adam_step(device, adam_parameters<E>(training.hyperparameters), learner.actor_optimizer,
            scratch.actor_gradient, learner.actor);
  return loss;
}

template <class Device, class E>
void update_targets(Device device, Training<E>& training) {
  auto& learner = training.learner;
  const auto rate = static_cast<typename E::Scalar>(training.hyperparameters.polyak);
  polyak_update<E::Actor::kParameterCount>(device, rate, learner.actor.values,
                                           learner.actor_target.values);
  polyak_update<E::Critic::kParameterCount>(device, rate, learner.critic_1.values,
                                            learner.critic_1_target.values);
  polyak_update<E::Critic::kParameterCount>(device, rate, learner.critic_2.values,
                                            learner.critic_2_target.values);
}

}  // namespace td3

template <class Device, class E>
StepReport train_step_algorithm(Device device, Td3, Training<E>& training) {
  using T = typename E::Scalar;
  auto& learner = training.learner;
  StepReport report{};
  Matrix<T, 1, E::Environment::kActionDim> action;
  td3::exploring_action(device, training, action);
  collect(device, training, action.data(), report);
  T sum = learner.progress.episode_return;
  if (learner.progress.step > training.hyperparameters.warmup_steps) {
    td3::gather_batch(device, training);
    td3::compute_target_values(device, training);
    const T loss_1 =
        td3::update_critic(device, training, learner.critic_1, learner.critic_1_optimizer);
    const T loss_2 =
        td3::update_critic(device, training, learner.critic_2, learner.critic_2_optimizer);
    learner.progress.updates++;
    report.updated = true;
    report.critic_1_loss = static_cast<float>(loss_1);
    report.critic_2_loss = static_cast<float>(loss_2);
    sum += loss_1 + loss_2;
    if (learner.progress.updates % training.hyperparameters.policy_delay == 0) {
      const T actor_loss = td3::update_actor(device, training);
      td3::update_targets(device, training);
      report.actor_updated = true;
      report.actor_loss = static_cast<float>(actor_loss);
      sum += actor_loss;
    }
  }
  report.finite = math::abs(sum) <= static_cast<T>(3.4028234663852886e38);
  return report;
}

// The documented order of the state (docs/protocol.md): networks, optimiser moments, progress, environment, replay.
template <class E, class Visitor>
void for_each_state_tensor_algorithm(Td3, Training<E>& training, Visitor&& visitor) {
  using T = typename E::Scalar;
  auto& learner = training.learner;
  auto& replay = training.replay;
  const auto visit = [&](const char* name, auto* data, int rows, int columns) {
    visitor(TensorInfo{name, data_type_of(data), static_cast<std::uint32_t>(rows),
                       static_cast<std::uint32_t>(columns)},
            static_cast<void*>(data));
  };
  for_each_tensor("actor", learner.actor, visitor);
  for_each_tensor("actor_target", learner.actor_target, visitor);
  for_each_tensor("critic_1", learner.critic_1, visitor);
  for_each_tensor("critic_2", learner.critic_2, visitor);
  for_each_tensor("critic_1_target", learner.critic_1_target, visitor);
  for_each_tensor("critic_2_target", learner.critic_2_target, visitor);
  for_each_tensor("actor_optimizer/first_moment", learner.actor_optimizer.first_moment, visitor);
  for_each_tensor("actor_optimizer/second_moment", learner.actor_optimizer.second_moment, visitor);
  visit("actor_optimizer/decay_power", learner.actor_optimizer.decay_power, 2, 1);
  for_each_tensor("critic_1_optimizer/first_moment", learner.critic_1_optimizer.first_moment,
                  visitor);
  for_each_tensor("critic_1_optimizer/second_moment", learner.critic_1_optimizer.second_moment,
                  visitor);
  visit("critic_1_optimizer/decay_power", learner.critic_1_optimizer.decay_power, 2, 1);
  for_each_tensor("critic_2_optimizer/first_moment", learner.critic_2_optimizer.first_moment,
                  visitor);
  for_each_tensor("critic_2_optimizer/second_moment", learner.critic_2_optimizer.second_moment,
                  visitor);
  visit("critic_2_optimizer/decay_power", learner.critic_2_optimizer.decay_power, 2, 1);
  using State = typename E::Environment::State;
  static_assert(sizeof(State) % sizeof(T) == 0, "an environment's state is made of its Scalar");
  visit("environment_state", reinterpret_cast<T*>(&learner.environment_state),
        static_cast<int>(sizeof(State) / sizeof(T)), 1);
  visit("progress/counters", &learner.progress.step, 4, 1);
  visit("progress/returns", &learner.progress.episode_return, 3, 1);
  visit("replay/observation", replay.observation, Replay<E>::kSlots, Replay<E>::kObservationDim);
  visit("replay/action", replay.action, Replay<E>::kSlots, Replay<E>::kActionDim);
  visit("replay/reward", replay.reward, Replay<E>::kSlots, 1);
  visit("replay/flags", replay.flags, Replay<E>::kSlots, 1);
  visit("replay/position", replay.position, 2, 1);
}

}  // namespace rlt
