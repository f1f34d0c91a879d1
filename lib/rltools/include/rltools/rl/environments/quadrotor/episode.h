// Parameters of an episode of the quadrotor's task: its airframe, and what is drawn beside.
#pragma once

#include "rltools/core/math.h"
#include "rltools/core/random.h"
#include "rltools/rl/environments/quadrotor/dynamics.h"
#include "rltools/rl/environments/quadrotor/settings.h"

namespace rlt::quadrotor {

// The longest latency, and how many setpoints are kept for it by steps of `ticks` ticks.
constexpr int kMaxLatencyTicks = 10;
constexpr int held_actions(int ticks) { return (kMaxLatencyTicks + ticks - 1) / ticks; }

// An episode's own. Of the rotors' thrusts each has a gain; `latency` is in steps of the
// integrator.
#define RLT_QUADROTOR_PARAMETERS(X)                        \
  RLT_QUADROTOR_DYNAMICS(X)                                \
  X(Rotors<T>, gain)                                       \
  X(T, mass_kg)                                            \
  X(T, lag_up_s)                                           \
  X(T, lag_down_s)                                         \
  X(std::uint32_t, latency)                                \
  X(std::uint32_t, table)                                  \
  X(T, gust_keeps)     /* of the gust before, in a step */ \
  X(T, gust_changes)   /* times a normal number, to it */  \
  X(T, hover_fraction) /* of the greatest thrust */

template <class T>
RLT_DEFINE_FIELDS(EpisodeParameters, RLT_QUADROTOR_PARAMETERS)
// Return `value`, changed by up to the part `spread`, for the number `index` of the stream.
template <class T>
T spread_out(RandomStream random, std::uint32_t index, T value, T spread) {
  const T unit = uniform<T>(random, index, T(-1), T(1));
  return value * math::fma(spread, unit, T(1));
}

// Return an airframe that differs from `a` by up to `spread`: heavier, other inertia, stronger,
// slower.
template <class T>
Airframe<T> varied(Airframe<T> a, T spread, RandomStream random) {
  a.mass_kg = spread_out(random, 8, a.mass_kg, spread);
  const T inertia = spread_out(random, 9, T(1), spread);
  a.inertia_x *= inertia;
  a.inertia_y *= inertia;
  a.inertia_z = spread_out(random, 10, a.inertia_z, spread);
  const T strength = spread_out(random, 11, T(1), spread);
  a.thrust_0 *= strength;
  a.thrust_1 *= strength;
  a.thrust_2 *= strength;
  const T turn = spread_out(random, 12, strength, spread);
  a.torque_0 *= turn;
  a.torque_1 *= turn;
  a.torque_2 *= turn;
  a.lag_up_s = spread_out(random, 13, a.lag_up_s, spread);
  a.lag_down_s = spread_out(random, 14, a.lag_down_s, spread);
  return a;
}

// Return the table that an episode has.
inline std::uint32_t drawn_table(const Settings& settings, RandomStream random) {
  const auto choice = settings.airframe;
  if (choice == kAnyCrazyflie) return 1 + uniform_index(random, 0, kCrazyflieTables);
  if (choice == kAnyAirframe) return 1 + uniform_index(random, 0, kTableCount);
  return choice;
}

// Draw an episode with `airframe`, of steps of `substeps` times `substep_s`: the rotors' gains and
// the latency.
template <class T>
void draw_episode_of(const Airframe<T>& airframe, std::uint32_t table, const Settings& settings,
                     T substep_s, int substeps, RandomStream random,
                     EpisodeParameters<T>& parameters) {
  derive_dynamics(airframe, substep_s, parameters);
  for (std::uint32_t i = 0; i < 4; i++) {
    parameters.gain[i] = spread_out(random, 4 + i, T(1), static_cast<T>(settings.rotor_spread));
  }
  const T latency_s = static_cast<T>(settings.latency_ms) * T(1e-3);
  const T steps = latency_s / substep_s;
  parameters.latency =
      static_cast<std::uint32_t>(uniform<T>(random, 1, T(0), T(1)) * (steps + T(0.999)));
  const T step_s = substep_s * static_cast<T>(substeps);
  parameters.gust_keeps = math::exp(-step_s / static_cast<T>(settings.gust_s));
  parameters.gust_changes = static_cast<T>(settings.gust_m_s2) *
                            math::sqrt(T(1) - parameters.gust_keeps * parameters.gust_keeps);
  parameters.mass_kg = airframe.mass_kg;
  parameters.lag_up_s = airframe.lag_up_s;
  parameters.lag_down_s = airframe.lag_down_s;
  parameters.table = table;
  parameters.hover_fraction =
      airframe.mass_kg * static_cast<T>(kGravity_m_s2 / 4.0) / thrust(airframe, T(1));
}

// Draw an episode of steps of `substeps` times `substep_s`.
template <class T>
void draw_episode(const Settings& settings, T substep_s, int substeps, RandomStream random,
                  EpisodeParameters<T>& parameters) {
  const std::uint32_t table = drawn_table(settings, random);
  const auto airframe = varied(chosen_airframe<T>(table, custom_airframe<T>(settings)),
                               static_cast<T>(settings.spread), random);
  draw_episode_of(airframe, table, settings, substep_s, substeps, random, parameters);
}

}  // namespace rlt::quadrotor
