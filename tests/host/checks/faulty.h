// A point on a line that is to stay at 0, which tests compile once: RLT_TEST_FAULT of the process
// says at each call which mistake it makes, or none.
#pragma once

#include <cstdlib>
#include <cstring>

#include "rltools/core/math.h"
#include "rltools/rl/algorithms/td3.h"
#include "rltools/rl/environment.h"

namespace rlt {

#define FAULTY_STATE(X) \
  X(T, place_m)         \
  X(T, speed_m_s)       \
  X(T, age)

template <class T>
struct FaultyPoint : EnvironmentDefaults {
  using Scalar = T;
  static constexpr const char* kName = "FaultyPoint-v0";
  static constexpr std::uint32_t kStepInterval_us = 20000;
  static constexpr int kObservationDim = 2, kActionDim = 2, kEpisodeSteps = 40;
  static constexpr Channel kObservations[] = {{"place", "m", -3.0f, 3.0f},
                                              {"speed", "m/s", -2.0f, 2.0f}};
  static constexpr Channel kActions[] = {{"push", "N", -1.0f, 1.0f}, {"brake", "N", 0.0f, 1.0f}};
  RLT_DEFINE_FIELDS(State, FAULTY_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_NO_FIELDS)
};

inline bool fault_is(const char* name) {
  const char* fault = std::getenv("RLT_TEST_FAULT");
  return fault != nullptr && std::strcmp(fault, name) == 0;
}
inline float memory_outside_of_state = 0.0f;
inline std::uint32_t calls = 0;

template <class T>
void reset(Generic, const FaultyPoint<T>&, const typename FaultyPoint<T>::Parameters&,
           typename FaultyPoint<T>::State& state, RandomStream random) {
  state.place_m = fault_is("same-beginning") ? T(0.5) : uniform<T>(random, 0, T(-1), T(1));
  if (fault_is("deterministic")) state.place_m += T(1e-3) * static_cast<T>(calls++ % 97);
  if (fault_is("terminal-reset")) state.place_m = T(2.99);
  if (!fault_is("incomplete-reset")) state.speed_m_s = T(0);
  state.age = T(0);
  memory_outside_of_state = 0.0f;
}

template <class T>
StepResult<T> step(Generic, const FaultyPoint<T>&, const typename FaultyPoint<T>::Parameters&,
                   typename FaultyPoint<T>::State& state, const T* action, RandomStream) {
  if (fault_is("crash")) *static_cast<volatile int*>(nullptr) = 1;
  while (fault_is("hang")) calls = calls + 1;
  const T side = fault_is("even-action") ? action[1] * action[1] : action[1];  // alike at both ends
  const T brake = fault_is("idle-action") ? T(0) : T(0.5) * (side + T(1));
  const T push = fault_is("hidden-state") ? action[0] + T(memory_outside_of_state) : action[0];
  memory_outside_of_state = 0.9f * static_cast<float>(action[0]);
  state.speed_m_s = (T(0.95) - T(0.1) * brake) * state.speed_m_s + T(0.05) * push;
  state.place_m += (fault_is("range") ? T(1) : T(0.02)) * state.speed_m_s;
  state.age += T(1);
  if (fault_is("nan") && state.age > T(5)) state.place_m = math::kQuietNan;
  T reward = -state.place_m * state.place_m - T(0.1) * state.speed_m_s * state.speed_m_s;
  if (fault_is("nan-reward") && state.age > T(7)) reward = math::kQuietNan;
  if (fault_is("constant-reward")) reward = T(0);
  if (fault_is("large-reward")) reward *= T(1e6);
  if (fault_is("small-reward")) reward *= T(1e-6);
  const bool is_late = fault_is("time-limit") && state.age >= T(25);
  const bool is_out = fault_is("terminal-reset") || (fault_is("short") && state.age >= T(2));
  return {reward, is_late || is_out};
}

template <class T>
void observe(Generic, const FaultyPoint<T>&, const typename FaultyPoint<T>::Parameters&,
             const typename FaultyPoint<T>::State& state, T* observation, RandomStream) {
  observation[0] = fault_is("large-observation") ? T(1000) * state.place_m : state.place_m;
  if (fault_is("unwritten")) return;
  observation[1] = fault_is("constant-observation") ? T(1) : state.speed_m_s;
  if (fault_is("small-observation")) observation[1] *= T(1e-5);
}

struct FaultyTd3 {
  static constexpr const char* kName = "faulty-td3";
  using Scalar = float;
  using Environment = FaultyPoint<Scalar>;
  using Algorithm = Td3;
  using Actor = Mlp<Scalar, Dimensions<2, 16, 16, 2>, Activation::relu, Activation::tanh>;
  using Critic = Mlp<Scalar, Dimensions<4, 16, 16, 1>, Activation::relu, Activation::identity>;
  using Hyperparameters = Td3Hyperparameters;
  static constexpr int kEpisodeSteps = Environment::kEpisodeSteps;
  static constexpr int kBatchSize = 32, kTileRows = 32, kReplayCapacity = 4000;
};

}  // namespace rlt
