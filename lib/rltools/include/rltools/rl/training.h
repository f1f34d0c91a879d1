// A training run: the experiment's learner, replay buffer and scratch memory, and what every
// algorithm offers. Firmware, tests and bindings use these functions only; rl/algorithms/*.h
// implements them.
#pragma once

#include "rltools/core/fields.h"
#include "rltools/core/finite.h"
#include "rltools/core/tensor.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/hyperparameters.h"

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

// The experiment E, its batches worked through in tiles of `Rows` samples: other memory and speed,
// the same bits.
template <class E, int Rows>
struct WithTileRows : E {
  static constexpr int kTileRows = Rows;
};

// The experiment E with scratch memory of its own for the second critic, so that a device with a
// second thread works on both critics at once: the same bits.
struct SecondCriticScratch {};
template <class E>
struct WithSecondCriticScratch : E, SecondCriticScratch {};

// An experiment's run. The three parts are placed by whoever owns them (docs/design.md, "Memory").
template <class E>
struct Training {
  using Experiment = E;
  // What does not fit together is said here, in one sentence, and nothing else of the run is
  // compiled.
  static_assert(EnvironmentContract<typename E::Environment>::kChecked);
  static_assert(E::Algorithm::template ExperimentContract<E>::kChecked);

  typename E::Hyperparameters hyperparameters;
  Learner<E>& learner;  // networks, optimiser moments, progress: touched every step
  Replay<E>& replay;    // bulk
  Scratch<E>& scratch;  // activations and gradients; not part of the state
};

// Where a run stands: environment steps done, critic updates done, training episodes ended, steps
// done in the present episode and the sum of its rewards; the returns of the last and of the best
// training episode, NaN before the first has ended. Part of the training state.
#define RLT_PROGRESS_FIELDS(X)   \
  X(std::uint32_t, step)         \
  X(std::uint32_t, updates)      \
  X(std::uint32_t, episodes)     \
  X(std::uint32_t, episode_step) \
  X(T, episode_return)           \
  X(T, last_return)              \
  X(T, best_return)
template <class T>
RLT_DEFINE_FIELDS(Progress, RLT_PROGRESS_FIELDS)

// What one training step did.
struct StepReport {
  bool updated;        // critics were updated; the losses below are valid
  bool actor_updated;  // the actor was updated; actor_loss is valid
  bool episode_ended;  // episode_return is valid
  bool finite;         // false once an action, loss or return is not a finite number
  float episode_return;
  float critic_1_loss;
  float critic_2_loss;
  float actor_loss;
};

// Whether the environment and the experiment keep their contracts; what relies on them is compiled
// only then. (The condition is a parameter because Clang refuses to use it again where it has
// failed in a variable's initialiser.)
template <class E, bool Kept = EnvironmentContract<typename E::Environment>::kKept &&
                               E::Algorithm::template ExperimentContract<E>::kKept>
struct Contracts {
  static constexpr bool kKept = Kept;
};

// Sets the whole state from the hyperparameters: networks from the seed, empty replay buffer, first
// episode.
template <class Device, class E>
void initialize(Device device, Training<E>& training) {
  if constexpr (Contracts<E>::kKept) {
    initialize_algorithm(device, typename E::Algorithm{}, training);
  }
}

// One environment step and the updates that go with it.
template <class Device, class E>
StepReport train_step(Device device, Training<E>& training) {
  if constexpr (Contracts<E>::kKept) {
    return train_step_algorithm(device, typename E::Algorithm{}, training);
  }
  return {};
}

// The deterministic action (1, ActionDim) in [-1, 1] for an observation (1, ObservationDim).
template <class Device, class E, class Observation, class Action>
void act(Device device, Training<E>& training, const Observation& observation, Action& action) {
  act_algorithm(device, typename E::Algorithm{}, training, observation, action);
}

// Visits every array of the training state in the documented order: visitor(const TensorInfo&,
// void* data).
template <class E, class Visitor>
void for_each_state_tensor(Training<E>& training, Visitor&& visitor) {
  if constexpr (Contracts<E>::kKept) {
    for_each_state_tensor_algorithm(typename E::Algorithm{}, training, visitor);
  }
}

// Whether every float of the state is finite, as those of a run at rest are. (Returns are NaN
// before an episode has ended, but never infinite.)
template <class E>
bool state_is_finite(Training<E>& training) {
  bool finite = true;
  for_each_state_tensor(training, [&](const TensorInfo& info, const void* data) {
    const auto check = [&](const auto* values) {
      for (std::uint32_t i = 0; i < info.rows * info.columns; i++) {
        const bool is_nan = values[i] != values[i];
        if (!is_finite(values[i]) && !(is_nan && info.may_be_nan)) finite = false;
      }
    };
    if (info.type == DataType::f32) check(static_cast<const float*>(data));
    if (info.type == DataType::f64) check(static_cast<const double*>(data));
  });
  return finite;
}

// The trained network as it is deployed; valid until the next training step.
template <class E>
const PolicyNetwork<E>& policy(const Training<E>& training) {
  return policy_algorithm(typename E::Algorithm{}, training);
}

template <class E>
std::uint32_t steps_done(const Training<E>& training) {
  return training.learner.progress.step;
}

template <class E>
bool finished(const Training<E>& training) {
  return steps_done(training) >= training.hyperparameters.steps;
}

// Size of the checkpoint's payload.
template <class E>
std::uint32_t state_bytes(Training<E>& training) {
  std::uint32_t bytes = 0;
  for_each_state_tensor(training, [&](const TensorInfo& info, void*) { bytes += info.bytes(); });
  return bytes;
}

}  // namespace rlt
