// A point in the plane, an environment for tests: two actions, random numbers in every one of its
// functions, episodes that terminate early, and an observation far from zero.
#pragma once

#include "rltools/rl/environment.h"

namespace rlt {

#define POINT_STATE(X) \
  X(T, x)              \
  X(T, y)

#define POINT_CONSTANTS(X) X(T, strength, T(0.5))

// A point that is pushed in two directions, and by gusts. It terminates where it leaves the square
// of [-1, 1].
template <class Number>
struct Point : EnvironmentDefaults {
  using T = Number;
  using Scalar = T;
  RLT_DEFINE_FIELDS(State, POINT_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, POINT_CONSTANTS)
  static constexpr const char* kName = "point";
  static constexpr int kObservationDim = 3, kActionDim = 2;
  static constexpr std::uint32_t kStepInterval_us = 1000;
  static constexpr Channel kObservations[] = {
      {"x", "m", -2.0f, 2.0f}, {"height", "m", 30.0f, 70.0f}, {"product", "m2", -4.0f, 4.0f}};
  static constexpr Channel kActions[] = {{"right", "N", -1.0f, 1.0f}, {"up", "N", -1.0f, 1.0f}};
};

template <class T>
void reset(Generic, const Point<T>&, const typename Point<T>::Parameters&,
           typename Point<T>::State& state, RandomStream random) {
  state.x = uniform<T>(random, 0, T(-0.5), T(0.5));
  state.y = uniform<T>(random, 1, T(-0.5), T(0.5));
}
template <class T>
StepResult<T> step(Generic, const Point<T>&, const typename Point<T>::Parameters& parameters,
                   typename Point<T>::State& state, const T* action, RandomStream random) {
  state.x += parameters.strength * action[0] + uniform<T>(random, 0, T(-0.125), T(0.125));
  state.y += parameters.strength * action[1] + uniform<T>(random, 1, T(-0.125), T(0.125));
  const bool is_outside = math::absolute(state.x) > T(1) || math::absolute(state.y) > T(1);
  return {T(1) - state.x * state.x - state.y * state.y, is_outside};
}
template <class T>
void observe(Generic, const Point<T>&, const typename Point<T>::Parameters&,
             const typename Point<T>::State& state, T* observation, RandomStream random) {
  observation[0] = state.x;
  observation[1] = T(50) + T(10) * state.y;
  observation[2] = state.x * state.y + uniform<T>(random, 0, T(-0.0625), T(0.0625));
}

// The same, pushed with another strength in each episode.
struct RandomPoint : Point<float> {
  static constexpr const char* kName = "random-point";
};
inline void sample_parameters(Generic, const RandomPoint&, RandomPoint::Parameters& parameters,
                              RandomStream random) {
  parameters.strength = uniform<float>(random, 0, 0.25f, 1.0f);
}

}  // namespace rlt
