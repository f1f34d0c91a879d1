// A quadrotor that tumbles, an environment for tests: a state and parameters of many fields, words
// that are no floats among them, with random numbers in every one of its functions.
#pragma once

#include "rltools/core/unrolled.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/environments/quadrotor/dynamics.h"

namespace rlt {

namespace tumbling {

using quadrotor::Quaternion;
using quadrotor::Rotors;
using quadrotor::Vector;

#define TUMBLING_STATE(X) RLT_QUADROTOR_BODY(X) X(std::uint32_t, steps) X(Rotors<T>, last_action)
#define TUMBLING_PARAMETERS(X) \
  X(std::uint32_t, table) RLT_QUADROTOR_DYNAMICS(X) X(Vector<T>, force_n)

template <class T>
RLT_DEFINE_FIELDS(State, TUMBLING_STATE)
template <class T>
RLT_DEFINE_FIELDS(Parameters, TUMBLING_PARAMETERS)

}  // namespace tumbling

// It terminates where it falls too fast, and after 40 steps at the most.
struct Tumbling : EnvironmentDefaults {
  using Scalar = float;
  using State = tumbling::State<float>;
  using Parameters = tumbling::Parameters<float>;
  static constexpr const char* kName = "tumbling";
  static constexpr int kObservationDim = 6, kActionDim = 4, kPrivilegedDim = 2;
  static constexpr std::uint32_t kStepInterval_us = 5000;
  static constexpr Channel kObservations[kObservationDim] = {
      {"a", "1", -1.0f, 1.0f}, {"b", "1", -1.0f, 1.0f}, {"c", "1", -1.0f, 1.0f},
      {"d", "1", -1.0f, 1.0f}, {"e", "1", -1.0f, 1.0f}, {"f", "1", -1.0f, 1.0f}};
  static constexpr Channel kActions[kActionDim] = {{"0", "1", 0.0f, 1.0f},
                                                   {"1", "1", 0.0f, 1.0f},
                                                   {"2", "1", 0.0f, 1.0f},
                                                   {"3", "1", 0.0f, 1.0f}};

  float fastest_m_s = 1.0f;
};

inline void sample_parameters(Generic, const Tumbling&, Tumbling::Parameters& parameters,
                              RandomStream random) {
  parameters.table = uniform_index(random, 0, quadrotor::kTableCount);
  quadrotor::derive_dynamics(quadrotor::kTables<float>[parameters.table].airframe, 0.005f,
                             parameters);
  for (int i = 0; i < 3; i++) {
    parameters.force_n[i] = uniform<float>(random, 4u + static_cast<std::uint32_t>(i), -.1f, .1f);
  }
}

inline void reset(Generic, const Tumbling&, const Tumbling::Parameters& parameters,
                  Tumbling::State& state, RandomStream random) {
  quadrotor::begin_level_hover(quadrotor::kTables<float>[parameters.table].airframe, state);
  float spin[3];
  standard_normals(random, spin);
  for (int i = 0; i < 3; i++) state.angular_velocity_rad_s[i] = spin[i];
  for (float& action : state.last_action) action = 0.0f;
  state.steps = 0;
}

inline StepResult<float> step(Generic, const Tumbling& environment,
                              const Tumbling::Parameters& parameters, Tumbling::State& state,
                              const float* action, RandomStream random) {
  float fraction[4], setpoint[4], gust[3], torque[3] = {};
  standard_normals(random, gust);
  unrolled<4>([&](int i) {
    state.last_action[i] = math::clamp(action[i], -1.0f, 1.0f);
    fraction[i] = 0.5f + 0.5f * state.last_action[i];
  });
  unrolled<3>([&](int i) { gust[i] = math::fma(0.01f, gust[i], parameters.force_n[i]); });
  quadrotor::rotor_setpoints<float>(parameters, fraction, setpoint);
  quadrotor::rk4_step<float>(parameters, state, setpoint, gust, torque);
  state.steps++;
  const bool is_late = state.steps >= 40u + (parameters.table & 1u);
  const bool falls = !(state.velocity_m_s[2] >= -environment.fastest_m_s);
  const bool ends = is_late | falls;
  return {state.velocity_m_s[2] - state.attitude[0], ends};
}

inline void observe(Generic, const Tumbling&, const Tumbling::Parameters& parameters,
                    const Tumbling::State& state, float* observation, RandomStream random) {
  float noise[5];
  uniforms(random, noise, -0.25f, 0.5f);
  unrolled<4>([&](int i) { observation[i] = state.attitude[i] + noise[i]; });
  observation[4] = state.position_m[2];
  observation[5] = state.last_action[3] + noise[4];
  observation[6] = state.rotor_speed[1];
  observation[7] = parameters.force_n[2];
}

}  // namespace rlt
