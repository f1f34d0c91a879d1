// A quadrotor that holds a position and a yaw, which may move, by four thrusts: dynamics and
// airframes of quadrotor/, observations and actions of policy/contracts/quadrotor.h.
//
// A step lasts `Ticks` ticks of the contract's 2 ms, with one action, in `Substeps` steps of the
// integrator; commands are late by a whole number of those. In training that is 40 ms in eight:
// what an action does shows after the rotors' lag of some 100 ms, and of a hundred actions a second
// none would matter. A flight is simulated tick by tick, QuadrotorTick, with an action each.
//
// The world's origin is where the target is at first, and the target's yaw is 0: what a policy sees
// is the same for any other. Reward of a step:
//   reward_alive - cost_position |e| - cost_velocity |v_e| - cost_tilt (1 - z_z) / 2
//     - cost_yaw (1 - cos yaw) / 2 - cost_rate |omega| - cost_change |a - a_before|^2 / 4
//     - cost_limit where a limit was broken, which is terminal
// with errors of position and velocity e and v_e, the body's z axis in the world, z, and normalized
// actions a.
//
// Straight-line code, as rl/environment_lanes.h wants it: many are stepped in lanes.
#pragma once

#include "rltools/core/math.h"
#include "rltools/core/random.h"
#include "rltools/core/unrolled.h"
#include "rltools/policy/contracts/quadrotor.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/environments/quadrotor/episode.h"

namespace rlt {

namespace quadrotor {

#define RLT_QUADROTOR_STATE(X)                                        \
  RLT_QUADROTOR_BODY(X)                                               \
  X(Held, held_setpoint)    /* of the actions before, latest first */ \
  X(Rotors<T>, last_action) /* normalized */                          \
  X(Vector<T>, gust_m_s2)   /* in the world */                        \
  X(Vector<T>, target_position_m)                                     \
  X(Vector<T>, target_velocity_m_s)                                   \
  X(T, time_s)

template <class T, int HeldActions>
struct FlightState {
  using Held = T[HeldActions * 4];
  RLT_QUADROTOR_STATE(RLT_DECLARE_FIELD)
  RLT_FIELD_VISITS(RLT_QUADROTOR_STATE, RLT_VISIT_FIELD)
};

}  // namespace quadrotor

// `ItsSettings` are quadrotor::Settings, or derive from them.
template <class T, int Ticks = 20, int Substeps = 8, class ItsSettings = quadrotor::Settings>
struct Quadrotor : contracts::Quadrotor, EnvironmentDefaults {
  using Scalar = T;
  using Settings = ItsSettings;
  using State = quadrotor::FlightState<T, quadrotor::held_actions(Ticks)>;
  using Parameters = quadrotor::EpisodeParameters<T>;
  static constexpr const char* kName = "Quadrotor";
  static constexpr int kEpisodeSteps = 125;
  static constexpr int kTicksPerStep = Ticks;
  // Behind the policy's: the rotors' speeds, the gust, and of the dynamics what a policy cannot
  // see.
  static constexpr int kPrivilegedDim = 4 + 3 + 8;
  static constexpr int kProbes = quadrotor::kProbes;
  static Settings probe_settings(int probe) { return quadrotor::probe_settings(probe); }
  static constexpr double kSubstep_s = Ticks * kStepInterval_us * 1e-6 / Substeps;
  // From the right and somewhat from above, in meters, its arms drawn 0.3 m long, about its target.
  // x goes to the right, y into the depth, z up: a point is drawn at (x + 0.4 y, z + 0.25 y).
  static constexpr Shape kPicture[] = {
      {"view", "", "-1.5, -1.2, 1.5, 1.2"},
      {"line", "ground", "-0.1, 0, 0.1, 0"},
      {"line", "ground", "0, -0.1, 0, 0.1"},
      {"let", "px", "position_error_x + 0.4 * position_error_y"},
      {"let", "py", "position_error_z + 0.25 * position_error_y"},
      // the body's axes x and y, turned by its attitude
      {"let", "xx", "1 - 2 * (attitude_y * attitude_y + attitude_z * attitude_z)"},
      {"let", "xy", "2 * (attitude_x * attitude_y + attitude_w * attitude_z)"},
      {"let", "xz", "2 * (attitude_x * attitude_z - attitude_w * attitude_y)"},
      {"let", "yx", "2 * (attitude_x * attitude_y - attitude_w * attitude_z)"},
      {"let", "yy", "1 - 2 * (attitude_x * attitude_x + attitude_z * attitude_z)"},
      {"let", "yz", "2 * (attitude_y * attitude_z + attitude_w * attitude_x)"},
      // as drawn, from the center to the front left and to the front right
      {"let", "lx", "0.21 * (xx + yx + 0.4 * (xy + yy))"},
      {"let", "ly", "0.21 * (xz + yz + 0.25 * (xy + yy))"},
      {"let", "rx", "0.21 * (xx - yx + 0.4 * (xy - yy))"},
      {"let", "ry", "0.21 * (xz - yz + 0.25 * (xy - yy))"},
      {"rod", "body", "px + lx, py + ly, px - lx, py - ly, 0.03"},
      {"rod", "body", "px + rx, py + ry, px - rx, py - ry, 0.03"},
      {"circle", "push", "px + rx, py + ry, 0.03 + 0.09 * thrust_front_right"},
      {"circle", "push", "px - lx, py - ly, 0.03 + 0.09 * thrust_rear_right"},
      {"circle", "push", "px - rx, py - ry, 0.03 + 0.09 * thrust_rear_left"},
      {"circle", "push", "px + lx, py + ly, 0.03 + 0.09 * thrust_front_left"}};

  // Seen in a mirror between left and right (0), or between front and rear (1), it is a quadrotor
  // whose rotors turn as before, and so are the wind, the starts and the reward. (The figure eight
  // is flown the other way round there: a policy does not see which.)
  static constexpr int kMirrors = 2;
  static constexpr Mirrored mirrored_action(int mirror, int rotor) {
    return {mirror == 0 ? 3 - rotor : rotor ^ 1, 1};
  }
  static constexpr Mirrored mirrored_observation(int mirror, int element) {
    // A mirror turns the element of a vector across it, and those of a rotation about axes within
    // it.
    constexpr int kSigns[kMirrors][kObservationDim] = {
        {1, -1, 1, 1, -1, 1, 1, -1, 1, -1, -1, 1, -1},
        {-1, 1, 1, -1, 1, 1, 1, 1, -1, -1, 1, -1, -1}};
    if (element < kObservationDim) return {element, kSigns[mirror][element]};
    const int privileged = element - kObservationDim;  // rotors, gust, what has no direction
    if (privileged < 4) return {kObservationDim + mirrored_action(mirror, privileged).element, 1};
    return {element, privileged < 7 ? kSigns[mirror][privileged - 4] : 1};
  }

  Settings settings;
};

// Tick by tick.
template <class T>
using QuadrotorTick = Quadrotor<T, 1, 1>;

namespace quadrotor {

// Rotate `q` about the body's axes by the small angles `a`; its length stays. Nothing changes where
// they are 0.
template <class T>
void rotate_slightly(const T (&q)[4], const T (&a)[3], T (&result)[4]) {
  const T x = T(0.5) * a[0], y = T(0.5) * a[1], z = T(0.5) * a[2];
  const T scale = T(1) / math::sqrt(math::fma(z, z, math::fma(y, y, math::fma(x, x, T(1)))));
  result[0] = scale * (q[0] - q[1] * x - q[2] * y - q[3] * z);
  result[1] = scale * (q[1] + q[0] * x + q[2] * z - q[3] * y);
  result[2] = scale * (q[2] + q[0] * y + q[3] * x - q[1] * z);
  result[3] = scale * (q[3] + q[0] * z + q[1] * y - q[2] * x);
}

// Set the target `time_s` after the beginning: a lemniscate of Gerono in the horizontal plane,
// target_m to each side along x, its speed that of a phase at constant rate.
template <class T, class State>
void set_figure_eight(const Settings& settings, State& state, bool applies) {
  constexpr T kTurn = static_cast<T>(6.283185307179586);
  const T rate = kTurn / static_cast<T>(settings.target_s);
  const T turns = state.time_s / static_cast<T>(settings.target_s);
  const auto phase = math::sincos(kTurn * (turns - math::floor(turns)));
  const T width = static_cast<T>(settings.target_m);
  const T x = width * phase.sine, y = width * phase.sine * phase.cosine;
  const T vx = width * rate * phase.cosine;
  const T vy = width * rate * (T(1) - T(2) * phase.sine * phase.sine);
  state.target_position_m[0] = applies ? x : state.target_position_m[0];
  state.target_position_m[1] = applies ? y : state.target_position_m[1];
  state.target_velocity_m_s[0] = applies ? vx : state.target_velocity_m_s[0];
  state.target_velocity_m_s[1] = applies ? vy : state.target_velocity_m_s[1];
}

template <class T>
T length(T x, T y, T z) {
  return math::sqrt(math::fma(z, z, math::fma(y, y, x * x)));
}

template <class T>
T largest(T x, T y, T z) {
  return math::maximum(math::maximum(math::absolute(x), math::absolute(y)), math::absolute(z));
}

}  // namespace quadrotor

// Return an error of position, without the sensors' noise, for WithSums to sum up.
template <class T, int Ticks, int Substeps, class ItsSettings>
T exact_observation(const Quadrotor<T, Ticks, Substeps, ItsSettings>&,
                    const typename Quadrotor<T, Ticks, Substeps, ItsSettings>::State& state,
                    int axis) {
  return state.position_m[axis] - state.target_position_m[axis];
}

template <class T, int Ticks, int Substeps, class ItsSettings>
void sample_parameters(Generic, const Quadrotor<T, Ticks, Substeps, ItsSettings>& environment,
                       quadrotor::EpisodeParameters<T>& parameters, RandomStream random) {
  quadrotor::draw_episode(environment.settings, static_cast<T>(environment.kSubstep_s), Substeps,
                          random, parameters);
}

// Begin at hover at the target, or, in `start_share` of the episodes, anywhere within the settings'
// bounds, at any rotor speeds.
template <class T, int Ticks, int Substeps, class ItsSettings>
void reset(Generic, const Quadrotor<T, Ticks, Substeps, ItsSettings>& environment,
           const quadrotor::EpisodeParameters<T>& parameters,
           typename Quadrotor<T, Ticks, Substeps, ItsSettings>::State& state, RandomStream random) {
  const auto& settings = environment.settings;
  const T hover = quadrotor::speed_of_thrust<T>(
      parameters.thrust_0, parameters.thrust_1, parameters.thrust_2,
      parameters.hover_fraction *
          (parameters.thrust_0 + parameters.thrust_1 + parameters.thrust_2));
  const bool is_away = uniform<T>(random, 0, T(0), T(1)) < static_cast<T>(settings.start_share);
  const auto anywhere = [&](std::uint32_t index, float bound) {
    return is_away ? uniform<T>(random, index, T(-1), T(1)) * static_cast<T>(bound) : T(0);
  };
  for (std::uint32_t i = 0; i < 3; i++) {
    state.position_m[i] = anywhere(4 + i, settings.start_position);
    state.velocity_m_s[i] = anywhere(7 + i, settings.start_velocity);
    state.angular_velocity_rad_s[i] = anywhere(10 + i, settings.start_rate);
    state.gust_m_s2[i] = standard_normal<T>(random, 40 + i) * static_cast<T>(settings.gust_m_s2);
    state.target_position_m[i] = state.target_velocity_m_s[i] = T(0);
  }
  // A rotation about an axis in any direction, by up to start_tilt.
  const T x = standard_normal<T>(random, 16), y = standard_normal<T>(random, 17);
  const T z = standard_normal<T>(random, 18);
  const T axis = math::maximum(quadrotor::length(x, y, z), static_cast<T>(1e-6));
  constexpr T kHalfDegree = static_cast<T>(0.00872664626);
  const auto half =
      math::sincos(uniform<T>(random, 13, T(0), T(1)) *
                   (is_away ? static_cast<T>(settings.start_tilt) : T(0)) * kHalfDegree);
  state.attitude[0] = half.cosine;
  state.attitude[1] = half.sine * (x / axis);
  state.attitude[2] = half.sine * (y / axis);
  state.attitude[3] = half.sine * (z / axis);
  for (std::uint32_t i = 0; i < 4; i++) {
    const T factor = T(1) + anywhere(24, 0.3f) + anywhere(20 + i, 0.02f);
    state.rotor_speed[i] = math::minimum(hover * factor, T(1));
    state.last_action[i] = T(2) * parameters.hover_fraction - T(1);
  }
  for (int i = 0; i < quadrotor::held_actions(Ticks) * 4; i++) state.held_setpoint[i] = hover;
  state.charge_min = state.time_s = T(0);
  quadrotor::set_figure_eight<T>(
      settings, state, settings.task == static_cast<std::uint32_t>(quadrotor::Task::figure_eight));
  for (int i = 0; i < 3; i++) state.position_m[i] += state.target_position_m[i];
}

namespace quadrotor {

// A step draws eight words, normal numbers from all but two: whether a push and a loss come. A new
// waypoint takes the words of a loss and of a push's direction, which seldom come with it.
constexpr std::uint32_t kPushIndex = 4, kLossIndex = 5, kWaypointIndex = 5;

// Disturb the vehicle: the wind continues, and a push may come.
template <class T, class State>
void disturb(const Settings& settings, const EpisodeParameters<T>& parameters, State& state,
             T step_s, RandomStream random) {
  T normals[8];
  standard_normals(random, normals);
  const T push_length = math::maximum(length(normals[3], normals[6], normals[7]), T(1e-6));
  const bool is_pushed =
      uniform<T>(random, kPushIndex, T(0), T(1)) * static_cast<T>(settings.push_every_s) < step_s;
  const T push = is_pushed ? static_cast<T>(settings.push_m_s) / push_length : T(0);
  unrolled<3>([&](int i) {
    state.gust_m_s2[i] =
        math::fma(parameters.gust_keeps, state.gust_m_s2[i], parameters.gust_changes * normals[i]);
    state.velocity_m_s[i] = math::fma(push, normals[i == 0 ? 3 : 5 + i], state.velocity_m_s[i]);
  });
}

// Set the target of the next step.
template <class T, class State>
void move_target(const Settings& settings, State& state, T step_s, RandomStream random) {
  const T period = static_cast<T>(settings.target_s), before = math::floor(state.time_s / period);
  state.time_s += step_s;
  const T has_waypoints = T(settings.task == static_cast<std::uint32_t>(Task::waypoints));
  const bool changes = has_waypoints * (math::floor(state.time_s / period) - before) > T(0);
  unrolled<3>([&](int i) {
    const T next = uniform<T>(random, kWaypointIndex + static_cast<unsigned>(i), T(-1), T(1));
    state.target_position_m[i] =
        changes ? next * static_cast<T>(settings.target_m) : state.target_position_m[i];
  });
  set_figure_eight<T>(settings, state,
                      settings.task == static_cast<std::uint32_t>(Task::figure_eight));
}

// Return the reward of a state, and whether it breaks a limit. `change`: the squared change of the
// action; `fastest`: the greatest angular velocity within the step.
template <class T, class State>
StepResult<T> judge(const Settings& settings, const State& state, T change, T fastest) {
  const T* p = state.position_m;
  const T* v = state.velocity_m_s;
  const T* w = state.angular_velocity_rad_s;
  const T* q = state.attitude;
  const T ex = p[0] - state.target_position_m[0], ey = p[1] - state.target_position_m[1];
  const T ez = p[2] - state.target_position_m[2];
  const T vx = v[0] - state.target_velocity_m_s[0], vy = v[1] - state.target_velocity_m_s[1];
  const T vz = v[2] - state.target_velocity_m_s[2];
  const T tilt = q[1] * q[1] + q[2] * q[2];  // (1 - z_z) / 2
  const T forward = T(1) - T(2) * (q[2] * q[2] + q[3] * q[3]);
  const T leftward = T(2) * (q[1] * q[2] + q[0] * q[3]);
  const T horizontal = math::maximum(length(forward, leftward, T(0)), T(1e-3));
  const T yaw = T(0.5) * (T(1) - forward / horizontal);
  const auto weighted = [](float weight, T value) { return static_cast<T>(weight) * value; };
  const bool is_near = largest(ex, ey, ez) <= static_cast<T>(settings.limit_position);
  const bool is_slow = largest(v[0], v[1], v[2]) <= static_cast<T>(settings.limit_velocity);
  const bool is_calm = fastest <= static_cast<T>(settings.limit_rate);
  const bool holds = is_near & is_slow & is_calm;
  const T cost = weighted(settings.cost_position, length(ex, ey, ez)) +
                 weighted(settings.cost_height, math::absolute(ez)) +
                 weighted(settings.cost_velocity, length(vx, vy, vz)) +
                 weighted(settings.cost_tilt, tilt) + weighted(settings.cost_yaw, yaw) +
                 weighted(settings.cost_rate, length(w[0], w[1], w[2])) +
                 weighted(settings.cost_change, T(0.25) * change) +
                 (holds ? T(0) : static_cast<T>(settings.cost_limit));
  return {static_cast<T>(settings.reward_alive) - cost, !holds};
}

}  // namespace quadrotor

template <class T, int Ticks, int Substeps, class ItsSettings>
StepResult<T> step(Generic, const Quadrotor<T, Ticks, Substeps, ItsSettings>& environment,
                   const quadrotor::EpisodeParameters<T>& parameters,
                   typename Quadrotor<T, Ticks, Substeps, ItsSettings>::State& state,
                   const T* action, RandomStream random) {
  using Environment = Quadrotor<T, Ticks, Substeps, ItsSettings>;
  constexpr int kHeld = quadrotor::held_actions(Ticks);
  constexpr T kStep_s = static_cast<T>(Environment::kSubstep_s * Substeps);
  const auto& settings = environment.settings;

  T fraction[4], commanded[4], change = T(0), fastest = T(0);
  unrolled<4>([&](int i) {
    const T normalized = math::clamp(action[i], T(-1), T(1));
    const T difference = normalized - state.last_action[i];
    change = math::fma(difference, difference, change);
    state.last_action[i] = normalized;
    fraction[i] = parameters.gain[i] * math::fma(T(0.5), normalized, T(0.5));
  });
  quadrotor::rotor_setpoints<T>(parameters, fraction, commanded);
  const bool is_lost =
      uniform<T>(random, quadrotor::kLossIndex, T(0), T(1)) < static_cast<T>(settings.loss);
  unrolled<4>([&](int i) { commanded[i] = is_lost ? state.held_setpoint[i] : commanded[i]; });

  quadrotor::disturb<T>(settings, parameters, state, kStep_s, random);
  const T force[3] = {state.gust_m_s2[0] * parameters.mass_kg,
                      state.gust_m_s2[1] * parameters.mass_kg,
                      state.gust_m_s2[2] * parameters.mass_kg};
  const T no_torque[3] = {T(0), T(0), T(0)};
  const auto latency = static_cast<std::int32_t>(parameters.latency);
  unrolled<Substeps>([&](int j) {
    const std::int32_t actions_ago = latency > j ? (latency - j + Substeps - 1) / Substeps : 0;
    T setpoint[4] = {commanded[0], commanded[1], commanded[2], commanded[3]};
    unrolled<4 * kHeld>([&](int held) {
      T& chosen = setpoint[held % 4];
      chosen = actions_ago == held / 4 + 1 ? state.held_setpoint[held] : chosen;
    });
    quadrotor::rk4_step<T>(parameters, state, setpoint, force, no_torque);
    const T* rate = state.angular_velocity_rad_s;
    fastest = math::maximum(fastest, quadrotor::largest(rate[0], rate[1], rate[2]));
  });
  unrolled<4 * (kHeld - 1)>([&](int i) {
    constexpr int kLast = 4 * kHeld - 1;
    state.held_setpoint[kLast - i] = state.held_setpoint[kLast - 4 - i];
  });
  unrolled<4>([&](int i) { state.held_setpoint[i] = commanded[i]; });
  quadrotor::move_target<T>(settings, state, kStep_s, random);
  return quadrotor::judge<T>(settings, state, change, fastest);
}

// Observe with the sensors' noise; the privileged observations have none.
template <class T, int Ticks, int Substeps, class ItsSettings>
void observe(Generic, const Quadrotor<T, Ticks, Substeps, ItsSettings>& environment,
             const quadrotor::EpisodeParameters<T>& parameters,
             const typename Quadrotor<T, Ticks, Substeps, ItsSettings>::State& state,
             T* observation, RandomStream random) {
  const T noise = static_cast<T>(environment.settings.noise);
  T normals[12];
  standard_normals(random, normals);
  const T position = noise * T(0.002), velocity = noise * T(0.02), attitude = noise * T(0.005);
  const T rate = noise * T(0.05);
  unrolled<3>([&](int i) {
    const T error = state.position_m[i] - state.target_position_m[i];
    const T speed = state.velocity_m_s[i] - state.target_velocity_m_s[i];
    observation[i] = math::fma(position, normals[i], error);
    observation[3 + i] = math::fma(velocity, normals[3 + i], speed);
    observation[10 + i] = math::fma(rate, normals[6 + i], state.angular_velocity_rad_s[i]);
  });
  const T angles[3] = {attitude * normals[9], attitude * normals[10], attitude * normals[11]};
  T q[4];
  quadrotor::rotate_slightly<T>(state.attitude, angles, q);
  const T sign = q[0] < T(0) ? T(-1) : T(1);  // the one of the two with w >= 0
  // Clamped, as rounding leads beyond 1, and an executor takes that for a fault.
  unrolled<4>([&](int i) { observation[6 + i] = math::clamp(sign * q[i], T(-1), T(1)); });

  T* privileged = observation + environment.kObservationDim;
  unrolled<4>([&](int i) { privileged[i] = state.rotor_speed[i]; });
  unrolled<3>([&](int i) { privileged[4 + i] = state.gust_m_s2[i] * T(0.1); });
  privileged[7] = parameters.hover_fraction;
  privileged[8] = T(4) * parameters.lag_up_s;
  privileged[9] = T(4) * parameters.lag_down_s;
  privileged[10] = (parameters.roll_1 + parameters.roll_2) * T(0.001);
  privileged[11] = (parameters.pitch_1 + parameters.pitch_2) * T(0.001);
  privileged[12] = (parameters.yaw_1 + parameters.yaw_2) * T(0.01);
  privileged[13] = static_cast<T>(static_cast<std::int32_t>(parameters.latency)) * T(0.1);
  privileged[14] = (parameters.lift_1 + parameters.lift_2) * T(0.1);
}

}  // namespace rlt
