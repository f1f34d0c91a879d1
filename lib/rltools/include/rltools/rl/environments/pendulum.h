// Gymnasium's Pendulum-v1: swing up and balance a pendulum with a torque too weak to lift it
// directly. Angle 0 is upright. Semi-implicit Euler, 20 Hz; episodes of 200 steps are truncated,
// never terminated.
#pragma once

#include "rltools/core/angle.h"
#include "rltools/core/math.h"
#include "rltools/policy/contracts/pendulum.h"
#include "rltools/rl/environment.h"

namespace rlt {

#define RLT_PENDULUM_STATE(X) \
  X(T, angle_rad)             \
  X(T, velocity_rad_s)

#define RLT_PENDULUM_CONSTANTS(X)                              \
  X(T, gravity_m_s2, T(10))                                    \
  X(T, mass_kg, T(1))                                          \
  X(T, length_m, T(1))                                         \
  X(T, step_s, static_cast<T>(kStepInterval_us / 1e6))         \
  X(T, max_velocity_rad_s, static_cast<T>(kMaxVelocity_rad_s)) \
  X(T, max_torque_nm, static_cast<T>(kMaxTorque_nm))           \
  X(T, max_initial_velocity_rad_s, T(1))                       \
  X(T, velocity_cost, T(0.1))                                  \
  X(T, torque_cost, T(0.001))

template <class T>
struct Pendulum : contracts::Pendulum, EnvironmentDefaults {
  using Scalar = T;
  static constexpr const char* kName = "Pendulum-v1";
  static constexpr int kEpisodeSteps = 200;
  static constexpr Shape kPicture[] = {// in lengths of the pendulum, x to the right, y up
                                       {"view", "", "-1.3, -1.3, 1.3, 1.3"},
                                       {"rod", "ground", "-1, -1.22, 1, -1.22, 0.06"},
                                       {"rod", "push", "0, -1.22, torque / 2, -1.22, 0.1"},
                                       {"rod", "body", "0, 0, -sin_angle, cos_angle, 0.14"},
                                       {"circle", "part", "0, 0, 0.06"}};

  RLT_DEFINE_FIELDS(State, RLT_PENDULUM_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_PENDULUM_CONSTANTS)
};

// Draw the angle uniformly in [-pi, pi), and the velocity uniformly between its bounds.
template <class T>
void reset(Generic, const Pendulum<T>&, const typename Pendulum<T>::Parameters& parameters,
           typename Pendulum<T>::State& state, RandomStream random) {
  const T bound = parameters.max_initial_velocity_rad_s;
  state.angle_rad = uniform<T>(random, 0, -math::kPi<T>, math::kPi<T>);
  state.velocity_rad_s = uniform<T>(random, 1, -bound, bound);
}

// Step the pendulum. The reward is -(angle^2 + velocity_cost velocity^2 + torque_cost torque^2) of
// the state before the step.
template <class T>
StepResult<T> step(Generic, const Pendulum<T>&, const typename Pendulum<T>::Parameters& parameters,
                   typename Pendulum<T>::State& state, const T* action, RandomStream) {
  const auto& p = parameters;
  const T torque = math::clamp(action[0], T(-1), T(1)) * p.max_torque_nm;
  const T angle = math::normalized_angle(state.angle_rad);
  const T cost = angle * angle + p.velocity_cost * (state.velocity_rad_s * state.velocity_rad_s) +
                 p.torque_cost * (torque * torque);
  const T acceleration = T(3) * p.gravity_m_s2 / (T(2) * p.length_m) * math::sin(state.angle_rad) +
                         T(3) / (p.mass_kg * p.length_m * p.length_m) * torque;
  state.velocity_rad_s = math::clamp(state.velocity_rad_s + acceleration * p.step_s,
                                     -p.max_velocity_rad_s, p.max_velocity_rad_s);
  state.angle_rad += state.velocity_rad_s * p.step_s;
  return {-cost, false};
}

template <class T>
void observe(Generic, const Pendulum<T>&, const typename Pendulum<T>::Parameters&,
             const typename Pendulum<T>::State& state, T* observation, RandomStream) {
  observation[0] = math::cos(state.angle_rad);
  observation[1] = math::sin(state.angle_rad);
  observation[2] = state.velocity_rad_s;
}

}  // namespace rlt
