// my-pendulum: a torque too weak to lift a pendulum swings it up. Change what is marked EDIT.
#pragma once

#include "rltools/rl/algorithms/sac.h"

namespace rlt {

// EDIT: what changes in an episode, and the constants of physics. SI units.
#define MY_PENDULUM_STATE(X) X(T, angle_rad) X(T, velocity_rad_s)
#define MY_PENDULUM_CONSTANTS(X) X(T, weight_nm, T(5)) X(T, inertia_kg_m2, T(1) / 3)

template <class T>
struct MyPendulumEnvironment : EnvironmentDefaults {
  using Scalar = T;
  static constexpr const char* kName = "MyPendulum-v0";
  static constexpr int kEpisodeSteps = 200;  // EDIT: then an episode is cut off
  // [contract] EDIT: the time of a step; name, unit and range of what a policy gets and gives
  static constexpr std::uint32_t kStepInterval_us = 50000;
  static constexpr int kObservationDim = 3, kActionDim = 1;
  static constexpr Channel kObservations[kObservationDim] = {{"cos_angle", "1", -1.0f, 1.0f},
                                                             {"sin_angle", "1", -1.0f, 1.0f},
                                                             {"velocity", "rad/s", -8.0f, 8.0f}};
  static constexpr Channel kActions[kActionDim] = {{"torque", "N*m", -2.0f, 2.0f}};
  static constexpr float kSafeAction[kActionDim] = {0.0f};  // where something is wrong
  // [/contract]
  static constexpr Shape kPicture[] = {{"view", "", "-1.3, -1.3, 1.3, 1.3"},
                                       {"rod", "push", "0, -1.2, torque / 2, -1.2, 0.1"},
                                       {"rod", "body", "0, 0, -sin_angle, cos_angle, 0.14"}};
  RLT_DEFINE_FIELDS(State, MY_PENDULUM_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, MY_PENDULUM_CONSTANTS)
};

template <class T, class E = MyPendulumEnvironment<T>>  // EDIT: how an episode begins
void reset(Generic, const MyPendulumEnvironment<T>&, const typename E::Parameters&,
           typename E::State& state, RandomStream random) {
  state.angle_rad = uniform<T>(random, 0, T(-3.14159265), T(3.14159265));
  state.velocity_rad_s = uniform<T>(random, 1, T(-1), T(1));
}

template <class T, class E = MyPendulumEnvironment<T>>  // EDIT: one step; actions are in [-1, 1]
StepResult<T> step(Generic, const MyPendulumEnvironment<T>&, const typename E::Parameters& p,
                   typename E::State& state, const T* action, RandomStream) {
  constexpr T kStep_s = static_cast<T>(E::kStepInterval_us / 1e6), kTurn_rad = T(6.283185307);
  T &angle = state.angle_rad, &velocity = state.velocity_rad_s;
  const T torque_nm = T(E::kActions[0].maximum) * math::clamp(action[0], T(-1), T(1));
  const T acceleration = (p.weight_nm * math::sin(angle) + torque_nm) / p.inertia_kg_m2;
  velocity = math::clamp(velocity + kStep_s * acceleration, T(-8), T(8));
  angle += kStep_s * velocity;
  angle -= kTurn_rad * math::floor(angle / kTurn_rad + T(0.5));
  const T cost = angle * angle + T(0.1) * velocity * velocity;
  return {-cost, false};  // the reward, and whether the episode ends here, as after a crash
}

template <class T, class E = MyPendulumEnvironment<T>>  // EDIT: what the policy gets
void observe(Generic, const MyPendulumEnvironment<T>&, const typename E::Parameters&,
             const typename E::State& state, T* observation, RandomStream) {
  observation[0] = math::cos(state.angle_rad);
  observation[1] = math::sin(state.angle_rad);
  observation[2] = state.velocity_rad_s;
}

struct MyPendulum : TaskExperiment<Sac, MyPendulumEnvironment<float>, 64, 64> {  // EDIT: widths
  static constexpr const char* kName = "my-pendulum";
  using Hyperparameters = SacHyperparameters;  // 10,000 steps; --set NAME=VALUE
  static constexpr int kBatchSize = 100, kTileRows = 20, kReplayCapacity = 10000;
};

}  // namespace rlt
