// Gymnasium's Acrobot-v1: two links that hang from a joint, with a torque between them alone, are
// to swing their end to the height of a link above the joint (Sutton 1996, "Generalization in
// reinforcement learning: successful examples using sparse coarse coding"). The equations are those
// of Sutton and Barto, "Reinforcement learning: an introduction", example 11.3 of the first
// edition, which Gymnasium calls the book's. Runge and Kutta's fourth order, 5 Hz; a reward of -1
// each step, 0 of the one that gets there, until 500 steps have passed.
#pragma once

#include "rltools/core/angle.h"
#include "rltools/core/math.h"
#include "rltools/policy/contracts/acrobot.h"
#include "rltools/rl/environment.h"

namespace rlt {

#define RLT_ACROBOT_STATE(X) \
  X(T, upper_angle_rad)      \
  X(T, lower_angle_rad)      \
  X(T, upper_velocity_rad_s) \
  X(T, lower_velocity_rad_s)

#define RLT_ACROBOT_CONSTANTS(X)                                        \
  X(T, gravity_m_s2, T(9.8))                                            \
  X(T, upper_mass_kg, T(1))                                             \
  X(T, lower_mass_kg, T(1))                                             \
  X(T, upper_length_m, T(1))                                            \
  X(T, upper_center_m, T(0.5)) /* of mass, from the link's joint */     \
  X(T, lower_center_m, T(0.5))                                          \
  X(T, upper_inertia_kg_m2, T(1)) /* about the center of mass */        \
  X(T, lower_inertia_kg_m2, T(1))                                       \
  X(T, torque_nm, T(1))                                                 \
  X(T, step_s, static_cast<T>(kStepInterval_us / 1e6))                  \
  X(T, max_upper_velocity_rad_s, static_cast<T>(4 * 3.141592653589793)) \
  X(T, max_lower_velocity_rad_s, static_cast<T>(9 * 3.141592653589793)) \
  X(T, goal_height_m, T(1)) /* above the joint; links of 1 m */         \
  X(T, max_initial, T(0.1))

template <class T>
struct Acrobot : contracts::Acrobot, EnvironmentDefaults {
  using Scalar = T;
  static constexpr const char* kName = "Acrobot-v1";
  static constexpr int kEpisodeSteps = 500;
  static constexpr float kSolvedReturn = -100.0f;
  static constexpr Shape kPicture[] = {
      // in meters, x to the right, y up; the joint that holds it is at (0, 0)
      {"view", "", "-2.2, -2.2, 2.2, 2.2"},
      {"rod", "ground", "-2.2, 1, 2.2, 1, 0.04"},
      {"let", "sin_sum", "sin_upper * cos_lower + cos_upper * sin_lower"},
      {"let", "cos_sum", "cos_upper * cos_lower - sin_upper * sin_lower"},
      {"let", "tip_x", "sin_upper + sin_sum"},
      {"let", "tip_y", "-cos_upper - cos_sum"},
      {"rod", "part", "0, 0, sin_upper, -cos_upper, 0.16"},
      {"rod", "body", "sin_upper, -cos_upper, tip_x, tip_y, 0.16"},
      {"rod", "push",
       "tip_x, tip_y, tip_x + 0.5 * (torque - 1) * cos_sum, tip_y + 0.5 * (torque - 1) * sin_sum, "
       "0.08"},
      {"circle", "ground", "0, 0, 0.07"}};

  RLT_DEFINE_FIELDS(State, RLT_ACROBOT_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_ACROBOT_CONSTANTS)
};

namespace acrobot {

// Angles and velocities of both links, or their rates of change.
template <class T>
struct Motion {
  T upper_angle, lower_angle, upper_velocity, lower_velocity;
};

// Return a + h b.
template <class T>
[[gnu::always_inline]] inline Motion<T> moved(const Motion<T>& a, T h, const Motion<T>& b) {
  return {math::fma(h, b.upper_angle, a.upper_angle), math::fma(h, b.lower_angle, a.lower_angle),
          math::fma(h, b.upper_velocity, a.upper_velocity),
          math::fma(h, b.lower_velocity, a.lower_velocity)};
}

// Return the derivative of a state, with the book's names: d1, d2, phi1, phi2.
template <class T, class Parameters>
[[gnu::always_inline]] inline Motion<T> rate(const Parameters& p, const Motion<T>& at, T torque) {
  const auto upper = math::sincos(at.upper_angle);
  const auto lower = math::sincos(at.lower_angle);
  const T sine_of_sum = upper.sine * lower.cosine + upper.cosine * lower.sine;
  const T coupling = p.lower_mass_kg * p.upper_length_m * p.lower_center_m;
  const T lower_moment = p.lower_mass_kg * p.lower_center_m;
  const T lower_inertia = math::fma(lower_moment, p.lower_center_m, p.lower_inertia_kg_m2);
  const T upper_inertia = p.upper_mass_kg * p.upper_center_m * p.upper_center_m +
                          p.lower_mass_kg * p.upper_length_m * p.upper_length_m +
                          p.upper_inertia_kg_m2;
  const T d2 = math::fma(coupling, lower.cosine, lower_inertia);
  const T d1 = upper_inertia + math::fma(coupling, lower.cosine, d2);
  const T phi2 = lower_moment * p.gravity_m_s2 * sine_of_sum;
  const T upper_moment =
      math::fma(p.lower_mass_kg, p.upper_length_m, p.upper_mass_kg * p.upper_center_m);
  const T centrifugal = coupling * lower.sine;
  const T phi1 =
      -centrifugal * at.lower_velocity * math::fma(T(2), at.upper_velocity, at.lower_velocity) +
      math::fma(upper_moment * p.gravity_m_s2, upper.sine, phi2);
  const T share = d2 / d1;
  const T lower_acceleration =
      (torque + share * phi1 - centrifugal * at.upper_velocity * at.upper_velocity - phi2) /
      (lower_inertia - d2 * share);
  const T upper_acceleration = -math::fma(d2, lower_acceleration, phi1) / d1;
  return {at.upper_velocity, at.lower_velocity, upper_acceleration, lower_acceleration};
}

}  // namespace acrobot

// Draw each field uniformly between its bounds.
template <class T>
void reset(Generic, const Acrobot<T>&, const typename Acrobot<T>::Parameters& parameters,
           typename Acrobot<T>::State& state, RandomStream random) {
  T drawn[4];
  uniforms(random, drawn, -parameters.max_initial, parameters.max_initial);
  state = {drawn[0], drawn[1], drawn[2], drawn[3]};
}

template <class T>
StepResult<T> step(Generic, const Acrobot<T>&, const typename Acrobot<T>::Parameters& parameters,
                   typename Acrobot<T>::State& state, const T* action, RandomStream) {
  const auto& p = parameters;
  const T torque = (action[0] - T(1)) * p.torque_nm;  // of choice 0, 1 or 2
  const acrobot::Motion<T> begin{state.upper_angle_rad, state.lower_angle_rad,
                                 state.upper_velocity_rad_s, state.lower_velocity_rad_s};
  const T half = T(0.5) * p.step_s;
  const auto k1 = acrobot::rate(p, begin, torque);
  const auto k2 = acrobot::rate(p, acrobot::moved(begin, half, k1), torque);
  const auto k3 = acrobot::rate(p, acrobot::moved(begin, half, k2), torque);
  const auto k4 = acrobot::rate(p, acrobot::moved(begin, p.step_s, k3), torque);
  const auto sum = acrobot::moved(acrobot::moved(acrobot::moved(k1, T(2), k2), T(2), k3), T(1), k4);
  const auto end = acrobot::moved(begin, p.step_s / T(6), sum);
  state.upper_angle_rad = math::normalized_angle(end.upper_angle);
  state.lower_angle_rad = math::normalized_angle(end.lower_angle);
  state.upper_velocity_rad_s =
      math::clamp(end.upper_velocity, -p.max_upper_velocity_rad_s, p.max_upper_velocity_rad_s);
  state.lower_velocity_rad_s =
      math::clamp(end.lower_velocity, -p.max_lower_velocity_rad_s, p.max_lower_velocity_rad_s);
  const T height =
      -math::cos(state.upper_angle_rad) - math::cos(state.upper_angle_rad + state.lower_angle_rad);
  const bool is_there = height > p.goal_height_m;
  return {is_there ? T(0) : T(-1), is_there};
}

template <class T>
void observe(Generic, const Acrobot<T>&, const typename Acrobot<T>::Parameters&,
             const typename Acrobot<T>::State& state, T* observation, RandomStream) {
  const auto upper = math::sincos(state.upper_angle_rad);
  const auto lower = math::sincos(state.lower_angle_rad);
  observation[0] = upper.cosine;
  observation[1] = upper.sine;
  observation[2] = lower.cosine;
  observation[3] = lower.sine;
  observation[4] = state.upper_velocity_rad_s;
  observation[5] = state.lower_velocity_rad_s;
}

}  // namespace rlt
