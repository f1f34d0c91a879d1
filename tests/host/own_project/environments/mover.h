// A mass of 1 kg on a rail, which a force moves to 0.
#pragma once

#include "contracts/mover.h"
#include "rltools/core/math.h"
#include "rltools/rl/environment.h"

namespace rlt {

#define MOVER_STATE(X) \
  X(T, position_m)     \
  X(T, velocity_m_s)

#define MOVER_CONSTANTS(X)                             \
  X(T, step_s, static_cast<T>(kStepInterval_us / 1e6)) \
  X(T, max_force_n, T(2))

template <class T>
struct Mover : contracts::Mover, EnvironmentDefaults {
  using Scalar = T;
  static constexpr const char* kName = "Mover-v0";
  static constexpr int kEpisodeSteps = 60;

  RLT_DEFINE_FIELDS(State, MOVER_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, MOVER_CONSTANTS)
};

template <class T>
void reset(Generic, const Mover<T>&, const typename Mover<T>::Parameters&,
           typename Mover<T>::State& state, RandomStream random) {
  state.position_m = uniform<T>(random, 0, T(-1), T(1));
  state.velocity_m_s = T(0);
}

template <class T>
StepResult<T> step(Generic, const Mover<T>&, const typename Mover<T>::Parameters& parameters,
                   typename Mover<T>::State& state, const T* action, RandomStream) {
  const T force = math::clamp(action[0], T(-1), T(1)) * parameters.max_force_n;
  const T cost =
      state.position_m * state.position_m + T(0.1) * state.velocity_m_s * state.velocity_m_s;
  state.velocity_m_s = math::clamp(state.velocity_m_s + force * parameters.step_s, T(-5), T(5));
  state.position_m =
      math::clamp(state.position_m + state.velocity_m_s * parameters.step_s, T(-2), T(2));
  return {-cost, false};
}

template <class T>
void observe(Generic, const Mover<T>&, const typename Mover<T>::Parameters&,
             const typename Mover<T>::State& state, T* observation, RandomStream) {
  observation[0] = state.position_m;
  observation[1] = state.velocity_m_s;
}

}  // namespace rlt
