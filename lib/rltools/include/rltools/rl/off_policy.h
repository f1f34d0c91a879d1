// What off-policy algorithms share (td3.h, sac.h, dqn.h): what a run keeps, acting, and a batch
// from the replay buffer. The critics of TD3 and SAC: twin_critics.h.
#pragma once

#include <type_traits>

#include "rltools/core/finite.h"
#include "rltools/core/math.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/rl/batch.h"
#include "rltools/rl/learning_rate.h"
#include "rltools/rl/normalizer.h"
#include "rltools/rl/privileged.h"
#include "rltools/rl/rollout.h"
#include "rltools/rl/state_tensors.h"
#include "rltools/rl/symmetry.h"

namespace rlt {

// What an experiment E of any of these algorithms keeps. Instantiating it says in one sentence what
// does not fit. Compilers may stop at the first sentence: the constants come before.
template <class E>
struct OffPolicyContract {
  static constexpr int kObservation = E::Environment::kObservationDim;
  static constexpr int kSeen = kCriticObservationDim<typename E::Environment>;
  static constexpr int kAction = E::Environment::kActionDim;
  static constexpr bool kScalar =
      std::is_same_v<typename E::Environment::Scalar, typename E::Scalar>;
  static constexpr bool kIsContinuous = !kIsDiscrete<typename E::Environment>;
  static constexpr bool kKept = kScalar && kIsContinuous && E::Actor::kInputDim == kObservation &&
                                E::Critic::kInputDim == kSeen + kAction &&
                                E::Critic::kOutputDim == 1 && E::kBatchSize % E::kTileRows == 0 &&
                                SymmetryContract<E>::kKept;
  static constexpr bool kChecked = true;
  static_assert(kScalar, "the environment's Scalar differs from that of the experiment");
  static_assert(kIsContinuous, "the environment's actions are choices, which DQN and PPO learn");
  static_assert(Size<E::Actor::kInputDim>::template kIs<kObservation>,
                "the actor's input width differs from the environment's observation width");
  static_assert(Size<E::Critic::kInputDim>::template kIs<kSeen + kAction>,
                "the critic's input width differs from observation width plus action width");
  static_assert(Size<E::Critic::kOutputDim>::template kIs<1>,
                "the critic's output width differs from 1");
  static_assert(Size<E::kBatchSize % E::kTileRows>::template kIs<0>,
                "kTileRows does not divide kBatchSize: the remainder is not 0");
  static_assert(MirrorSentences<E>::kChecked);
};

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

// `BothCritics` where the algorithm needs what both critics leave for the backward pass.
template <class E, bool BothCritics = false>
struct OffPolicyScratch : PolicyRows<typename E::Environment, E::kTileRows> {
  using T = typename E::Scalar;
  static constexpr int kBatch = E::kBatchSize, kTile = E::kTileRows;
  static constexpr int kObservation = kCriticObservationDim<typename E::Environment>;
  static constexpr int kAction = E::Environment::kActionDim;
  static constexpr int kWidest =
      E::Actor::max_of(E::Actor::widest_hidden(), E::Critic::widest_hidden());
  // Workspaces. Where memory is scarce all work has the same in turn, but for what both critics
  // leave for the backward pass. Else each critic has its own, and a third one is for work whose
  // rows are shared: memory that goes from core to core costs more than it takes.
  static constexpr bool kAtOnce = std::is_base_of_v<SecondCriticScratch, E>;
  static constexpr int kPasses = kAtOnce ? 3 : BothCritics ? 2 : 1;
  static constexpr int kPassOfCritic[2] = {0, kPasses > 1 ? 1 : 0};
  static constexpr int kSharedPass = kAtOnce ? 2 : 0;
  static constexpr int kGradients = kAtOnce ? 3 : 1;
  static constexpr int kGradientOfCritic[2] = {0, kAtOnce ? 1 : 0};
  static constexpr int kSharedGradient = kAtOnce ? 2 : 0;

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
  Matrix<T, kTile, kAction> action;
  Matrix<T, kTile, kObservation + kAction> critic_input;
  Matrix<T, kTile, 1> value[2];
  MlpBuffer<typename E::Critic, kTile> critic_buffer[kPasses];
  Matrix<T, kTile, 1> value_gradient[kPasses];
  Matrix<T, kTile, kAction> action_gradient[kPasses];
  GradientBuffer<T, kTile, kWidest> gradient_buffer[kGradients];

  typename E::Actor actor_gradient;
  typename E::Critic critic_gradient[kGradients];
  MlpBuffer<typename E::Actor, kEnvironmentCount<E>> exploring_buffer;
};

// The normalizer of a kNormalized experiment, of all that critics see. A base of the learner, for
// it to take no space elsewhere.
template <class E, bool Kept = kIsNormalized<E>>
struct WithNormalizer {};
template <class E>
struct WithNormalizer<E, true> {
  Normalizer<typename E::Scalar, kCriticObservationDim<typename E::Environment>> normalizer;
};

// The actor's average of a kAveragedUpdates experiment, which is its policy. Also a base.
template <class E, bool Kept = (kAveragedUpdates<E> > 0)>
struct WithAverage {};
template <class E>
struct WithAverage<E, true> {
  typename E::Actor actor_average;
};

// What they all learn, and where a run stands.
template <class E>
struct OffPolicyLearner : WithNormalizer<E>, WithAverage<E> {
  typename E::Actor actor;
  typename E::Critic critic_1, critic_2, critic_1_target, critic_2_target;
  AdamState<typename E::Actor> actor_optimizer;
  AdamState<typename E::Critic> critic_1_optimizer, critic_2_optimizer;
  Environments<E> environments;
  Progress<typename E::Scalar> progress;
};

// Defaults of a task of Gymnasium's.
template <class Hyperparameters>
struct OffPolicyTaskHyperparameters : Hyperparameters {
  OffPolicyTaskHyperparameters() {
    this->steps = 100000;
    this->eval_freq = 10000;
    this->learning_starts = 1000;
  }
};

// What these algorithms say of an experiment. A task's critic is that of continuous actions.
struct OffPolicy {
  template <class Environment, int... Hidden>
  using TaskCritic =
      ReluMlp<typename Environment::Scalar, Activation::identity,
              kCriticObservationDim<Environment> + Environment::kActionDim, Hidden..., 1>;
  template <class E>
  using Replay = OffPolicyReplay<E>;
  template <class E>
  static constexpr bool kPolicyIsNormalized = kIsNormalized<E>;
  struct Reads : ReadsNothing {
    static constexpr bool kMirrored = true, kNormalized = true, kAveragedUpdates = true;
  };

  template <class E, class Visitor>
  static void for_each_size(Visitor&& visitor) {
    visitor("batch_size", E::kBatchSize);
    visitor("buffer_size", E::kReplayCapacity);
  }
  template <class E, class Visitor>
  static void for_each_network(const Training<E>& training, Visitor&& visitor) {
    visitor("actor", training.learner.actor);
    visitor("critic", training.learner.critic_1);
  }
};

// A run may end after any step.
template <class E>
bool is_complete_algorithm(OffPolicy, const Training<E>&) {
  return true;
}

template <class E>
bool is_consistent_algorithm(OffPolicy, const Training<E>& training) {
  using Environment = typename E::Environment;
  for (int index = 0; index < kEnvironmentCount<E>; index++) {
    const auto& buffer = buffer_of(training.replay, index);
    if (!are_choices<Environment>(buffer.action, buffer.kSlots)) return false;
  }
  return is_consistent(training.replay, training.learner.progress.step, kIsExternal<Environment>);
}

// ---- Beginning and acting -----------------------------------------------------------------------

// The normalizer takes in the observations that the next actions answer.
template <class E>
void update_normalizer([[maybe_unused]] Training<E>& training) {
  if constexpr (kIsNormalized<E>) {
    constexpr int kSeen = kCriticObservationDim<typename E::Environment>;
    Matrix<typename E::Scalar, kEnvironmentCount<E>, kSeen> present;
    for (int index = 0; index < kEnvironmentCount<E>; index++) {
      const auto* row = current_observation(buffer_of(training.replay, index));
      for (int i = 0; i < kSeen; i++) present(index, i) = row[i];
    }
    take_in(training.learner.normalizer, present.data(), kEnvironmentCount<E>);
    average_over_mirrors(training, training.learner.normalizer);
  }
}

// The actor whose actions count when training is over: its average, where one is kept.
template <class E>
const typename E::Actor& policy_actor(const Training<E>& training) {
  if constexpr (kAveragedUpdates<E> > 0) {
    return training.learner.actor_average;
  } else {
    return training.learner.actor;
  }
}

// An observation (1, ObservationDim) as the actor sees it.
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

// Actor and critics from the seed, the critics' targets equal to them, and their optimizers; no
// progress, an empty replay buffer, and first episodes.
template <class Device, class E>
void initialize_off_policy(Device device, Training<E>& training) {
  auto& learner = training.learner;
  const std::uint32_t seed = training.hyperparameters.seed;
  initialize_kaiming(device, learner.actor, seed, 0);
  initialize(learner.actor_optimizer);
  initialize_kaiming(device, learner.critic_1, seed, 1);
  initialize_kaiming(device, learner.critic_2, seed, 2);
  make_symmetric(training, learner.actor, learner.critic_1);
  make_symmetric(training, learner.actor, learner.critic_2);
  if constexpr (kAveragedUpdates<E> > 0) learner.actor_average = learner.actor;
  learner.critic_1_target = learner.critic_1;
  learner.critic_2_target = learner.critic_2;
  initialize(learner.critic_1_optimizer);
  initialize(learner.critic_2_optimizer);
  reset_progress(training);
  clear(training.replay);
  begin_episodes(device, training);
  if constexpr (kIsNormalized<E>) initialize(learner.normalizer);
  update_normalizer(training);
}

// The last observations of the episodes that are gone end them without a transition.
template <class Device, class E>
void begin_anew_algorithm(Device device, OffPolicy, Training<E>& training) {
  const std::uint32_t seed = training.hyperparameters.seed;
  begin_all_anew(device, environment_of(training), training.learner.environments, seed,
                 [&](int index) { return advance(buffer_of(training.replay, index)); });
  update_normalizer(training);
}

template <class E>  // an action for each environment
using Actions = Matrix<typename E::Scalar, kEnvironmentCount<E>, E::Environment::kActionDim>;

// Before the first update actions are uniformly random.
template <class E>
bool is_warming_up(const Training<E>& training) {
  return training.learner.progress.step < training.hyperparameters.learning_starts;
}

template <class Device, class E>
void warmup_action(Device device, const Training<E>& training, Actions<E>& action) {
  using T = typename E::Scalar;
  const RandomStream random{training.hyperparameters.seed, Purpose::warmup_action,
                            training.learner.progress.step};
  fill_uniform(device, random, action.data(), kEnvironmentCount<E> * E::Environment::kActionDim,
               T(-1), T(1));
}

// The observations (environments, ObservationDim) that the next actions answer, as the policy sees
// them.
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

// ---- Learning -----------------------------------------------------------------------------------

// Draws a batch of transitions into the scratch memory. Observations are kept as they were, and
// normalized here: by what is known of them now.
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

template <class E>
AdamParameters<typename E::Scalar> adam_parameters(const Training<E>& training) {
  const auto& hyper = training.hyperparameters;
  return adam_parameters(hyper, static_cast<typename E::Scalar>(hyper.learning_rate));
}

// One Adam step of the actor, its `update`-th from 1. Its average moves by a share of
// 1 / min(update, kAveragedUpdates) of the way: the mean of all of its values, and then one in
// which earlier ones fade (the averaging of Polyak and Juditsky, SIAM J. Control Optim. 30, 1992).
template <class Device, class E>
void step_actor(Device device, Training<E>& training, [[maybe_unused]] std::uint32_t update) {
  auto& learner = training.learner;
  adam_step(device, adam_parameters(training), learner.actor_optimizer,
            training.scratch.actor_gradient, learner.actor);
  if constexpr (kAveragedUpdates<E> > 0) {
    using T = typename E::Scalar;
    const auto count = math::minimum(static_cast<T>(update), static_cast<T>(kAveragedUpdates<E>));
    polyak_update<E::Actor::kParameterCount>(device, T(1) / count, learner.actor.values,
                                             learner.actor_average.values);
  }
}

// A step of every environment with `action`; then, where learning has begun, update(report) with a
// batch, which returns the sum of its losses.
template <class Device, class E, class Update>
StepReport<E> off_policy_step(Device device, Training<E>& training, const Actions<E>& action,
                              Update&& update) {
  StepReport<E> report;
  collect(device, training, action.data(), report);
  if (!report.finite || report.lost) return report;
  update_normalizer(training);
  if (training.learner.progress.step > training.hyperparameters.learning_starts) {
    gather_batch(device, training);
    report.finite = report.finite && is_finite(update(report));
  }
  return report;
}

// ---- The state's tensors ------------------------------------------------------------------------

template <class E, class Visitor>
void for_each_actor_tensor(Training<E>& training, Visitor&& visitor) {
  for_each_tensor("actor", training.learner.actor, visitor);
  if constexpr (kAveragedUpdates<E> > 0) {
    for_each_tensor("actor_average", training.learner.actor_average, visitor);
  }
}

template <class E, class Visitor>
void for_each_critic_tensor(Training<E>& training, Visitor&& visitor) {
  auto& learner = training.learner;
  for_each_tensor("critic_1", learner.critic_1, visitor);
  for_each_tensor("critic_2", learner.critic_2, visitor);
  for_each_tensor("critic_1_target", learner.critic_1_target, visitor);
  for_each_tensor("critic_2_target", learner.critic_2_target, visitor);
}

// Of actor and critics.
template <class E, class Visitor>
void for_each_optimizer_tensor(Training<E>& training, Visitor&& visitor) {
  auto& learner = training.learner;
  visit_optimizer("actor_optimizer/first_moment", "actor_optimizer/second_moment",
                  "actor_optimizer/decay_power", learner.actor_optimizer, visitor);
  visit_optimizer("critic_1_optimizer/first_moment", "critic_1_optimizer/second_moment",
                  "critic_1_optimizer/decay_power", learner.critic_1_optimizer, visitor);
  visit_optimizer("critic_2_optimizer/first_moment", "critic_2_optimizer/second_moment",
                  "critic_2_optimizer/decay_power", learner.critic_2_optimizer, visitor);
}

// Normalizer, environments, progress and replay buffers.
template <class E, class Visitor>
void for_each_run_tensor(Training<E>& training, Visitor&& visitor) {
  if constexpr (kIsNormalized<E>) for_each_normalizer_tensor(training.learner.normalizer, visitor);
  for_each_environment_tensor(training, visitor);
  for_each_replay_tensor(training.replay, visitor);
}

}  // namespace rlt
