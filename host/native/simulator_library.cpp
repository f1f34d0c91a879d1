// Shared library over rl/environments/pendulum.h for Python (ctypes), in float and in double: many
// states at once, all arrays row-major and the caller's. A state is (angle_rad, velocity_rad_s), an
// action in [-1, 1].
#include "rltools/rl/environments/pendulum.h"

#include <cstddef>

namespace {

constexpr rlt::RandomStream kNothingIsDrawn{};  // by the pendulum in a step or an observation

template <class T>
using State = typename rlt::Pendulum<T>::State;

template <class T>
State<T> state_at(const T* states, std::size_t index) {
  return {states[2 * index], states[2 * index + 1]};
}

template <class T>
void step_all(const T* states, const T* actions, std::size_t count, T* next_states, T* rewards,
              std::uint8_t* terminations) {
  const typename rlt::Pendulum<T>::Parameters parameters;
  for (std::size_t i = 0; i < count; i++) {
    State<T> state = state_at(states, i);
    const auto result =
        step(rlt::Generic{}, rlt::Pendulum<T>{}, parameters, state, actions + i, kNothingIsDrawn);
    next_states[2 * i] = state.angle_rad;
    next_states[2 * i + 1] = state.velocity_rad_s;
    rewards[i] = result.reward;
    terminations[i] = result.terminated;
  }
}

template <class T>
void observe_all(const T* states, std::size_t count, T* observations) {
  const typename rlt::Pendulum<T>::Parameters parameters;
  for (std::size_t i = 0; i < count; i++) {
    observe(rlt::Generic{}, rlt::Pendulum<T>{}, parameters, state_at(states, i),
            observations + 3 * i, kNothingIsDrawn);
  }
}

}  // namespace

extern "C" {

// next_states (count, 2), rewards (count), terminations (count) for states (count, 2) and actions
// (count).
void rlt_pendulum_step_f32(const float* states, const float* actions, std::size_t count,
                           float* next_states, float* rewards, std::uint8_t* terminations) {
  step_all(states, actions, count, next_states, rewards, terminations);
}
void rlt_pendulum_step_f64(const double* states, const double* actions, std::size_t count,
                           double* next_states, double* rewards, std::uint8_t* terminations) {
  step_all(states, actions, count, next_states, rewards, terminations);
}

// observations (count, 3) of states (count, 2).
void rlt_pendulum_observe_f32(const float* states, std::size_t count, float* observations) {
  observe_all(states, count, observations);
}
void rlt_pendulum_observe_f64(const double* states, std::size_t count, double* observations) {
  observe_all(states, count, observations);
}

}  // extern "C"
