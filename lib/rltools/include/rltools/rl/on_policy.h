// The shared parts of on-policy algorithms (ppo.h): a rollout of several environments with a
// Gaussian policy. The values and advantages of its rows: rollout_values.h.
#pragma once

#include <type_traits>

#include "rltools/core/arrays.h"
#include "rltools/core/finite.h"
#include "rltools/core/require.h"
#include "rltools/nn/mlp.h"
#include "rltools/rl/categorical.h"
#include "rltools/rl/normalizer.h"
#include "rltools/rl/privileged.h"
#include "rltools/rl/rollout_buffer.h"
#include "rltools/rl/state_tensors.h"
#include "rltools/rl/training.h"
#include "rltools/rl/windows.h"

namespace rlt {

template <class E>
constexpr int kRolloutRows = E::kRolloutSteps * kEnvironmentCount<E>;
template <class E>  // in an epoch
constexpr int kMinibatches = kRolloutRows<E> / E::kBatchSize;

// Contract of an experiment E of any of these algorithms.
template <class E>
struct OnPolicyContract {
  template <bool Asserts>
  static constexpr bool check() {
    using Environment = typename E::Environment;
    constexpr int kCriticInput = kCriticObservationDim<Environment>;
    bool kept = true;
    RLT_REQUIRE((std::is_same_v<typename Environment::Scalar, typename E::Scalar>),
                "the environment's Scalar differs from that of the experiment");
    RLT_REQUIRE(Size<E::Actor::kInputDim>::template kIs<Environment::kObservationDim>,
                "the actor's input width differs from the environment's observation width");
    RLT_REQUIRE(Size<E::Actor::kOutputDim>::template kIs<kOutputDim<Environment>>,
                "the actor's output width differs from the environment's action width, or from the "
                "number of choices");
    RLT_REQUIRE(Size<E::Critic::kInputDim>::template kIs<kCriticInput>,
                "the critic's input width differs from the environment's observation width");
    RLT_REQUIRE(Size<E::Critic::kOutputDim>::template kIs<1>,
                "the critic's output width differs from 1");
    RLT_REQUIRE(Size<kRolloutRows<E> % E::kBatchSize>::template kIs<0>,
                "kBatchSize does not divide kRolloutSteps times kEnvironments: the remainder is "
                "not 0");
    RLT_REQUIRE(Size<E::kBatchSize % E::kTileRows>::template kIs<0>,
                "kTileRows does not divide kBatchSize: the remainder is not 0");
    kept = kept && MirrorContract<E>::template check<Asserts>();
    return kept && WindowContract<E>::template check<Asserts>();
  }
};

// Maximum number of an environment's episodes that are truncated within a rollout.
template <class E>
constexpr int kMaxTruncations =
    E::Environment::kTruncates ? E::kRolloutSteps
                               : (E::kRolloutSteps + E::kEpisodeSteps - 1) / E::kEpisodeSteps;

template <class E>
using OnPolicyRollout = RolloutOfWindows<
    RolloutBuffer<typename E::Scalar, E::kRolloutSteps, kEnvironmentCount<E>,
                  kCriticObservationDim<typename E::Environment>, E::Environment::kActionDim,
                  kMaxTruncations<E>, kOutputDim<typename E::Environment>>,
    E>;

template <class E>
constexpr int kMaxPolicyRows =
    E::kTileRows > kEnvironmentCount<E> ? E::kTileRows : kEnvironmentCount<E>;

// ---- The rollout --------------------------------------------------------------------------------

// Writes what step_all() finds into the rollout.
template <class E>
struct IntoRollout {
  using T = typename E::Scalar;
  static constexpr int kObservation = kCriticObservationDim<typename E::Environment>;
  Replay<E>& rollout;
  Scratch<E>& scratch;
  Transition<T>* transitions;

  T* reached(int index, const Transition<T>& transition) const {
    const int step = static_cast<int>(rollout.size);
    const int row = step * kEnvironmentCount<E> + index;
    transitions[index] = transition;
    rollout.reward[row] = transition.reward;
    rollout.done[row] = transition.terminated  ? rollout.kTerminated
                        : transition.truncated ? rollout.kTruncated
                                               : rollout.kRunning;
    if constexpr (kIsExternal<typename E::Environment>) {
      if (transition.lost) rollout.done[row] = rollout.kLost;
    }
    if (transition.terminated || transition.lost) return scratch.unused_observation.row(index);
    if (!transition.truncated) return begun(index);
    return final_observation(rollout, index, truncations_before(rollout, index, step));
  }
  T* begun(int index) const { return rollout.current_observation + index * kObservation; }
  void non_finite(int index) const { transitions[index].non_finite = true; }
};

// Clear the rollout, and begin the first episodes.
template <class Device, class E>
void begin_rollouts(Device device, Training<E>& training) {
  OnPolicyRollout<E>& rollout = training.replay;
  training.learner.iteration = training.learner.minibatches = 0;
  reset_progress(training);
  clear(rollout);
  clear_states(rollout);
  begin_all(device, environment_of(training), training.learner.environments,
            training.hyperparameters.seed,
            [&](int i) { return rollout.current_observation + i * rollout.kObservationDim; });
}

// Draw choices by their logits into the rollout's next rows and into scratch.action; NaN where a
// logit is not finite.
template <class Device, class E>
void draw_choices(Device device, Training<E>& training) {
  using T = typename E::Scalar;
  using Environment = typename E::Environment;
  constexpr int kAction = Environment::kActionDim, kOutput = kOutputDim<Environment>;
  constexpr int kEnvironments = kEnvironmentCount<E>, kCount = kEnvironments * kAction;
  auto& rollout = training.replay;
  auto& scratch = training.scratch;
  T* drawn = scratch.action.data();
  fill_uniform(
      device, {training.hyperparameters.seed, Purpose::exploration, training.learner.progress.step},
      drawn, kCount, T(0), T(1));
  for (int i = 0; i < kEnvironments; i++) {
    const T* seen = rollout.current_observation + i * kCriticObservationDim<Environment>;
    T* logit = scratch.mean.row(i);
    const bool is_good = all_finite(logit, kOutput);
    mask_actions<Environment>(seen, logit);
    for (int k = 0; k < kAction; k++, drawn++) {
      const int count = choice_count(Environment::kActions[k]);
      *drawn = is_good ? static_cast<T>(draw_choice(logit, count, *drawn)) : T(math::kQuietNan);
      logit += count;
    }
  }
  T* actions = rollout.action + rollout.size * kCount;
  T* logits = rollout.mean + rollout.size * kEnvironments * kOutput;
  for (int i = 0; i < kCount; i++) actions[i] = scratch.action.data()[i];
  for (int i = 0; i < kEnvironments * kOutput; i++) logits[i] = scratch.mean.data()[i];
}

// Standard deviations of an action.
template <class T, int Action>
struct Deviations {
  T of[Action];
};

// Draw element i of draw_gaussian().
template <int Action, class T>
void draw_gaussian_element(int i, const Deviations<T, Action>& std, const T* mean, T* means,
                           T* drawn, T* clamped) {
  means[i] = mean[i];
  drawn[i] = math::fma(std.of[i % Action], drawn[i], means[i]);
  clamped[i] = math::clamp(drawn[i], T(-1), T(1));
}

// Draw actions of a Gaussian (rows, Action) with means and deviations from `drawn`, standard normal
// numbers, in place: their means go to `means`, and what is clamped to [-1, 1] to `clamped`.
template <int Count, int Action, class T>
Generic draw_gaussian(Generic device, const Deviations<T, Action>& std, const T* mean, T* means,
                      T* drawn, T* clamped) {
  for (int i = 0; i < Count; i++) draw_gaussian_element(i, std, mean, means, drawn, clamped);
  return device;
}

// Draw actions into the rollout's next rows, and clamped ones into scratch.action.
template <class Device, class E>
void draw_actions(Device device, Training<E>& training) {
  using T = typename E::Scalar;
  constexpr int kAction = E::Environment::kActionDim;
  constexpr int kCount = kEnvironmentCount<E> * kAction;
  auto& rollout = training.replay;
  auto& scratch = training.scratch;
  if constexpr (kIsDiscrete<typename E::Environment>) return draw_choices(device, training);
  T* actions = rollout.action + rollout.size * kCount;
  T* means = rollout.mean + rollout.size * kCount;
  Deviations<T, kAction> std;
  for (int i = 0; i < kAction; i++) std.of[i] = math::exp(training.learner.acting_log_std[i]);
  fill_standard_normal(
      device, {training.hyperparameters.seed, Purpose::exploration, training.learner.progress.step},
      actions, kCount);
  draw_gaussian<kCount>(device, std, scratch.mean.data(), means, actions, scratch.action.data());
}

// Take a step of every environment with scratch.action, and write it into the rollout. Call
// after(transitions) when all have stepped.
template <class Device, class E, class After>
void step_into_rollout(Device device, Training<E>& training, StepReport<E>& report, After&& after) {
  constexpr int kEnvironments = kEnvironmentCount<E>;
  constexpr int kObservations = kEnvironments * kCriticObservationDim<typename E::Environment>;
  OnPolicyRollout<E>& rollout = training.replay;
  auto& progress = training.learner.progress;
  copy<kObservations>(device, rollout.current_observation,
                      rollout.observation + rollout.size * kObservations);
  auto& transitions = training.scratch.transitions;
  step_all(device, environment_of(training), training.learner.environments,
           training.hyperparameters.seed, progress.step,
           static_cast<std::uint32_t>(E::kEpisodeSteps), training.scratch.action.data(),
           IntoRollout<E>{training.replay, training.scratch, transitions});
  after(transitions);
  if constexpr (kIsRecurrent<typename E::Actor>) {
    end_states<kStateDim<typename E::Actor>>(rollout.actor_state, rollout,
                                             static_cast<int>(rollout.size));
  }
  rollout.size++;
  progress.step += static_cast<std::uint32_t>(kEnvironments);
  note_transitions(device, progress, transitions, training.scratch.action.data(), report);
}

// Take a step of every environment. An action that is not finite is a fault: no environment is
// stepped with it. So is a reward, a sum of rewards, or an observation. Call after(transitions)
// when all have stepped.
template <class Device, class E, class After>
void collect_on_policy(Device device, Training<E>& training, StepReport<E>& report, After&& after) {
  const auto& rollout = training.replay;
  auto& scratch = training.scratch;
  normalize_rows<kEnvironmentCount<E>>(device, training.learner.normalizer,
                                       rollout.current_observation, scratch.present.data());
  forward_present(device, training, training.learner.actor, actor_state_of(training.replay),
                  rollout.size, policy_part(device, scratch.present, scratch), scratch.mean,
                  scratch.acting_buffer);
  draw_actions(device, training);
  constexpr int kActions = kEnvironmentCount<E> * E::Environment::kActionDim;
  if (!all_finite<kActions>(device, rollout.action + rollout.size * kActions)) {  // not clamped
    return note_no_action(report, rollout.current_observation);
  }
  step_into_rollout(device, training, report, after);
}

// Set scratch.row to the rows of a minibatch, in another order in each epoch and for each `number`
// of a rollout.
template <class Device, class E>
void choose_rows(Device device, Training<E>& training, std::uint32_t number) {
  constexpr std::uint32_t kCount = kMinibatches<E>;
  const std::uint32_t minibatches = training.learner.minibatches;
  const std::uint32_t first = minibatches % kCount * E::kBatchSize;
  const RandomStream order{training.hyperparameters.seed, Purpose::shuffle, number,
                           minibatches / kCount};
  if constexpr (kHasWindows<E>) {
    constexpr int kSteps = kWindowSteps<E>;
    permuted_indices(device, order, first / kSteps, training.scratch.window, E::kBatchSize / kSteps,
                     kRolloutRows<E> / kSteps);
    rows_of_windows(training);
  } else {
    permuted_indices(device, order, first, training.scratch.row, E::kBatchSize, kRolloutRows<E>);
  }
}

// Update the normalizer with this rollout's observations, and begin the next one.
template <class Device, class E>
void end_iteration(Device device, Training<E>& training) {
  auto& learner = training.learner;
  if (training.hyperparameters.norm_obs != 0) {
    update_moments(device, learner.normalizer, training.replay.observation, kRolloutRows<E>);
    average_over_mirrors(device, training, learner.normalizer);
  }
  training.replay.size = 0;
  learner.minibatches = 0;
  learner.iteration++;
}

// ---- The algorithms' base -----------------------------------------------------------------------

// Their policy is the actor, of normalized observations.
struct OnPolicy {
  template <class E>
  using PolicyNetwork = typename E::Actor;
  template <class E>
  static constexpr bool kPolicyIsNormalized = true;
  template <class E>
  static const auto& policy_normalizer(const Training<E>& training) {
    return training.learner.normalizer;
  }
  struct ReadsWindows : ReadsNothing {
    static constexpr bool kWindowSteps = true, kRecurrentNetworks = true;
  };
  struct Reads : ReadsWindows {
    static constexpr bool kMirrored = true;
  };

  template <class E, class Visitor>
  static void for_each_size(Visitor&& visitor) {
    visitor("n_steps", E::kRolloutSteps);
    visitor("batch_size", E::kBatchSize);
    if constexpr (kHasWindows<E>) visitor("window_steps", kWindowSteps<E>);
  }
  template <class E, class Visitor>
  static void for_each_network(const Training<E>& training, Visitor&& visitor) {
    visitor("actor", training.learner.actor);
    visitor("critic", training.learner.critic);
  }

  // Return whether a run may end: a rollout that has begun is learned from before.
  template <class E>
  static bool is_complete(const Training<E>& training) {
    return training.replay.size == 0;
  }

  template <class E>
  static bool is_consistent(const Training<E>& training) {
    const bool learns = training.replay.size == static_cast<std::uint32_t>(E::kRolloutSteps);
    return rlt::is_consistent(training.replay, training.learner.environments.episode_step,
                              static_cast<std::uint32_t>(E::kEpisodeSteps),
                              E::Environment::kTruncates, kIsExternal<typename E::Environment>) &&
           are_choices<typename E::Environment>(training.replay.action, kRolloutRows<E>) &&
           (learns || training.learner.minibatches == 0);
  }

  // Set `action` to the mean of the policy, within [-1, 1], or to its most probable choices; to NaN
  // where it is not finite, as there is no such action. A recurrent actor's hidden state moves on.
  template <class Device, class E, class Observation, class Action>
  static void act(Device device, Training<E>& training, const Observation& observation,
                  Action& action, [[maybe_unused]] PolicyState<E>& state) {
    using T = typename E::Scalar;
    Matrix<T, 1, E::Environment::kObservationDim> normalized;
    StepBuffer<typename E::Actor, 1> buffer;
    const auto compute = [&](auto& output) {
      if constexpr (kIsRecurrent<typename E::Actor>) {
        MatrixView<T, 1, kStateDim<typename E::Actor>> hidden{state.hidden};
        forward_step(device, training.learner.actor, normalized, hidden, output, buffer);
      } else {
        forward(device, training.learner.actor, normalized, output, buffer);
      }
    };
    normalize_part<E::Environment::kObservationDim>(training.learner.normalizer, observation.data(),
                                                    normalized.data());
    if constexpr (kIsDiscrete<typename E::Environment>) {
      Matrix<T, 1, E::Actor::kOutputDim> logits;
      compute(logits);
      take_outputs<typename E::Environment>(observation.data(), logits.data(), action.data());
      return;
    } else {
      compute(action);
    }
    for (int i = 0; i < E::Environment::kActionDim; i++) {
      const T mean = action.data()[i];
      action.data()[i] = is_finite(mean) ? math::clamp(mean, T(-1), T(1)) : T(math::kQuietNan);
    }
  }

  template <class Device, class E, class Observation, class Action>
  static void act(Device device, Training<E>& training, const Observation& observation,
                  Action& action) {
    PolicyState<E> none;
    act(device, training, observation, action, none);
  }

  template <class E>
  static const typename E::Actor& policy(const Training<E>& training) {
    return training.learner.actor;
  }

  // Begin new episodes; those that are gone were truncated after the rollout's last step, unless
  // they ended there.
  template <class Device, class E>
  static void restart_episodes(Device device, Training<E>& training) {
    constexpr int kObservation = E::Environment::kObservationDim;
    auto& rollout = training.replay;
    restart_states(rollout, rollout.size == 0 || training.learner.minibatches > 0);
    for (int i = 0; i < kEnvironmentCount<E> && rollout.size > 0; i++) {
      const int step = static_cast<int>(rollout.size) - 1;
      std::uint8_t& done = rollout.done[step * kEnvironmentCount<E> + i];
      if (done != rollout.kRunning) continue;
      done = rollout.kTruncated;
      auto* final = final_observation(rollout, i, truncations_before(rollout, i, step));
      for (int k = 0; k < kObservation; k++) {
        final[k] = rollout.current_observation[i * kObservation + k];
      }
    }
    restart_all(device, environment_of(training), training.learner.environments,
                training.hyperparameters.seed,
                [&](int i) { return rollout.current_observation + i * kObservation; });
  }
};

// ---- The state's tensors ------------------------------------------------------------------------

template <class T, int S, int N, int O, int A, int C, int M, class Visitor>
void for_each_rollout_tensor(RolloutBuffer<T, S, N, O, A, C, M>& rollout, Visitor&& visitor) {
  constexpr int kRows = S * N;
  visit_array("rollout/observation", rollout.observation, kRows, O, visitor);
  visit_array("rollout/action", rollout.action, kRows, A, visitor);
  visit_array("rollout/mean", rollout.mean, kRows, M, visitor);
  visit_array("rollout/reward", rollout.reward, kRows, 1, visitor);
  visit_array("rollout/done", rollout.done, kRows, 1, visitor);
  visit_array("rollout/advantage", rollout.advantage, kRows, 1, visitor);
  visit_array("rollout/target", rollout.target, kRows, 1, visitor);
  visit_array("rollout/current_observation", rollout.current_observation, N, O, visitor);
  visit_array("rollout/final_observation", rollout.final_observation, N * C, O, visitor);
  visit_array("rollout/size", &rollout.size, 1, 1, visitor);
}

// Visit the hidden states of a rollout with any: those of the next observations and of its windows.
template <class Rollout, class Visitor>
void for_each_state_of_rollout(Rollout& rollout, Visitor&& visitor) {
  for_each_states(rollout, [&](const char* present, const char* window, auto& states, int count) {
    constexpr int kSize = static_cast<int>(sizeof states.present / sizeof states.present[0]);
    constexpr int kWindows = static_cast<int>(sizeof states.window / sizeof states.window[0]);
    visit_array(present, states.present, kSize / count, count, visitor);
    visit_array(window, states.window, kWindows / count, count, visitor);
  });
}

// ---- Scratch memory -----------------------------------------------------------------------------

template <class E>
struct OnPolicyScratch : PolicyRows<typename E::Environment, kMaxPolicyRows<E>>,
                         WindowScratch<E, kMaxTruncations<E>>,
                         TransitionScratch<E> {
  using T = typename E::Scalar;
  static constexpr int kObservation = kCriticObservationDim<typename E::Environment>;
  static constexpr int kAction = E::Environment::kActionDim;
  static constexpr int kEnvironments = kEnvironmentCount<E>;
  static constexpr int kTile = E::kTileRows;

  // A step of the environments: what they observe, the actions that they are given, and what is
  // seen at the end of an episode that nothing follows.
  Matrix<T, kEnvironments, kObservation> present;
  Matrix<T, kEnvironments, kOutputDim<typename E::Environment>> mean;
  Matrix<T, kEnvironments, kAction> action;
  Matrix<T, kEnvironments, kObservation> unused_observation;
  StepBuffer<typename E::Actor, kEnvironments> acting_buffer;

  // The values of the rollout's rows, and of the observations after its last step.
  T value_of_row[kRolloutRows<E>];
  Matrix<T, kEnvironments, 1> current_value;
  StepBuffer<typename E::Critic, kEnvironments> current_value_buffer;

  // A tile of rows, normalized.
  Matrix<T, kTile, kObservation> observation;
  Matrix<T, kTile, 1> value;
  TileBuffer<E, typename E::Critic> critic_buffer;
};

}  // namespace rlt
