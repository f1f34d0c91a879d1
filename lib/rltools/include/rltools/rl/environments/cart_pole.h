// Gymnasium's CartPole-v1: keep a pole upright on a cart by pushing the cart to the left or to the
// right (Barto, Sutton and Anderson 1983, "Neuronlike adaptive elements that can solve difficult
// learning control problems"). Explicit Euler, 50 Hz; a reward of 1 each step, until the pole leans
// by more than 12 degrees, the cart is 2.4 m away, or 500 steps have passed.
#pragma once

#include "rltools/core/math.h"
#include "rltools/policy/contracts/cart_pole.h"
#include "rltools/rl/environment.h"

namespace rlt {

#define RLT_CART_POLE_STATE(X) \
  X(T, cart_position_m)        \
  X(T, cart_velocity_m_s)      \
  X(T, pole_angle_rad)         \
  X(T, pole_velocity_rad_s)

#define RLT_CART_POLE_CONSTANTS(X)                         \
  X(T, gravity_m_s2, T(9.8))                               \
  X(T, cart_mass_kg, T(1))                                 \
  X(T, pole_mass_kg, T(0.1))                               \
  X(T, half_length_m, T(0.5))                              \
  X(T, force_n, T(10))                                     \
  X(T, step_s, static_cast<T>(kStepInterval_us / 1e6))     \
  X(T, max_position_m, T(2.4))                             \
  X(T, max_angle_rad, static_cast<T>(0.20943951023931953)) \
  X(T, max_initial, T(0.05))

template <class T>
struct CartPole : contracts::CartPole, EnvironmentDefaults {
  using Scalar = T;
  static constexpr const char* kName = "CartPole-v1";
  static constexpr int kEpisodeSteps = 500;
  static constexpr float kSolvedReturn = 475.0f;
  static constexpr Shape kPicture[] = {// in meters, x to the right, y up
                                       {"view", "", "-3, -0.6, 3, 1.4"},
                                       {"rod", "ground", "-3, -0.2, 3, -0.2, 0.05"},
                                       {"area", "body",
                                        "cart_position - 0.3, -0.15, cart_position + 0.3, -0.15, "
                                        "cart_position + 0.3, 0.1, cart_position - 0.3, 0.1"},
                                       {"rod", "push",
                                        "cart_position, -0.4, cart_position + push - 0.5, -0.4, "
                                        "0.08"},
                                       {"rod", "part",
                                        "cart_position, 0, cart_position + sin(pole_angle), "
                                        "cos(pole_angle), 0.1"}};

  RLT_DEFINE_FIELDS(State, RLT_CART_POLE_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_CART_POLE_CONSTANTS)
};

// Draw each field uniformly between its bounds.
template <class T>
void reset(Generic, const CartPole<T>&, const typename CartPole<T>::Parameters& parameters,
           typename CartPole<T>::State& state, RandomStream random) {
  T drawn[4];
  uniforms(random, drawn, -parameters.max_initial, parameters.max_initial);
  state = {drawn[0], drawn[1], drawn[2], drawn[3]};
}

template <class T>
StepResult<T> step(Generic, const CartPole<T>&, const typename CartPole<T>::Parameters& parameters,
                   typename CartPole<T>::State& state, const T* action, RandomStream) {
  const auto& p = parameters;
  const T force = action[0] > T(0.5) ? p.force_n : -p.force_n;
  const T mass = p.cart_mass_kg + p.pole_mass_kg, moment = p.pole_mass_kg * p.half_length_m;
  const auto [sine, cosine] = math::sincos(state.pole_angle_rad);
  const T velocity = state.pole_velocity_rad_s;
  const T push = math::fma(moment * sine, velocity * velocity, force) / mass;
  const T inertia = p.half_length_m * (T(4) / T(3) - p.pole_mass_kg * (cosine * cosine) / mass);
  const T pole_acceleration = (p.gravity_m_s2 * sine - cosine * push) / inertia;
  const T cart_acceleration = push - moment * pole_acceleration * cosine / mass;
  state.cart_position_m = math::fma(p.step_s, state.cart_velocity_m_s, state.cart_position_m);
  state.cart_velocity_m_s = math::fma(p.step_s, cart_acceleration, state.cart_velocity_m_s);
  state.pole_angle_rad = math::fma(p.step_s, velocity, state.pole_angle_rad);
  state.pole_velocity_rad_s = math::fma(p.step_s, pole_acceleration, velocity);
  const bool is_away = math::absolute(state.cart_position_m) > p.max_position_m;
  const bool has_fallen = math::absolute(state.pole_angle_rad) > p.max_angle_rad;
  return {T(1), (is_away | has_fallen) != 0};
}

template <class T>
void observe(Generic, const CartPole<T>&, const typename CartPole<T>::Parameters&,
             const typename CartPole<T>::State& state, T* observation, RandomStream) {
  observation[0] = state.cart_position_m;
  observation[1] = state.cart_velocity_m_s;
  observation[2] = state.pole_angle_rad;
  observation[3] = state.pole_velocity_rad_s;
}

}  // namespace rlt
