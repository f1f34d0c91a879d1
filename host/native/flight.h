// A flight of a quadrotor, one tick of the contract's 2 ms at a time. What it draws depends on the
// seed and on its episode's number alone, by the streams of rl/evaluation.h, whose step is the
// tick.
#pragma once

#include "flown_quadrotor.h"

namespace rlt::flight {

using Environment = FlownQuadrotor;
using State = Environment::State;
using Parameters = Environment::Parameters;
using Settings = Environment::Settings;
constexpr int kObservationDim = Environment::kObservationDim;
constexpr int kRow = kCriticObservationDim<Environment>;  // the policy's come first
constexpr int kActionDim = Environment::kActionDim;

// One flight that the caller steps.
struct Flight {
  std::uint32_t seed, episode, tick;
  Environment environment;
  Parameters parameters;
  State state;
};

// Numbers of an airframe by which flights are counted: the ratio of the greatest thrust to the
// weight; that of a rotor's torque to the inertia about x and y, rad/s^2; the thrust of a rotor, N,
// at the part w of its greatest speed: t0 + t1 w + t2 w^2.
using Three = float[3];
#define RLT_FLIGHT_AIRFRAME(X) \
  X(float, mass_kg)            \
  X(float, lift)               \
  X(float, turn_x)             \
  X(float, turn_y)             \
  X(Three, thrust)
RLT_DEFINE_FIELDS(FlownAirframe, RLT_FLIGHT_AIRFRAME)

// The state at a moment, without noise. World: z up; the attitude turns body into world. Table: of
// quadrotor/airframe.h, from 1; 0: the settings' own values. Latency is in ticks, a rotor's speed a
// part of the greatest one.
using Four = float[4];
#define RLT_FLIGHT_READING(X)      \
  X(std::uint32_t, tick)           \
  X(std::uint32_t, table)          \
  X(std::uint32_t, latency)        \
  X(Three, position_m)             \
  X(Three, velocity_m_s)           \
  X(Four, attitude)                \
  X(Three, angular_velocity_rad_s) \
  X(Four, rotor_speed)             \
  X(Three, target_position_m)      \
  X(Three, target_velocity_m_s)    \
  X(Three, gust_m_s2)
RLT_DEFINE_FIELDS(Reading, RLT_FLIGHT_READING)

enum Cause : std::uint32_t { kSuccess, kPosition, kVelocity, kRate, kFault, kTooFar, kTilt };

inline Environment environment_of(const std::uint32_t* settings) {
  Environment environment{};
  for (int i = 0; i < Settings::kCount; i++) environment.settings.set_bits(i, settings[i]);
  return environment;
}

inline void begin(const Environment& environment, std::uint32_t seed, std::uint32_t episode,
                  Parameters& parameters, State& state) {
  const Generic device{};
  draw_parameters(device, environment, parameters, {seed, Purpose::evaluation_parameters, episode});
  reset(device, environment, parameters, state,
        RandomStream{seed, Purpose::evaluation_reset, episode});
}

// Set the body to the state that `observation` (kObservationDim) describes, without noise, seen
// from the target; its rotors continue as they do.
inline void set_state(State& state, const float* observation) {
  for (int i = 0; i < 3; i++) {
    state.position_m[i] = state.target_position_m[i] + observation[i];
    state.velocity_m_s[i] = state.target_velocity_m_s[i] + observation[3 + i];
    state.angular_velocity_rad_s[i] = observation[10 + i];
  }
  for (int i = 0; i < 4; i++) state.attitude[i] = observation[6 + i];
}

// Change the parameters, before each tick of an episode.
inline void change(const Environment& environment, std::uint32_t seed, std::uint32_t episode,
                   std::uint32_t tick, Parameters& parameters) {
  const Changes& changes = environment.settings.environment;
  constexpr float kTicksPerSecond = 1e6f / static_cast<float>(Environment::kStepInterval_us);
  if (tick != static_cast<std::uint32_t>(changes.change_s * kTicksPerSecond + 0.5f)) return;
  change_airframe(changes, {seed, Purpose::evaluation_parameters, episode}, parameters);
}

inline bool has_plus_frame(const Environment& environment) {
  return environment.settings.environment.plus_frame != 0;
}

// Fly a tick.
inline StepResult<float> fly_on(const Environment& environment, const Parameters& parameters,
                                State& state, const float* action, RandomStream random) {
  return has_plus_frame(environment)
             ? step_plus(environment, parameters, state, action, random)
             : step(Generic{}, environment, parameters, state, action, random);
}

// Compute the environment's action from thrusts in [0, 1], which beyond count as the bound.
inline void normalize(const float* thrusts, float* action) {
  for (int i = 0; i < kActionDim; i++) {
    const Channel& channel = Environment::kActions[i];
    action[i] = normalized_action(thrusts[i], channel.minimum, channel.maximum);
  }
}

inline void read(const Parameters& parameters, const State& state, std::uint32_t tick,
                 Reading& reading) {
  reading.tick = tick;
  reading.table = parameters.table;
  reading.latency = parameters.latency;
  for (int i = 0; i < 3; i++) {
    reading.position_m[i] = state.position_m[i];
    reading.velocity_m_s[i] = state.velocity_m_s[i];
    reading.angular_velocity_rad_s[i] = state.angular_velocity_rad_s[i];
    reading.target_position_m[i] = state.target_position_m[i];
    reading.target_velocity_m_s[i] = state.target_velocity_m_s[i];
    reading.gust_m_s2[i] = state.gust_m_s2[i];
  }
  for (int i = 0; i < 4; i++) {
    reading.attitude[i] = state.attitude[i];
    reading.rotor_speed[i] = state.rotor_speed[i];
  }
}

inline void read(const Parameters& parameters, FlownAirframe& airframe) {
  airframe.mass_kg = parameters.mass_kg;
  airframe.lift = 1.0f / parameters.hover_fraction;
  airframe.turn_x = parameters.roll_1 + parameters.roll_2;
  airframe.turn_y = parameters.pitch_1 + parameters.pitch_2;
  airframe.thrust[0] = parameters.thrust_0;
  airframe.thrust[1] = parameters.thrust_1;
  airframe.thrust[2] = parameters.thrust_2;
}

inline float distance_m(const State& state) {
  const float* p = state.position_m;
  const float* t = state.target_position_m;
  return quadrotor::length(p[0] - t[0], p[1] - t[1], p[2] - t[2]);
}

// Return the limit that a state exceeds the most, as a part of it; the state breaks one.
inline Cause broken_limit(const Settings& settings, const State& state) {
  const float* p = state.position_m;
  const float* t = state.target_position_m;
  const float* v = state.velocity_m_s;
  const float* w = state.angular_velocity_rad_s;
  using quadrotor::largest;
  const float position = largest(p[0] - t[0], p[1] - t[1], p[2] - t[2]) / settings.limit_position;
  const float velocity = largest(v[0], v[1], v[2]) / settings.limit_velocity;
  const float rate = largest(w[0], w[1], w[2]) / settings.limit_rate;
  if (position >= velocity && position >= rate) return kPosition;
  return velocity >= rate ? kVelocity : kRate;
}

}  // namespace rlt::flight
