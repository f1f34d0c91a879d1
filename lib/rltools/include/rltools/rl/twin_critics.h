// The shared parts of TD3 and SAC besides off_policy.h: an actor and two critics with their
// targets, how they begin, and the scratch memory in which they work. How they learn: td3.h, sac.h.
#pragma once

#include <type_traits>

#include "rltools/core/require.h"
#include "rltools/core/tasks.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/rl/batch.h"
#include "rltools/rl/off_policy.h"

namespace rlt {

// The state of both algorithms: the networks that learn, and the progress of the run.
template <class E>
struct TwinCriticsLearner : WithNormalizer<E>, WithAverage<E, typename E::Actor> {
  typename E::Actor actor;
  typename E::Critic critic_1, critic_2, critic_1_target, critic_2_target;
  AdamState<typename E::Actor> actor_optimizer;
  AdamState<typename E::Critic> critic_1_optimizer, critic_2_optimizer;
  Environments<E> environments;
  Progress<typename E::Scalar> progress;
};

template <class E>
struct CriticWork;  // a critic, and the scratch memory that it uses: below

// ---- Beginning and acting -----------------------------------------------------------------------

// Set actor and critics from the seed, the critics' targets equal to them, and their optimizers;
// no progress, an empty replay buffer, and first episodes.
template <class Device, class E>
void initialize_actor_and_critics(Device device, Training<E>& training) {
  auto& learner = training.learner;
  const std::uint32_t seed = training.hyperparameters.seed;
  initialize_kaiming(device, learner.actor, seed, 0);
  initialize(learner.actor_optimizer);
  initialize_kaiming(device, learner.critic_1, seed, 1);
  initialize_kaiming(device, learner.critic_2, seed, 2);
  make_symmetric(training, learner.actor, learner.critic_1);
  make_symmetric(training, learner.actor, learner.critic_2);
  begin_average(training, learner.actor);
  learner.critic_1_target = learner.critic_1;
  learner.critic_2_target = learner.critic_2;
  initialize(learner.critic_1_optimizer);
  initialize(learner.critic_2_optimizer);
  reset_progress(training);
  clear(training.replay);
  begin_episodes(device, training);
}

// Return the actor whose actions count when training is over: its average, where one is kept.
template <class E>
const typename E::Actor& policy_actor(const Training<E>& training) {
  return average_of(training, training.learner.actor);
}

// ---- Learning -----------------------------------------------------------------------------------

// critic_input row = (observation row, action row), for a tile
template <class Device, class E, class Observation>
void set_critic_input(Device device, Training<E>& training, const Observation& observation) {
  auto& scratch = training.scratch;
  join_columns<E::kTileRows, Scratch<E>::kObservation, Scratch<E>::kAction>(
      device, observation.data(), scratch.action.data(), scratch.critic_input.data());
}

// Take one Adam step of the actor by scratch.actor_gradient, its `update`-th from 1.
template <class Device, class E>
void step_actor(Device device, Training<E>& training, std::uint32_t update) {
  auto& learner = training.learner;
  auto& gradient = training.scratch.actor_gradient;
  average_actor_over_mirrors(device, training, gradient);
  adam_step(device, adam_parameters(training), learner.actor_optimizer, gradient, learner.actor);
  update_average(device, training, learner.actor, update);
}

// Take one Adam step of a critic by its gradient.
template <class Device, class E>
void step_critic(Device device, const Training<E>& training, CriticWork<E> critic) {
  average_critic_over_mirrors(device, training, critic.gradient);
  adam_step(device, adam_parameters(training), critic.optimizer, critic.gradient, critic.network);
}

// ---- The algorithms' base -----------------------------------------------------------------------

struct TwinCritics : OffPolicy {
  struct Reads : ReadsNothing {
    static constexpr bool kMirrored = true, kNormalized = true, kAveragedUpdates = true;
  };

  template <class Environment, int... Hidden>
  using TaskCritic =
      ReluMlp<typename Environment::Scalar, Activation::identity,
              kCriticObservationDim<Environment> + Environment::kActionDim, Hidden..., 1>;

  template <class E, class Visitor>
  static void for_each_network(const Training<E>& training, Visitor&& visitor) {
    visitor("actor", training.learner.actor);
    visitor("critic", training.learner.critic_1);
  }
};

// Contract of an experiment E of these algorithms.
template <class E>
struct TwinCriticsContract {
  template <bool Asserts>
  static constexpr bool check() {
    bool kept = ActorCriticContract<E>::template check<Asserts>();
    RLT_REQUIRE(Size<E::Critic::kOutputDim>::template kIs<1>,
                "the critic's output width differs from 1");
    RLT_REQUIRE(Size<E::kBatchSize % E::kTileRows>::template kIs<0>,
                "kTileRows does not divide kBatchSize: the remainder is not 0");
    return kept && MirrorContract<E>::template check<Asserts>();
  }
};

// ---- The state's tensors ------------------------------------------------------------------------

template <class E, class Visitor>
void for_each_actor_tensor(Training<E>& training, Visitor&& visitor) {
  for_each_tensor("actor", training.learner.actor, visitor);
  for_each_average_tensor("actor_average", training, visitor);
}

template <class E, class Visitor>
void for_each_critic_tensor(Training<E>& training, Visitor&& visitor) {
  auto& learner = training.learner;
  for_each_tensor("critic_1", learner.critic_1, visitor);
  for_each_tensor("critic_2", learner.critic_2, visitor);
  for_each_tensor("critic_1_target", learner.critic_1_target, visitor);
  for_each_tensor("critic_2_target", learner.critic_2_target, visitor);
}

// Visit the optimizers of actor and critics.
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

// ---- Scratch memory -----------------------------------------------------------------------------

// `BothCritics` where the algorithm needs what both critics leave for the backward pass.
template <class E, bool BothCritics = false>
struct TwinCriticsScratch : PolicyRows<typename E::Environment, E::kTileRows>,
                            TransitionScratch<E> {
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

// A critic of the two, and the scratch memory that it uses.
template <class E>
struct CriticWork {
  using T = typename E::Scalar;
  int index;
  typename E::Critic& network;
  typename E::Critic& target;
  AdamState<typename E::Critic>& optimizer;
  Matrix<T, E::kTileRows, 1>& value;
  MlpBuffer<typename E::Critic, E::kTileRows>& buffer;
  Matrix<T, E::kTileRows, 1>& value_gradient;
  decltype(Scratch<E>::action)& action_gradient;
  GradientBuffer<T, E::kTileRows, Scratch<E>::kWidest>& gradient_buffer;
  typename E::Critic& gradient;
};

// Return the critic `index`, 0 or 1, with the workspaces `pass` and `gradient`.
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

// Return the first critic, for work whose rows are shared.
template <class E>
CriticWork<E> first_critic(Training<E>& training) {
  return critic_work(training, 0, Scratch<E>::kSharedPass, Scratch<E>::kSharedGradient);
}

// Call function(device, critic_work) for both critics, as tasks where each has its own workspace.
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

}  // namespace rlt
