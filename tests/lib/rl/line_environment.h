// A point on a line, an environment for tests: two actions, and episodes that terminate early.
#pragma once

#include "rltools/rl/environment.h"

namespace rlt {

#define LINE_STATE(X) X(float, position)

// A point on a line, pushed by the sum of two actions, that must not leave [-1, 1]: it terminates
// early.
struct Line : EnvironmentDefaults {
  using Scalar = float;
  RLT_DEFINE_FIELDS(State, LINE_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_NO_FIELDS)
  static constexpr const char* kName = "line";
  static constexpr int kObservationDim = 1, kActionDim = 2;
  static constexpr std::uint32_t kStepInterval_us = 1000;
  static constexpr Channel kObservations[] = {{"position", "m", -1.0f, 1.0f}};
  static constexpr Channel kActions[] = {{"left", "N", -1.0f, 1.0f}, {"right", "N", -1.0f, 1.0f}};
};

inline void reset(Generic, const Line&, const Line::Parameters&, Line::State& state,
                  RandomStream random) {
  state.position = uniform<float>(random, 0, -0.25f, 0.25f);
}
inline StepResult<float> step(Generic, const Line&, const Line::Parameters&, Line::State& state,
                              const float* action, RandomStream) {
  state.position += 0.25f * (action[0] + action[1]);
  const float distance = math::absolute(state.position);
  return {1.0f - distance, distance > 1.0f};
}
inline void observe(Generic, const Line&, const Line::Parameters&, const Line::State& state,
                    float* observation, RandomStream) {
  observation[0] = state.position;
}

}  // namespace rlt
