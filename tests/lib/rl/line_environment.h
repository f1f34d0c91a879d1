// A point on a line, an environment for tests: two actions, and episodes that terminate early.
#pragma once

#include "rltools/rl/environment.h"

namespace rlt {

#define LINE_STATE(X) X(float, position)

// A point on a line, pushed by the sum of two actions, that must not leave [-1, 1]: it terminates
// early.
struct Line {
  using Scalar = float;
  RLT_DEFINE_FIELDS(State, LINE_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_NO_FIELDS)
  static constexpr const char* kName = "line";
  static constexpr int kObservationDim = 1, kActionDim = 2;
  static constexpr std::uint32_t kStepInterval_us = 1000;
  static constexpr Channel kObservations[] = {{"position", "m", -1.0f, 1.0f}};
  static constexpr Channel kActions[] = {{"left", "N", -1.0f, 1.0f}, {"right", "N", -1.0f, 1.0f}};
  Parameters parameters;
};

inline Line::State initial_state(Generic, const Line&, RandomStream random) {
  return {uniform<float>(random, 0, -0.25f, 0.25f)};
}
inline Line::State step(Generic, const Line&, const Line::State& state, const float* action) {
  return {state.position + 0.25f * (action[0] + action[1])};
}
inline void observe(Generic, const Line&, const Line::State& state, float* observation) {
  observation[0] = state.position;
}
inline float reward(Generic, const Line&, const Line::State&, const float*,
                    const Line::State& next) {
  return 1.0f - math::absolute(next.position);
}
inline bool terminated(Generic, const Line&, const Line::State& state) {
  return math::absolute(state.position) > 1.0f;
}

}  // namespace rlt
