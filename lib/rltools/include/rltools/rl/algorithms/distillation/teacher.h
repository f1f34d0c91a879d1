// A teacher, of whose actions another policy learns (algorithms/distillation/distillation.h): what
// its environment and the student's have to have in common, and what it would do in the student's.
//
// Both environments have the same State, or the student's derives from the teacher's, and the same
// Parameters and settings. What differs is what they observe, and what an action is.
//
// A teacher may have learned by other steps than those of the student, longer ones for example:
// then the experiment states, as AskedIn, what the teacher's environment is by the student's steps.
#pragma once

#include <type_traits>

#include "rltools/rl/algorithms/distillation/parameters.h"
#include "rltools/rl/on_policy.h"

namespace rlt {

// Translate an action of the teacher's environment into the student's: by default it is the same
// one. Where it is another one, the teacher's environment has its own translate_action().
template <class Parameters, class T>
void translate_action(Generic, const EnvironmentDefaults&, const Parameters&, const T*, T*) {}

namespace detail {

template <class E, class = void>
struct AskedIn {
  using Environment = typename E::Teacher::Environment;
};
template <class E>
struct AskedIn<E, std::void_t<typename E::AskedIn>> {
  using Environment = typename E::AskedIn;
};

}  // namespace detail

// The environment in which the teacher sees the student's states: E::AskedIn, or that in which it
// learned.
template <class E>
using AskedIn = typename detail::AskedIn<E>::Environment;

// Contract of an experiment E with a Teacher: it and its student fit together.
template <class E>
struct StudentContract {
  template <bool Asserts>
  static constexpr bool check() {
    using Student = typename E::Environment;
    using Teacher = AskedIn<E>;
    using Learned = typename E::Teacher::Environment;
    constexpr int kLastLayer = E::Actor::kLayerCount - 1;
    bool kept = true;
    RLT_REQUIRE(!kIsRecurrent<typename E::Teacher::Actor>,
                "the teacher's actor is recurrent: it sees what it needs");
    RLT_REQUIRE((std::is_same_v<typename Student::Scalar, typename E::Scalar> &&
                 std::is_same_v<typename Teacher::Scalar, typename E::Scalar>),
                "the Scalars of experiment, student's and teacher's environment differ");
    RLT_REQUIRE((std::is_base_of_v<typename Teacher::State, typename Student::State> &&
                 std::is_same_v<typename Student::Parameters, typename Teacher::Parameters> &&
                 std::is_same_v<typename Student::Settings, typename Teacher::Settings>),
                "the student's environment has another State, other Parameters or Settings than "
                "the teacher's");
    RLT_REQUIRE(!kIsDiscrete<Student> && !kIsDiscrete<Teacher>,
                "the actions are choices, and distillation learns numbers");
    RLT_REQUIRE(!kIsExternal<Student> && !kIsExternal<Teacher>,
                "distillation steps environments itself, and one is elsewhere");
    RLT_REQUIRE((std::is_base_of_v<DistillationHyperparameters, typename E::Hyperparameters>),
                "the experiment's Hyperparameters are not DistillationHyperparameters nor derived "
                "from it");
    RLT_REQUIRE(E::Actor::activation(kLastLayer) == Activation::identity,
                "the student's last activation must be identity, because its action is clamped");
    RLT_REQUIRE(Teacher::kObservationDim == Learned::kObservationDim &&
                    Teacher::kActionDim == Learned::kActionDim,
                "AskedIn has another observation or action width than the environment in which the "
                "teacher learns");
    RLT_REQUIRE(Size<Teacher::kActionDim>::template kIs<Student::kActionDim>,
                "the teacher's action width differs from the student's");
    RLT_REQUIRE(Size<E::Actor::kInputDim>::template kIs<Student::kObservationDim>,
                "the student's input width differs from its environment's observation width");
    RLT_REQUIRE(Size<E::Actor::kOutputDim>::template kIs<Student::kActionDim>,
                "the student's output width differs from its environment's action width");
    RLT_REQUIRE(Size<kRolloutRows<E> % E::kBatchSize>::template kIs<0>,
                "kBatchSize does not divide kRolloutSteps times kEnvironments: the remainder is "
                "not 0");
    RLT_REQUIRE(Size<E::kBatchSize % E::kTileRows>::template kIs<0>,
                "kTileRows does not divide kBatchSize: the remainder is not 0");
    return kept && WindowContract<E>::template check<Asserts>();
  }
};

namespace distillation {

// Return the teacher's run within the run.
template <class E>
Training<typename E::Teacher> teacher_of(const Training<E>& training) {
  using Teacher = typename E::Teacher;
  RunHyperparameters<Teacher> values;
  const auto& all = training.hyperparameters;
  for (int i = 0; i < PpoHyperparameters::kCount; i++) {
    static_cast<PpoHyperparameters&>(values).set_bits(i, all.get_bits(i));
  }
  values.steps = all.teacher_steps;
  if constexpr (kHasSettings<typename E::Environment>) {
    static_cast<typename E::Environment::Settings&>(values.environment) = all.environment;
  }
  return {values, training.learner.teacher, training.replay.teacher, training.scratch.teacher};
}

// Set scratch.teacher_action (environments, ActionDim) to the teacher's actions for the current
// states, as actions of the student's environment.
template <class Device, class E>
void ask_teacher(Device device, Training<E>& training,
                 const Training<typename E::Teacher>& teacher) {
  using T = typename E::Scalar;
  using Environment = AskedIn<E>;
  constexpr int kEnvironments = kEnvironmentCount<E>, kSeen = Environment::kObservationDim;
  Environment environment{};
  if constexpr (kHasSettings<Environment>) {
    environment.settings = training.hyperparameters.environment;
  }
  const auto& environments = training.learner.environments;
  auto& scratch = training.scratch;
  for (int i = 0; i < kEnvironments; i++) {
    const typename Environment::State& state = environments.state[i];
    observe(device, environment, environments.at(i), state, scratch.teacher_row,
            RandomStream{training.hyperparameters.seed, Purpose::teacher_observation,
                         training.learner.progress.step, static_cast<std::uint32_t>(i)});
    normalize_part<kSeen>(teacher.learner.normalizer, scratch.teacher_row,
                          scratch.teacher_observation.row(i));
  }
  forward(device, teacher.learner.actor, scratch.teacher_observation, scratch.teacher_action,
          scratch.teacher_buffer);
  for (int i = 0; i < kEnvironments; i++) {
    T clamped[Environment::kActionDim], *action = scratch.teacher_action.row(i);
    for (int k = 0; k < Environment::kActionDim; k++) {
      clamped[k] = action[k] = math::clamp(action[k], T(-1), T(1));
    }
    translate_action(device, environment, environments.at(i), static_cast<const T*>(clamped),
                     action);
  }
}

}  // namespace distillation

}  // namespace rlt
