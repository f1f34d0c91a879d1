// my-mass: a force moves a mass on a rail to its middle. Change what is marked EDIT.
#pragma once

#include "rltools/rl/algorithms/sac.h"

namespace rlt {

// EDIT: what changes in an episode, and the constants of physics. SI units.
#define MY_MASS_STATE(X) X(T, position_m) X(T, velocity_m_s)
#define MY_MASS_CONSTANTS(X) X(T, mass_kg, T(1))

template <class T>
struct MyMassEnvironment : EnvironmentDefaults {
  using Scalar = T;
  static constexpr const char* kName = "MyMass-v0";
  static constexpr int kEpisodeSteps = 100;  // EDIT: then an episode is cut off
  // [contract] EDIT: the time of a step; name, unit and range of what a policy gets and gives
  static constexpr std::uint32_t kStepInterval_us = 50000;
  static constexpr int kObservationDim = 2, kActionDim = 1;
  static constexpr Channel kObservations[kObservationDim] = {{"position", "m", -2.0f, 2.0f},
                                                             {"velocity", "m/s", -5.0f, 5.0f}};
  static constexpr Channel kActions[kActionDim] = {{"force", "N", -2.0f, 2.0f}};
  static constexpr float kSafeAction[kActionDim] = {0.0f};  // where something is wrong
  // [/contract]
  static constexpr Shape kPicture[] = {{"view", "", "-2.2, -0.8, 2.2, 0.8"},
                                       {"rod", "ground", "-2, -0.2, 2, -0.2, 0.04"},
                                       {"rod", "push", "position, 0, position + force / 2, 0, 0.1"},
                                       {"circle", "body", "position, 0, 0.18"}};
  RLT_DEFINE_FIELDS(State, MY_MASS_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, MY_MASS_CONSTANTS)
};

template <class T, class E = MyMassEnvironment<T>>  // EDIT: how an episode begins
void reset(Generic, const MyMassEnvironment<T>&, const typename E::Parameters&,
           typename E::State& state, RandomStream random) {
  state.position_m = uniform<T>(random, 0, T(-1), T(1));
  state.velocity_m_s = T(0);
}

template <class T, class E = MyMassEnvironment<T>>  // EDIT: one step; actions are in [-1, 1]
StepResult<T> step(Generic, const MyMassEnvironment<T>&, const typename E::Parameters& p,
                   typename E::State& state, const T* action, RandomStream) {
  constexpr T kStep_s = static_cast<T>(E::kStepInterval_us / 1e6);
  const T force_n = T(E::kActions[0].maximum) * math::clamp(action[0], T(-1), T(1));
  T &position = state.position_m, &velocity = state.velocity_m_s;
  velocity = math::clamp(velocity + kStep_s * force_n / p.mass_kg, T(-5), T(5));
  position = math::clamp(position + kStep_s * velocity, T(-2), T(2));
  const T cost = position * position + T(0.1) * velocity * velocity;
  return {-cost, false};  // the reward, and whether the episode ends here, as after a crash
}

template <class T, class E = MyMassEnvironment<T>>  // EDIT: what the policy gets
void observe(Generic, const MyMassEnvironment<T>&, const typename E::Parameters&,
             const typename E::State& state, T* observation, RandomStream) {
  observation[0] = state.position_m;
  observation[1] = state.velocity_m_s;
}

struct MyMass : TaskExperiment<Sac, MyMassEnvironment<float>, 64, 64> {  // EDIT: widths
  static constexpr const char* kName = "my-mass";
  using Hyperparameters = SacHyperparameters;  // 10,000 steps; --set NAME=VALUE
  static constexpr int kBatchSize = 100, kTileRows = 20, kReplayCapacity = 10000;
};

}  // namespace rlt
