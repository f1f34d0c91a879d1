// A distribution of airframes: what an episode with a drone that nobody has seen draws. Its bounds
// are those of RAPTOR (Eschmann, Albani and Loianno 2025, arXiv:2509.11481), and published tables
// (airframe.h) lie within most of them.
//
// A drone moves not by its mass but by ratios: of thrust to weight, of a rotor's torque to the
// inertia, and the rotors' lags. These are drawn, each by itself; inertias and thrusts follow from
// them, and from a mass and arms as long as a drone of that mass has.
//
// X frames. A + frame has the rotors of airframe.h for who takes the direction between two of its
// arms for forward; where its inertias about the arms differ, it has products of inertia then,
// which no X frame has. Training draws none; the gate any-airframe flies them
// (host/native/flown_quadrotor.h).
#pragma once

#include "rltools/core/math.h"
#include "rltools/core/random.h"
#include "rltools/rl/environments/quadrotor/airframe.h"
#include "rltools/rl/environments/quadrotor/settings.h"

namespace rlt::quadrotor {

// Bounds of the distribution, in pairs _min and _max. "log": the logarithm is uniform between them.
// X(type, name, default, minimum, maximum, unit, description)
#define RLT_QUADROTOR_DISTRIBUTION(X)                                                             \
  X(float, table_share, 0.1, 0, 1, "1", "Share of episodes with a table, by `airframe`.")         \
  X(float, mass_min, 0.02, 0.005, 20, "kg", "Least mass.")                                        \
  X(float, mass_max, 5, 0.005, 20, "kg", "Greatest mass; log.")                                   \
  X(float, lift_min, 1.5, 1.05, 20, "1", "Least ratio of the greatest thrust to the weight.")     \
  X(float, lift_max, 5, 1.05, 20, "1", "Greatest one; uniform.")                                  \
  X(float, turn_min, 40, 1, 1e4, "rad/s^2", "Least torque to inertia about x and y, of a rotor.") \
  X(float, turn_max, 1200, 1, 1e4, "rad/s^2", "Greatest one: its thrust times its arm; log.")     \
  X(float, turn_ratio, 1.4, 1, 10, "1", "Of x to y at most, or of y to x; log.")                  \
  X(float, lag_up_min, 0.03, 0.001, 2, "s", "Least time constant of a rotor that gains speed.")   \
  X(float, lag_up_max, 0.1, 0.001, 2, "s", "Greatest one; log.")                                  \
  X(float, lag_down_min, 0.03, 0.001, 2, "s", "Least time constant of a rotor that loses speed.") \
  X(float, lag_down_max, 0.3, 0.001, 2, "s", "Greatest one; log.")                                \
  X(float, yaw_min, 0.005, 1e-4, 1, "m", "Least torque of a rotor to its thrust.")                \
  X(float, yaw_max, 0.05, 1e-4, 1, "m", "Greatest one; log.")                                     \
  X(float, arm_min, 0.09, 0.01, 1, "m/kg^(1/3)", "Least distance of rotors from an axis.")        \
  X(float, arm_max, 0.2, 0.01, 1, "m/kg^(1/3)", "Greatest one, times the mass' cubic root; log.") \
  X(float, drag_max, 0.5, 0, 10, "1/s", "Greatest drag at 1 m/s, to the mass; from 0, uniform.")

RLT_DEFINE_HYPERPARAMETERS(Distribution, RLT_QUADROTOR_DISTRIBUTION)
using AnySettings = JoinedHyperparameters<Settings, Distribution>;

// The numbers of an episode's stream that its airframe takes, from this one on; and the one that
// chooses a table.
constexpr std::uint32_t kAirframeIndex = 32, kTableIndex = 31;

template <class T>
Airframe<T> drawn_airframe(const Distribution& within, RandomStream random) {
  const auto unit = [&](std::uint32_t i) {
    return uniform<T>(random, kAirframeIndex + i, T(0), T(1));
  };
  const auto even = [&](std::uint32_t i, float low, float high) {
    return math::fma(unit(i), static_cast<T>(high) - static_cast<T>(low), static_cast<T>(low));
  };
  const auto log = [&](std::uint32_t i, float low, float high) {
    const T from = math::log(static_cast<T>(low)), to = math::log(static_cast<T>(high));
    return math::exp(math::fma(unit(i), to - from, from));
  };
  constexpr T kToInertia = T(1e6), kThird = static_cast<T>(1.0 / 3.0);
  Airframe<T> a;
  a.mass_kg = log(0, within.mass_min, within.mass_max);
  const T size = math::exp(math::log(a.mass_kg) * kThird);
  a.rotor_x_m = a.rotor_y_m = size * log(1, within.arm_min, within.arm_max);
  const T greatest =
      even(2, within.lift_min, within.lift_max) * a.mass_kg * static_cast<T>(kGravity_m_s2 / 4.0);
  const T turn = log(3, within.turn_min, within.turn_max);
  const T ratio = math::sqrt(log(4, 1.0f / within.turn_ratio, within.turn_ratio));
  a.inertia_x = kToInertia * a.rotor_y_m * greatest / (turn * ratio);
  a.inertia_y = kToInertia * a.rotor_x_m * greatest * ratio / turn;
  a.inertia_z = T(0.5) * (a.inertia_x + a.inertia_y) * even(5, 1.2f, 2.0f);
  const T linear = unit(6);  // the share of the thrust that is proportional to the speed
  a.thrust_0 = T(0);
  a.thrust_1 = linear * greatest;
  a.thrust_2 = greatest - a.thrust_1;
  const T turning_mm = T(1e3) * log(7, within.yaw_min, within.yaw_max);
  a.torque_0 = T(0);
  a.torque_1 = turning_mm * a.thrust_1;
  a.torque_2 = turning_mm * a.thrust_2;
  a.lag_up_s = log(8, within.lag_up_min, within.lag_up_max);
  a.lag_down_s = log(9, within.lag_down_min, within.lag_down_max);
  a.drag_x = a.drag_y = even(10, 0.0f, within.drag_max) * a.mass_kg;
  a.drag_z = even(11, 0.0f, within.drag_max) * a.mass_kg;
  a.drag_rotation = a.sag_load = a.sag_per_min = T(0);
  return a;
}

}  // namespace rlt::quadrotor
