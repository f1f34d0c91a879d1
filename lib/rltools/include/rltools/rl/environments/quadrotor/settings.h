// Settings of a quadrotor's task, chosen when a run begins: airframe, disturbances, starts, limits
// and the reward. Reached by `--set` and by the protocol's parameters.
#pragma once

#include "rltools/rl/environments/quadrotor/airframe.h"
#include "rltools/rl/hyperparameters.h"

namespace rlt::quadrotor {

// Movements of the target.
enum class Task : std::uint32_t { hover, waypoints, figure_eight };

// Choices of `airframe` beyond those of one table (chosen_airframe()): drawn in each episode.
constexpr std::uint32_t kAnyCrazyflie = kTableCount + 1, kAnyAirframe = kTableCount + 2;
constexpr std::uint32_t kCrazyflieTables = 5;

// X(type, name, default, minimum, maximum, unit, description)
#define RLT_QUADROTOR_TASK(X)                                                                      \
  X(std::uint32_t, airframe, 1, 0, 9, "",                                                          \
    "0: the values below; 1 to 7: a table of quadrotor/airframe.h; 8: any Crazyflie of these, 9: " \
    "any of these.")                                                                               \
  X(float, spread, 0, 0, 0.9, "1",                                                                 \
    "Mass, inertia, thrust, torque and lag of an episode differ by up to this part.")              \
  X(float, rotor_spread, 0, 0, 0.5, "1", "The thrust of each rotor differs by up to this part.")   \
  X(float, latency_ms, 0, 0, 20, "ms", "Greatest delay to the rotors; drawn per episode.")         \
  X(float, loss, 0, 0, 1, "1", "Share of the commands that are lost: the last one holds.")         \
  X(float, noise, 0, 0, 100, "1",                                                                  \
    "Noise of the sensors; 1: deviations of 2 mm, 0.02 m/s, 0.005 rad and 0.05 rad/s.")            \
  X(float, gust_m_s2, 0, 0, 50, "m/s^2", "Wind: standard deviation of its acceleration.")          \
  X(float, gust_s, 0.5, 0.01, 100, "s", "Time in which the wind changes.")                         \
  X(float, push_m_s, 0, 0, 20, "m/s", "A push changes the velocity by this, in any direction.")    \
  X(float, push_every_s, 2, 0.01, 1000, "s", "Mean time between two pushes.")                      \
  X(std::uint32_t, task, 0, 0, 2, "", "0: hover, 1: waypoints, 2: a figure eight.")                \
  X(float, target_m, 1, 0, 4, "m", "Waypoints lie within this, the figure eight is as wide.")      \
  X(float, target_s, 3, 0.1, 1000, "s", "Time to the next waypoint, or of one figure eight.")      \
  X(float, start_share, 0.9, 0, 1, "1", "Share of episodes that begin away from the target.")      \
  X(float, start_position, 0.5, 0, 5, "m", "Greatest distance from the target along an axis.")     \
  X(float, start_velocity, 1, 0, 10, "m/s", "Greatest velocity along an axis.")                    \
  X(float, start_tilt, 90, 0, 180, "deg", "Greatest rotation from level and forward.")             \
  X(float, start_rate, 1, 0, 30, "rad/s", "Greatest angular velocity about an axis.")              \
  X(float, limit_position, 2, 0.1, 5, "m", "A greater distance along an axis ends the episode.")   \
  X(float, limit_velocity, 5, 0.1, 20, "m/s", "A greater velocity along an axis ends it.")         \
  X(float, limit_rate, 35, 1, 100, "rad/s", "A greater angular velocity about an axis ends it.")   \
  X(float, reward_alive, 1, 0, 100, "", "Reward of a step, before costs.")                         \
  X(float, cost_position, 1, 0, 100, "1/m", "Cost of the distance from the target.")               \
  X(float, cost_height, 0, 0, 100, "1/m", "Cost of the height above or below it, besides.")        \
  X(float, cost_velocity, 0.1, 0, 100, "s/m", "Cost of the speed against the target's.")           \
  X(float, cost_tilt, 0.2, 0, 100, "", "Cost of half of 1 - cos(tilt).")                           \
  X(float, cost_yaw, 0.2, 0, 100, "", "Cost of half of 1 - cos(yaw).")                             \
  X(float, cost_rate, 0.02, 0, 100, "s/rad", "Cost of the angular velocity.")                      \
  X(float, cost_change, 0.1, 0, 100, "", "Cost of the squared change of the action.")              \
  X(float, cost_limit, 10, 0, 1e6, "", "Cost of breaking a limit.")

#define RLT_QUADROTOR_SETTINGS(X) \
  RLT_QUADROTOR_TASK(X)           \
  RLT_QUADROTOR_AIRFRAME(X)

RLT_DEFINE_HYPERPARAMETERS(Settings, RLT_QUADROTOR_SETTINGS)

// Behind them, of windy_quadrotor.h.
#define RLT_QUADROTOR_WIND(X)            \
  X(float, wind_m_s2, 0, 0, 50, "m/s^2", \
    "Steady wind: its acceleration at most, in any horizontal direction; drawn per episode.")

RLT_DEFINE_HYPERPARAMETERS(Wind, RLT_QUADROTOR_WIND)
using WindySettings = JoinedHyperparameters<Settings, Wind>;

// Settings with which the experiments train: any attitude, the gusts and the delays of the gate
// hover (docs/gate.md); starts a little faster than there, and limits narrower.
template <class ItsSettings>
struct TrainingSettingsOf : ItsSettings {
  TrainingSettingsOf() {
    Settings& settings = *this;
    settings.latency_ms = 20.0f;
    settings.gust_m_s2 = 0.3f;
    settings.start_position = 1.0f;
    settings.start_velocity = 1.5f;
    settings.start_tilt = 180.0f;
    settings.start_rate = 3.0f;
    settings.limit_position = 3.0f;
    settings.limit_velocity = 8.0f;
    settings.limit_rate = 25.0f;
    settings.reward_alive = 2.0f;
    settings.cost_velocity = 0.03f;
    settings.cost_tilt = settings.cost_yaw = settings.cost_change = 0.02f;
    settings.cost_rate = 0.005f;
    settings.cost_limit = 20.0f;
  }
};
using TrainingSettings = TrainingSettingsOf<Settings>;

// Probes of the fingerprint: each choice of airframe in turn, each task, and in all of them wind,
// pushes, noise, delays, losses and targets that come within a few steps. The first has a table's
// own values. In that of any Crazyflie and in that of any airframe nearly every step breaks a limit
// and draws another. An edit here is another fingerprint of all experiments with a quadrotor: so no
// value of the task is left to its default, which may change.
constexpr int kProbes = kTableCount + 3;

inline Settings probe_settings(int probe) {
  Settings settings;
  settings.airframe = static_cast<std::uint32_t>((probe + 1) % kProbes);
  const bool is_drawn = settings.airframe == kAnyCrazyflie || settings.airframe == kAnyAirframe;
  settings.spread = probe == 0 ? 0.0f : 0.1f;
  settings.rotor_spread = probe == 0 ? 0.0f : 0.05f;
  settings.latency_ms = 20.0f;
  settings.loss = 0.2f;
  settings.noise = 1.0f;
  settings.gust_m_s2 = 1.0f;
  settings.gust_s = 0.5f;
  settings.push_m_s = 1.0f;
  settings.push_every_s = 0.1f;
  settings.task = static_cast<std::uint32_t>(probe % 3);
  settings.target_m = 0.5f;
  settings.target_s = 0.12f;
  settings.start_share = is_drawn ? 1.0f : 0.5f;
  settings.start_position = 1.0f;
  settings.start_velocity = 1.5f;
  settings.start_tilt = 180.0f;
  settings.start_rate = 3.0f;
  settings.limit_position = settings.airframe == kAnyCrazyflie ? 0.5f : 3.0f;
  settings.limit_velocity = settings.airframe == kAnyAirframe ? 1.2f : 8.0f;
  settings.limit_rate = settings.airframe == 2 ? 4.0f : 25.0f;
  settings.reward_alive = 1.0f;
  settings.cost_position = 1.0f;
  settings.cost_height = 0.5f;
  settings.cost_velocity = 0.1f;
  settings.cost_tilt = 0.2f;
  settings.cost_yaw = 0.2f;
  settings.cost_rate = 0.02f;
  settings.cost_change = 0.1f;
  settings.cost_limit = 10.0f;
  settings.thrust_0 = 0.01f;
  settings.thrust_1 = 0.02f;
  settings.torque_1 = 0.1f;
  settings.drag_x = 0.01f;
  settings.drag_y = 0.02f;
  settings.drag_z = 0.03f;
  settings.drag_rotation = 0.01f;
  settings.sag_load = 0.1f;
  settings.sag_per_min = 0.5f;
  return settings;
}

// Return the airframe whose values the settings have.
template <class T>
Airframe<T> custom_airframe(const Settings& settings) {
  Airframe<T> airframe;
#define RLT_QUADROTOR_TAKE(Type, Name, Default, Minimum, Maximum, Unit, Description) \
  airframe.Name = static_cast<T>(settings.Name);
  RLT_QUADROTOR_AIRFRAME(RLT_QUADROTOR_TAKE)
#undef RLT_QUADROTOR_TAKE
  return airframe;
}

}  // namespace rlt::quadrotor
