// A training run: the experiment's learner, replay buffer and scratch memory, and what every
// algorithm offers. Firmware, tests and bindings use these functions only; rl/algorithms/*.h
// implements them.
#pragma once

#include "rltools/core/fields.h"
#include "rltools/core/finite.h"
#include "rltools/core/require.h"
#include "rltools/core/tensor.h"
#include "rltools/nn/mlp.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/experiment.h"
#include "rltools/rl/hyperparameters.h"
#include "rltools/rl/metrics.h"
#include "rltools/rl/non_finite_steps.h"
#include "rltools/rl/vector_environment.h"

namespace rlt {

template <class E>
using Learner = typename E::Algorithm::template Learner<E>;
template <class E>
using Replay = typename E::Algorithm::template Replay<E>;
template <class E>
using Scratch = typename E::Algorithm::template Scratch<E>;
// The network that acts once it is trained: from an observation to an action in [-1, 1].
template <class E>
using PolicyNetwork = typename E::Algorithm::template PolicyNetwork<E>;

namespace detail {

struct NoNetwork {};
template <class E, class = void>
struct ActorOfExperiment {
  using Type = NoNetwork;
};
template <class E>
struct ActorOfExperiment<E, std::void_t<typename E::Actor>> {
  using Type = typename E::Actor;
};
template <class E, class = void>
struct CriticOfExperiment {
  using Type = NoNetwork;
};
template <class E>
struct CriticOfExperiment<E, std::void_t<typename E::Critic>> {
  using Type = typename E::Critic;
};

}  // namespace detail

// An experiment's networks; one without layers or state where it has none.
template <class E>
using ActorOf = typename detail::ActorOfExperiment<E>::Type;
template <class E>
using CriticOf = typename detail::CriticOfExperiment<E>::Type;
template <class E>
constexpr bool kHasRecurrent = kIsRecurrent<ActorOf<E>> || kIsRecurrent<CriticOf<E>>;

// Contract of experiment and algorithm: it reads all of the options, and learns recurrent networks
// if there are any.
template <class E>
struct AlgorithmContract {
  template <bool Asserts>
  static constexpr bool check() {
    using Reads = typename E::Algorithm::Reads;
    bool kept = true;
    RLT_REQUIRE(Reads::kRecurrentNetworks || !kHasRecurrent<E>,
                "a network of the experiment is recurrent, and its algorithm learns none that is: "
                "PPO does");
    RLT_REQUIRE(Reads::kWindowSteps || !detail::States_kWindowSteps<E>::value,
                "the experiment states kWindowSteps, which its algorithm does not read: PPO and "
                "distillation do, of recurrent networks");
    RLT_REQUIRE(Reads::kMirrored || !detail::States_kMirrored<E>::value,
                "the experiment states kMirrored, which its algorithm does not read: TD3, SAC and "
                "PPO do");
    RLT_REQUIRE(
        Reads::kNormalized || !detail::States_kNormalized<E>::value,
        "the experiment states kNormalized, which its algorithm does not read: TD3, SAC and "
        "DQN do, and PPO and distillation have a hyperparameter, norm_obs");
    RLT_REQUIRE(Reads::kAveragedUpdates || !detail::States_kAveragedUpdates<E>::value,
                "the experiment states kAveragedUpdates, which its algorithm does not read: TD3, "
                "SAC and DQN do");
    return kept;
  }
};

// An experiment's run. The three parts are placed by whoever owns them (docs/design.md, "Memory").
template <class E>
struct Training {
  using Experiment = E;
  // These say in one sentence what does not fit together; nothing else of the run is compiled then.
  static_assert((EnvironmentContract<typename E::Environment>::template check<true>(), true));
  static_assert((E::Algorithm::template ExperimentContract<E>::template check<true>(), true));
  static_assert((AlgorithmContract<E>::template check<true>(), true));

  RunHyperparameters<E> hyperparameters;
  Learner<E>& learner;  // networks, optimizer moments, progress: touched every step
  Replay<E>& replay;    // bulk
  Scratch<E>& scratch;  // activations and gradients; not part of the state
};

// The progress of a run, beside its environments' episodes: environment steps done, of all
// environments; updates done; the returns of the last and of the best training episode, NaN before
// the first has ended. Part of the training state.
template <class T>
struct Progress {
  std::uint32_t step;
  std::uint32_t updates;
  T last_return;
  T best_return;
};

// The environments of a run.
template <class E>
using Environments = VectorEnvironment<typename E::Environment, kEnvironmentCount<E>>;

// Return the environment of an experiment E with the settings of a run.
template <class E>
typename E::Environment with_settings([[maybe_unused]] const RunHyperparameters<E>& values) {
  typename E::Environment environment{};
  if constexpr (kHasSettings<typename E::Environment>) environment.settings = values.environment;
  return environment;
}
template <class E>
typename E::Environment environment_of(const Training<E>& training) {
  return with_settings<E>(training.hyperparameters);
}

// The report of one training step.
template <class E>
struct StepReport {
  bool finite = true;  // false once an action, loss or return is no finite number
  NonFiniteTransition<typename E::Environment> non_finite;  // what of it an environment gave
  bool lost = false;                                        // a step of an environment was lost
  std::uint32_t episodes_ended = 0;  // of all environments, but for those that were shortened
  float episode_return = 0;          // of the last of them
  float episode_returns = 0;         // the sum of all of them
  std::uint32_t episode_steps = 0;   // in all of them
  typename E::Algorithm::Metrics metrics;
};

// Note in progress and report what an environment's step means for the run.
template <class E, class T>
void note_transition(Progress<T>& progress, const Transition<T>& transition,
                     StepReport<E>& report) {
  if (transition.lost) {
    report.lost = true;
    return;
  }
  if (!is_finite(transition.episode_return)) report.finite = false;
  if (!transition.ended() || transition.shortened) return;
  progress.last_return = transition.episode_return;
  // Written so that the first return replaces the initial NaN.
  if (!(progress.best_return >= transition.episode_return)) {
    progress.best_return = transition.episode_return;
  }
  report.episodes_ended++;
  report.episode_return = static_cast<float>(transition.episode_return);
  report.episode_returns += report.episode_return;
  report.episode_steps += transition.episode_steps;
}
// The same of environment `index`, which took its row of `action` (environments, ActionDim).
template <class E, class T>
void note_transition(Progress<T>& progress, const Transition<T>& transition, int index,
                     const T* action, StepReport<E>& report) {
  if (!transition.non_finite) return note_transition(progress, transition, report);
  constexpr int kAction = E::Environment::kActionDim;
  auto& non_finite = report.non_finite;
  report.finite = false;
  if (non_finite.environment != non_finite.kNone) return;
  non_finite.environment = index;
  non_finite.is_reward = !is_finite(transition.reward);
  for (int i = 0; i < kAction; i++) non_finite.action[i] = action[index * kAction + i];
}
// Note the steps of all environments.
template <class E, class T>
void note_transitions(Generic, Progress<T>& progress,
                      const Transition<T> (&transitions)[kEnvironmentCount<E>], const T* action,
                      StepReport<E>& report) {
  for (int index = 0; index < kEnvironmentCount<E>; index++) {
    note_transition(progress, transitions[index], index, action, report);
  }
}

// A base of an algorithm's scratch memory: what a step of the environments was.
template <class E>
struct TransitionScratch {
  Transition<typename E::Scalar> transitions[kEnvironmentCount<E>];
};

// Note that an action is not finite, and no environment is stepped. If an environment is the cause,
// it is the first observation of an episode, const T* present(index), as all others were checked.
template <class E, class Present>
void note_no_action(StepReport<E>& report, Present&& present) {
  constexpr int kSeen = kCriticObservationDim<typename E::Environment>;
  report.finite = false;
  for (int index = kEnvironmentCount<E> - 1; index >= 0; index--) {
    if (all_finite(present(index), kSeen)) continue;
    report.non_finite.environment = index;
    report.non_finite.is_first = true;
  }
}
// Note the same for observations that are one array (environments, CriticObservationDim).
template <class E, class T, std::size_t Count>
void note_no_action(StepReport<E>& report, T (&present)[Count]) {
  note_no_action(report, [&](int index) {
    return &present[index * kCriticObservationDim<typename E::Environment>];
  });
}

// True if the environment and the experiment keep their contracts; code that relies on them is
// compiled only then.
template <class E>
constexpr bool kKeepsContracts =
    kIsKept<AlgorithmContract<E>> && kIsKept<EnvironmentContract<typename E::Environment>> &&
    kIsKept<typename E::Algorithm::template ExperimentContract<E>>;

// Set the whole state from the hyperparameters: networks from the seed, empty replay buffer, first
// episode.
template <class Device, class E>
void initialize(Device device, Training<E>& training) {
  if constexpr (kKeepsContracts<E>) {
    E::Algorithm::initialize(device, training);
  }
}

// Do a bounded piece of work: one step of every environment with the updates that go with it, or a
// part of the learning.
template <class Device, class E>
StepReport<E> train_step(Device device, Training<E>& training) {
  if constexpr (kKeepsContracts<E>) {
    return E::Algorithm::train_step(device, training);
  }
  return {};
}

// Begin new episodes after a checkpoint, where an external environment plays them: those that were
// under way are gone.
template <class Device, class E>
void restart_lost_episodes(Device device, Training<E>& training) {
  if constexpr (kKeepsContracts<E> && kIsExternal<typename E::Environment>) {
    E::Algorithm::restart_episodes(device, training);
  }
}

// The hidden state of a policy in an episode, which begins with zeros; no data where it has none.
template <class E, int Dim = kStateDim<PolicyNetwork<E>>>
struct PolicyState {
  typename E::Scalar hidden[Dim];
};
template <class E>
struct PolicyState<E, 0> {};

template <class E>
void begin_episode([[maybe_unused]] PolicyState<E>& state) {
  if constexpr (kIsRecurrent<PolicyNetwork<E>>) {
    for (auto& value : state.hidden) value = 0;
  }
}

// Set the deterministic action (1, ActionDim), in [-1, 1], for an observation (1, ObservationDim).
template <class Device, class E, class Observation, class Action>
void act(Device device, Training<E>& training, const Observation& observation, Action& action) {
  static_assert(!kIsRecurrent<PolicyNetwork<E>>, "a recurrent policy acts with a PolicyState");
  E::Algorithm::act(device, training, observation, action);
}
// Do the same for any policy, whose hidden state moves on.
template <class Device, class E, class Observation, class Action>
void act(Device device, Training<E>& training, const Observation& observation,
         [[maybe_unused]] PolicyState<E>& state, Action& action) {
  if constexpr (kIsRecurrent<PolicyNetwork<E>>) {
    E::Algorithm::act(device, training, observation, action, state);
  } else {
    act(device, training, observation, action);
  }
}

// Reset the progress: no step done.
template <class E>
void reset_progress(Training<E>& training) {
  using T = typename E::Scalar;
  const T nan = static_cast<T>(math::kQuietNan);
  training.learner.progress = {0, 0, nan, nan};
}

// Visit every array of the training state in the documented order: visitor(const TensorInfo&,
// void* data).
template <class E, class Visitor>
void for_each_state_tensor(Training<E>& training, Visitor&& visitor) {
  if constexpr (kKeepsContracts<E>) {
    E::Algorithm::for_each_state_tensor(training, visitor);
  }
}

// Visit what the algorithm lists of the experiment: visitor(name, size) for the sizes that learning
// depends on, visitor(name, network) for each network. (Metrics: rl/metrics.h.)
template <class E, class Visitor>
void for_each_size(const Training<E>&, Visitor&& visitor) {
  E::Algorithm::template for_each_size<E>(visitor);
}
template <class E, class Visitor>
void for_each_network(const Training<E>& training, Visitor&& visitor) {
  E::Algorithm::for_each_network(training, visitor);
}

// Return whether every float of the state is finite, as those of a run at rest are. (Returns are
// NaN before an episode has ended, but never infinite.)
template <class E>
bool state_is_finite(Training<E>& training) {
  bool finite = true;
  for_each_state_tensor(training, [&](const TensorInfo& info, const void* data) {
    const auto check = [&](const auto* values, std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; i++) {
        const bool is_nan = values[i] != values[i];
        if (!is_finite(values[i]) && !(is_nan && info.may_be_nan)) finite = false;
      }
    };
    for_each_piece(info, data, [&](const void* piece, std::uint32_t bytes) {
      const std::uint32_t count = bytes / size_bytes(info.type);
      if (info.type == DataType::f32) check(static_cast<const float*>(piece), count);
      if (info.type == DataType::f64) check(static_cast<const double*>(piece), count);
    });
  });
  return finite;
}

// Return the trained network as it is deployed; valid until the next training step.
template <class E>
const PolicyNetwork<E>& policy(const Training<E>& training) {
  return E::Algorithm::policy(training);
}

template <class E>
std::uint32_t steps_done(const Training<E>& training) {
  return training.learner.progress.step;
}

// Return the part of the run's steps that is done: 0 to 1. With `--resume --steps` there are more
// of them.
template <class T, class E>
T progress_fraction(const Training<E>& training) {
  return math::minimum(
      static_cast<T>(steps_done(training)) / static_cast<T>(training.hyperparameters.steps), T(1));
}

// Return whether all steps are done, and all is learned from them.
template <class E>
bool finished(const Training<E>& training) {
  return steps_done(training) >= training.hyperparameters.steps &&
         E::Algorithm::is_complete(training);
}

// Return false where the state cannot be that of a run: one that was loaded is checked with this
// before anything is done with it.
template <class E>
bool state_is_consistent(const Training<E>& training) {
  return E::Algorithm::is_consistent(training);
}

// Return the size of the checkpoint's payload.
template <class E>
std::uint32_t state_bytes(Training<E>& training) {
  std::uint32_t bytes = 0;
  for_each_state_tensor(training, [&](const TensorInfo& info, void*) { bytes += info.bytes(); });
  return bytes;
}

}  // namespace rlt
