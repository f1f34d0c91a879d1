// An environment without one of its functions or lists: the one that RLT_WITHOUT_... names.
// variant: RLT_WITHOUT_RESET
// says: the environment has no function reset(device, environment, parameters, state,
// variant: RLT_WITH_REWARD_ALONE
// says: that returns StepResult<Scalar>
// variant: RLT_WITHOUT_STATE_FIELDS
// says: the environment's State does not list its fields
// variant: RLT_WITHOUT_DEFAULTS
// says: the environment does not derive from EnvironmentDefaults
// variant: RLT_SETTINGS_WITHOUT_PROBES
// says: the environment has settings and does not state with which of them the fingerprint tries it
#pragma once

#include "pendulum_td3.h"

namespace rlt {

#define RLT_LINE_STATE(X) X(float, position)
#define RLT_LINE_CONSTANTS(X) X(float, gain, 0.25f)
#define RLT_LINE_SETTINGS(X) X(float, start, 0, -1, 1, "m", "Where an episode begins.")
RLT_DEFINE_HYPERPARAMETERS(LineSettings, RLT_LINE_SETTINGS)

#if !defined(RLT_WITHOUT_DEFAULTS)
struct Line : EnvironmentDefaults {
#else
struct Line {
#endif
  using Scalar = float;
#if !defined(RLT_WITHOUT_STATE_FIELDS)
  RLT_DEFINE_FIELDS(State, RLT_LINE_STATE)
#else
  struct State {
    float position;
  };
#endif
  RLT_DEFINE_CONSTANTS(Parameters, RLT_LINE_CONSTANTS)
#if defined(RLT_SETTINGS_WITHOUT_PROBES)
  using Settings = LineSettings;
  Settings settings;
#endif
  static constexpr const char* kName = "line";
  static constexpr int kObservationDim = 1, kActionDim = 1;
  static constexpr std::uint32_t kStepInterval_us = 1000;
  static constexpr Channel kObservations[] = {{"position", "m", -1.0f, 1.0f}};
  static constexpr Channel kActions[] = {{"force", "N", -1.0f, 1.0f}};
};

#if !defined(RLT_WITHOUT_RESET)
inline void reset(Generic, const Line&, const Line::Parameters&, Line::State& state, RandomStream) {
  state.position = 0;
}
#endif
#if !defined(RLT_WITH_REWARD_ALONE)
inline StepResult<float> result_of(float reward) { return {reward, false}; }
#else
inline float result_of(float reward) { return reward; }
#endif
inline auto step(Generic, const Line&, const Line::Parameters&, Line::State& state,
                 const float* action, RandomStream) {
  state.position += 0.25f * action[0];
  return result_of(-math::absolute(state.position));
}
inline void observe(Generic, const Line&, const Line::Parameters&, const Line::State& state,
                    float* observation, RandomStream) {
  observation[0] = state.position;
}

struct MissingEnvironmentFunction : PendulumTd3 {
  using Environment = Line;
  using Actor = Mlp<float, Dimensions<1, 8, 1>, Activation::relu, Activation::tanh>;
  using Critic = Mlp<float, Dimensions<2, 8, 1>, Activation::relu, Activation::identity>;
};

}  // namespace rlt
