// The shared parts of off-policy algorithms (td3.h, sac.h, dqn.h): steps of the environments into
// the replay buffer, and batches from it. The two critics of TD3 and SAC: twin_critics.h.
#pragma once

#include <type_traits>

#include "rltools/core/finite.h"
#include "rltools/core/math.h"
#include "rltools/core/require.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/rl/batch.h"
#include "rltools/rl/learning_rate.h"
#include "rltools/rl/normalizer.h"
#include "rltools/rl/privileged.h"
#include "rltools/rl/replay_buffer.h"
#include "rltools/rl/state_tensors.h"
#include "rltools/rl/training.h"

namespace rlt {

// One slot more for each episode's last observation, and one for the observation under way. Where
// episodes end early the buffer holds correspondingly fewer transitions.
template <class E, int Transitions>
using ReplayOfOne =
    ReplayBuffer<typename E::Scalar,
                 Transitions + (Transitions + E::kEpisodeSteps - 1) / E::kEpisodeSteps + 1,
                 kCriticObservationDim<typename E::Environment>, E::Environment::kActionDim>;

// The environments have equal shares of the capacity.
template <class E>
using OffPolicyReplay = std::conditional_t<
    kEnvironmentCount<E> == 1, ReplayOfOne<E, E::kReplayCapacity>,
    ReplayBuffers<
        ReplayOfOne<E, (E::kReplayCapacity + kEnvironmentCount<E> - 1) / kEnvironmentCount<E>>,
        kEnvironmentCount<E>>>;

// The normalizer of a kNormalized experiment, of all that critics see. A base of the learner, for
// it to take no space elsewhere.
template <class E, bool Kept = kIsNormalized<E>>
struct WithNormalizer {};
template <class E>
struct WithNormalizer<E, true> {
  Normalizer<typename E::Scalar, kCriticObservationDim<typename E::Environment>> normalizer;
};

// The hyperparameter of a kNormalized experiment by which a run decides to normalize. Without it
// shift and scale stay 0 and 1, and change no bit.
#define RLT_NORMALIZER_HYPERPARAMETERS(X) \
  X(std::uint32_t, norm_obs, 1, 0, 1, "", "1: observations are normalized.")

RLT_DEFINE_HYPERPARAMETERS(NormalizerHyperparameters, RLT_NORMALIZER_HYPERPARAMETERS)

struct DecidesToNormalize {};
template <class Hyperparameters>
struct WithNormObs : DecidesToNormalize,
                     JoinedHyperparameters<Hyperparameters, NormalizerHyperparameters> {
  bool norm_obs() const { return this->environment.norm_obs != 0; }
};

// Return whether a kNormalized experiment normalizes in this run.
template <class E>
bool normalizes([[maybe_unused]] const Training<E>& training) {
  if constexpr (std::is_base_of_v<DecidesToNormalize, typename E::Hyperparameters>) {
    return training.hyperparameters.norm_obs();
  } else {
    return true;
  }
}

// The average of the weights of a kAveragedUpdates experiment's `Network`, which is its policy. A
// base of the learner, for it to take no space elsewhere.
template <class E, class Network, bool Kept = (kAveragedUpdates<E> > 0)>
struct WithAverage {};
template <class E, class Network>
struct WithAverage<E, Network, true> {
  Network average;
};

// Defaults of a Gymnasium task.
template <class Hyperparameters>
struct OffPolicyTaskHyperparameters : Hyperparameters {
  OffPolicyTaskHyperparameters() {
    this->steps = 100000;
    this->eval_freq = 10000;
    this->learning_starts = 1000;
  }
};

// ---- Steps of the environments ------------------------------------------------------------------

template <class E>  // an action for each environment
using Actions = Matrix<typename E::Scalar, kEnvironmentCount<E>, E::Environment::kActionDim>;

// Return whether no update has been done yet: actions are uniformly random until then.
template <class E>
bool is_warming_up(const Training<E>& training) {
  return training.learner.progress.step < training.hyperparameters.learning_starts;
}

// Draw uniformly random actions.
template <class Device, class E>
void warmup_action(Device device, const Training<E>& training, Actions<E>& action) {
  using T = typename E::Scalar;
  const RandomStream random{training.hyperparameters.seed, Purpose::warmup_action,
                            training.learner.progress.step};
  fill_uniform(device, random, action.data(), kEnvironmentCount<E> * E::Environment::kActionDim,
               T(-1), T(1));
}

// Return the observations (environments, ObservationDim) that the next actions answer, as the
// policy sees them.
template <class E>
Matrix<typename E::Scalar, kEnvironmentCount<E>, E::Environment::kObservationDim>
current_observations(const Training<E>& training) {
  constexpr int kObservation = E::Environment::kObservationDim;
  Matrix<typename E::Scalar, kEnvironmentCount<E>, kObservation> observations;
  for (int index = 0; index < kEnvironmentCount<E>; index++) {
    const auto& buffer = buffer_of(training.replay, index);
    const auto* present =
        buffer.observation + buffer.position * kCriticObservationDim<typename E::Environment>;
    if constexpr (kIsNormalized<E>) {
      normalize_part<kObservation>(training.learner.normalizer, present, observations.row(index));
    } else {
      for (int i = 0; i < kObservation; i++) observations(index, i) = present[i];
    }
  }
  return observations;
}

namespace detail {

// Writes what step_all() finds into the replay buffer. A truncated episode is not stored as
// terminated.
template <class E>
struct IntoReplay {
  using T = typename E::Scalar;
  Replay<E>& replay;
  const T* action;
  Transition<T>* transitions;

  T* reached(int index, const Transition<T>& transition) const {
    transitions[index] = transition;
    auto& buffer = buffer_of(replay, index);
    if constexpr (kIsExternal<typename E::Environment>) {  // the observation is the present one
      if (transition.lost) return current_observation(buffer);
    }
    record(buffer, action + index * E::Environment::kActionDim, transition.reward,
           transition.terminated);
    return advance(buffer);
  }
  T* begun(int index) const { return advance(buffer_of(replay, index)); }
  void non_finite(int index) const { transitions[index].non_finite = true; }
};

}  // namespace detail

// Begin the first episodes; the replay buffer has their first observations, and so has the
// normalizer.
template <class Device, class E>
void begin_episodes(Device device, Training<E>& training) {
  begin_all(device, environment_of(training), training.learner.environments,
            training.hyperparameters.seed,
            [&](int index) { return advance(buffer_of(training.replay, index)); });
  if constexpr (kIsNormalized<E>) initialize(training.learner.normalizer);
  update_normalizer(device, training);
}

// Take `action` (environments, ActionDim) in the environments and store the transitions; fill the
// report's fields of episodes; call note(index, transition) for those that are finite, also those
// that are lost. An action that is not finite is a fault: no environment is stepped with it. So is
// a reward, a sum of rewards, or an observation.
template <class Device, class E, class Note>
void collect(Device device, Training<E>& training, const typename E::Scalar* action,
             StepReport<E>& report, Note&& note) {
  constexpr int kEnvironments = kEnvironmentCount<E>;
  auto& progress = training.learner.progress;
  if (!all_finite(action, kEnvironments * E::Environment::kActionDim)) {
    return note_no_action(
        report, [&](int index) { return current_observation(buffer_of(training.replay, index)); });
  }
  auto& transitions = training.scratch.transitions;
  step_all(device, environment_of(training), training.learner.environments,
           training.hyperparameters.seed, progress.step,
           static_cast<std::uint32_t>(E::kEpisodeSteps), action,
           detail::IntoReplay<E>{training.replay, action, transitions});
  progress.step += static_cast<std::uint32_t>(kEnvironments);
  note_transitions(device, progress, transitions, action, report);
  for (int index = 0; index < kEnvironments; index++) {
    if (!transitions[index].non_finite) note(index, transitions[index]);
  }
}
template <class Device, class E>
void collect(Device device, Training<E>& training, const typename E::Scalar* action,
             StepReport<E>& report) {
  collect(device, training, action, report, [](int, const auto&) {});
}

// Update the normalizer with the observations that the next actions answer.
template <class Device, class E>
void update_normalizer([[maybe_unused]] Device device, [[maybe_unused]] Training<E>& training) {
  if constexpr (kIsNormalized<E>) {
    if (!normalizes(training)) return;
    constexpr int kSeen = kCriticObservationDim<typename E::Environment>;
    Matrix<typename E::Scalar, kEnvironmentCount<E>, kSeen> present;
    for (int index = 0; index < kEnvironmentCount<E>; index++) {
      const auto* row = current_observation(buffer_of(training.replay, index));
      for (int i = 0; i < kSeen; i++) present(index, i) = row[i];
    }
    update_moments(device, training.learner.normalizer, present.data(), kEnvironmentCount<E>);
    average_over_mirrors(device, training, training.learner.normalizer);
  }
}

// Return an observation (1, ObservationDim) as the policy sees it.
template <class E, class Observation>
decltype(auto) seen_by_policy([[maybe_unused]] const Training<E>& training,
                              const Observation& observation) {
  if constexpr (kIsNormalized<E>) {
    constexpr int kObservation = E::Environment::kObservationDim;
    Matrix<typename E::Scalar, 1, kObservation> seen;
    normalize_part<kObservation>(training.learner.normalizer, observation.data(), seen.data());
    return seen;
  } else {
    return (observation);
  }
}

// ---- A batch ------------------------------------------------------------------------------------

// Draw a batch of transitions into the scratch memory: observation, next_observation,
// observation_action, reward and not_terminated. The replay buffer keeps observations as they were;
// they are normalized here, by what is known of them now.
template <class Device, class E>
void gather_batch(Device device, Training<E>& training) {
  const RandomStream random{training.hyperparameters.seed, Purpose::replay_sample,
                            training.learner.progress.updates};
  std::uint32_t numbers[E::kBatchSize];
  sample_slots(device, training.replay, random, numbers, E::kBatchSize);
  auto& scratch = training.scratch;
  gather_transitions(device, training.replay, numbers, scratch);
  if constexpr (kIsNormalized<E>) {
    constexpr int kSeen = Scratch<E>::kObservation, kAction = Scratch<E>::kAction;
    const auto& normalizer = training.learner.normalizer;
    normalize_columns<E::kBatchSize, kSeen>(device, normalizer, scratch.observation.data());
    normalize_columns<E::kBatchSize, kSeen>(device, normalizer, scratch.next_observation.data());
    normalize_columns<E::kBatchSize, kSeen + kAction>(device, normalizer,
                                                      scratch.observation_action.data());
  }
}

// ---- The average of the policy's network --------------------------------------------------------

// Set the average to the network's first weights, where one is kept.
template <class E, class Network>
void begin_average([[maybe_unused]] Training<E>& training,
                   [[maybe_unused]] const Network& network) {
  if constexpr (kAveragedUpdates<E> > 0) training.learner.average = network;
}

// Move the average after the `update`-th update of the network, from 1, by a share of
// 1 / min(update, kAveragedUpdates) of the way: the mean of all of its weights, and then one in
// which earlier ones fade (the averaging of Polyak and Juditsky, SIAM J. Control Optim. 30, 1992).
template <class Device, class E, class Network>
void update_average([[maybe_unused]] Device device, [[maybe_unused]] Training<E>& training,
                    [[maybe_unused]] const Network& network,
                    [[maybe_unused]] std::uint32_t update) {
  if constexpr (kAveragedUpdates<E> > 0) {
    using T = typename E::Scalar;
    const auto count = math::minimum(static_cast<T>(update), static_cast<T>(kAveragedUpdates<E>));
    polyak_update<Network::kParameterCount>(device, T(1) / count, network.values,
                                            training.learner.average.values);
  }
}

// Return the average of the network, where one is kept, else the network.
template <class E, class Network>
const Network& average_of([[maybe_unused]] const Training<E>& training, const Network& network) {
  if constexpr (kAveragedUpdates<E> > 0) {
    return training.learner.average;
  } else {
    return network;
  }
}

// ---- Learning -----------------------------------------------------------------------------------

// Return Adam's parameters, with the hyperparameters' learning rate.
template <class E>
AdamParameters<typename E::Scalar> adam_parameters(const Training<E>& training) {
  const auto& hyper = training.hyperparameters;
  return adam_parameters(hyper, static_cast<typename E::Scalar>(hyper.learning_rate));
}

// The contract of the networks of an experiment E whose critics see observation and action.
template <class E>
struct ActorCriticContract {
  template <bool Asserts>
  static constexpr bool check() {
    using Environment = typename E::Environment;
    constexpr int kCriticInput = kCriticObservationDim<Environment> + Environment::kActionDim;
    bool kept = true;
    RLT_REQUIRE((std::is_same_v<typename Environment::Scalar, typename E::Scalar>),
                "the environment's Scalar differs from that of the experiment");
    RLT_REQUIRE(!kIsDiscrete<Environment>,
                "the environment's actions are choices, which DQN and PPO learn");
    RLT_REQUIRE(Size<E::Actor::kInputDim>::template kIs<Environment::kObservationDim>,
                "the actor's input width differs from the environment's observation width");
    RLT_REQUIRE(Size<E::Critic::kInputDim>::template kIs<kCriticInput>,
                "the critic's input width differs from observation width plus action width");
    return kept;
  }
};

// ---- The algorithms' base -----------------------------------------------------------------------

struct OffPolicy {
  template <class E>
  using Replay = OffPolicyReplay<E>;
  template <class E>
  static constexpr bool kPolicyIsNormalized = kIsNormalized<E>;
  template <class E>
  static const auto& policy_normalizer(const Training<E>& training) {
    return training.learner.normalizer;
  }
  using Reads = ReadsNothing;

  template <class E, class Visitor>
  static void for_each_size(Visitor&& visitor) {
    visitor("batch_size", E::kBatchSize);
    visitor("buffer_size", E::kReplayCapacity);
  }

  // Return true: a run may end after any step.
  template <class E>
  static bool is_complete(const Training<E>&) {
    return true;
  }

  template <class E>
  static bool is_consistent(const Training<E>& training) {
    using Environment = typename E::Environment;
    for (int index = 0; index < kEnvironmentCount<E>; index++) {
      const auto& buffer = buffer_of(training.replay, index);
      if (!are_choices<Environment>(buffer.action, buffer.kSlots)) return false;
    }
    return rlt::is_consistent(training.replay, training.learner.progress.step,
                              kIsExternal<Environment>);
  }

  // Restart episodes. The last observations of the episodes that are gone end them without a
  // transition.
  template <class Device, class E>
  static void restart_episodes(Device device, Training<E>& training) {
    const std::uint32_t seed = training.hyperparameters.seed;
    restart_all(device, environment_of(training), training.learner.environments, seed,
                [&](int index) { return advance(buffer_of(training.replay, index)); });
    update_normalizer(device, training);
  }
};

// ---- The state's tensors ------------------------------------------------------------------------

template <class T, int S, int O, int A, class Visitor>
void for_each_replay_tensor(ReplayBuffer<T, S, O, A>& replay, Visitor&& visitor, int count = 1) {
  constexpr std::size_t kStride = sizeof(replay);
  visit_arrays("replay/observation", replay.observation, count, kStride, S, O, visitor);
  visit_arrays("replay/action", replay.action, count, kStride, S, A, visitor);
  visit_arrays("replay/reward", replay.reward, count, kStride, S, 1, visitor);
  visit_arrays("replay/flags", replay.flags, count, kStride, S, 1, visitor);
  visit_arrays("replay/position", &replay.position, count, kStride, 1, 1, visitor);
  visit_arrays("replay/size", &replay.size, count, kStride, 1, 1, visitor);
}

template <class Buffer, int N, class Visitor>
void for_each_replay_tensor(ReplayBuffers<Buffer, N>& replay, Visitor&& visitor) {
  for_each_replay_tensor(replay.buffer[0], visitor, N);
}

// Visit the average, where one is kept.
template <class E, class Visitor>
void for_each_average_tensor([[maybe_unused]] const char* name,
                             [[maybe_unused]] Training<E>& training,
                             [[maybe_unused]] Visitor&& visitor) {
  if constexpr (kAveragedUpdates<E> > 0) {
    for_each_tensor(name, training.learner.average, visitor);
  }
}

// Visit normalizer, environments, progress and replay buffers.
template <class E, class Visitor>
void for_each_run_tensor(Training<E>& training, Visitor&& visitor) {
  if constexpr (kIsNormalized<E>) for_each_normalizer_tensor(training.learner.normalizer, visitor);
  for_each_environment_tensor(training, visitor);
  for_each_replay_tensor(training.replay, visitor);
}

}  // namespace rlt
