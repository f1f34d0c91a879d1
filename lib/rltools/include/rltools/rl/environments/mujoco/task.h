// The base of MuJoCo's tasks: the functions of an environment (rl/environment.h) for every struct
// that derives from mujoco::Task. A task is one header. Its struct, without a template parameter,
// has beside the constants of every environment
//   kModelFile, kBodyCount      the model, and how many bodies it has, the world among them
//   kFrameSkip                  steps of MuJoCo in one of the task's
//   Positions, Velocities       arrays of as many numbers as the model has
//   State                       RLT_MUJOCO_STATE and whatever else derive() reads
//   Parameters                  the constants of reward, termination and reset noise
//   is_terminal(parameters, state)
//   observe(state, observation)
// and, where it is not mujoco::Task's,
//   perturb(parameters, random, qpos, qvel)  adds the reset's noise
//   derive(model, data, state)  reads what reward and observation need and a step has computed
//   reward(parameters, forward_velocity_m_s, control_squares)
// The environment is a template that derives from it and adds the Scalar: MuJoCo and all that is
// computed from its numbers is in double, reward and observations are rounded to T at the end.
//
// The definition is Gymnasium's (environments -v4, MIT license), to the order in which MuJoCo's
// functions are called: tests/lib/rl/environments/mujoco/test_mujoco_gymnasium.py compares both.
#pragma once

#include "rltools/core/math.h"
#include "rltools/core/random.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/environments/mujoco/simulator.h"

// MuJoCo's state of integration, under its names, and where the body was after the step before:
// how far it came is rewarded. Types are the task's.
#define RLT_MUJOCO_STATE(X)     \
  X(double, time)               \
  X(Positions, qpos)            \
  X(Velocities, qvel)           \
  X(Velocities, qacc_warmstart) \
  X(double, forward_position_m)

namespace rlt {
namespace mujoco {

// Gymnasium's observations are without bounds. These ranges are wide: what lies outside is the
// number of a simulation that has diverged.
constexpr float kMaxLength_m = 1000.0f;
constexpr float kMaxAngle_rad = 1000.0f;
constexpr float kMaxVelocity_m_s = 1000.0f;
constexpr float kMaxAngularVelocity_rad_s = 10000.0f;
constexpr float kMaxQuaternion = 2.0f;  // the reset's noise leaves it with another length than 1

constexpr Channel length(const char* name) { return {name, "m", -kMaxLength_m, kMaxLength_m}; }
constexpr Channel angle(const char* name) { return {name, "rad", -kMaxAngle_rad, kMaxAngle_rad}; }
constexpr Channel quaternion(const char* name) {
  return {name, "1", -kMaxQuaternion, kMaxQuaternion};
}
constexpr Channel velocity(const char* name, float maximum = kMaxVelocity_m_s) {
  return {name, "m/s", -maximum, maximum};
}
constexpr Channel angular_velocity(const char* name, float maximum = kMaxAngularVelocity_rad_s) {
  return {name, "rad/s", -maximum, maximum};
}
// Return the channel of an actuator's control, which its gear turns into a torque: it has
// Gymnasium's range.
constexpr Channel control(const char* name, float maximum = 1.0f) {
  return {name, "1", -maximum, maximum};
}

// values[i] += uniform in [-scale, scale), the numbers from `first_index` on
template <int Count>
void add_uniform(RandomStream random, std::uint32_t first_index, double scale,
                 double (&values)[Count]) {
  for (int i = 0; i < Count; i++) {
    values[i] += uniform(random, first_index + static_cast<std::uint32_t>(i), -scale, scale);
  }
}

// values[i] += scale * a normal number. Drawn in float, whose logarithm and sine are the core's.
template <int Count>
void add_normal(RandomStream random, std::uint32_t first_index, double scale,
                double (&values)[Count]) {
  for (int i = 0; i < Count; i++) {
    const std::uint32_t index = first_index + static_cast<std::uint32_t>(i);
    values[i] += scale * static_cast<double>(standard_normal<float>(random, index));
  }
}

// Indices of a reset's random numbers: positions', then velocities'.
constexpr std::uint32_t kPositionNoise = 0, kVelocityNoise = 64;

// Write values, within [-limit, limit], and return where the rest of the observation begins.
template <class T, int Count>
T* observe_all(const double (&values)[Count], T* observation, int skipped = 0) {
  for (int i = skipped; i < Count; i++) *observation++ = static_cast<T>(values[i]);
  return observation;
}
template <class T, int Count>
T* observe_within(const double (&values)[Count], double limit, T* observation) {
  for (const double value : values) {
    *observation++ = static_cast<T>(math::clamp(value, -limit, limit));
  }
  return observation;
}

// Return whether the values from `skipped` on are within (-bound, bound); a NaN is not.
template <int Count>
bool are_within(const double (&values)[Count], double bound, int skipped = 0) {
  for (int i = skipped; i < Count; i++) {
    if (!(math::absolute(values[i]) < bound)) return false;
  }
  return true;
}

// Defaults that tasks may replace by their own.
struct Task : EnvironmentDefaults {
  static constexpr int kStepWork_us = 30;  // of the lightest, Hopper

  // Finish a step; called after the last of kFrameSkip steps.
  static void finish(const mjModel&, mjData&) {}
  // Return the controls' squares that the reward counts: those that were given, even where MuJoCo
  // restarted and cleared them.
  static double counted_control_squares(const mjData&, double given) { return given; }

  template <class Parameters, class Positions, class Velocities>
  static void perturb(const Parameters& parameters, RandomStream random, Positions& qpos,
                      Velocities& qvel) {
    add_uniform(random, kPositionNoise, parameters.reset_noise_scale, qpos);
    add_uniform(random, kVelocityNoise, parameters.reset_noise_scale, qvel);
  }
  template <class State>
  static void derive(const mjModel&, const mjData& data, State& state) {
    state.forward_position_m = data.qpos[0];
  }
  template <class Parameters>
  static double reward(const Parameters& parameters, double velocity_m_s, double control_squares) {
    return parameters.forward_reward * velocity_m_s + parameters.healthy_reward -
           parameters.control_cost * control_squares;
  }
};

template <class E>
using IfTask = std::enable_if_t<std::is_base_of_v<Task, E>, int>;

// A planar body on legs: velocities are observed within bounds.
struct LeggedTask : Task {
  static constexpr int kFrameSkip = 4;
  static constexpr std::uint32_t kStepInterval_us = 8000;
  static constexpr float kMaxObservedVelocity = 10.0f;

  template <class State, class T>
  static void observe(const State& state, T* observation) {
    constexpr double kLimit = static_cast<double>(kMaxObservedVelocity);
    observe_within(state.qvel, kLimit, observe_all(state.qpos, observation, 1));
  }
};

namespace detail {

template <class State>
void load(const State& state, mjData& data) {
  data.time = state.time;
  __builtin_memcpy(data.qpos, state.qpos, sizeof state.qpos);
  __builtin_memcpy(data.qvel, state.qvel, sizeof state.qvel);
  __builtin_memcpy(data.qacc_warmstart, state.qacc_warmstart, sizeof state.qacc_warmstart);
}

template <class E>
void store(const Simulator& simulator, typename E::State& state) {
  const mjData& data = *simulator.data;
  state.time = data.time;
  __builtin_memcpy(state.qpos, data.qpos, sizeof state.qpos);
  __builtin_memcpy(state.qvel, data.qvel, sizeof state.qvel);
  __builtin_memcpy(state.qacc_warmstart, data.qacc_warmstart, sizeof state.qacc_warmstart);
  E::derive(*simulator.model, data, state);
}

// No number in it is finite: whoever uses it sees a fault, where unavailable() was not asked.
struct FillWithNan {
  void operator()(const char*, double& value) const {
    value = static_cast<double>(math::kQuietNan);
  }
  template <std::size_t Count>
  void operator()(const char* name, double (&values)[Count]) const {
    for (double& value : values) (*this)(name, value);
  }
};

}  // namespace detail

// Set the state in which an episode begins with these positions and velocities.
template <class E>
void begin_episode(const E&, const double* qpos, const double* qvel, typename E::State& state) {
  const Simulator simulator = simulator_of_this_thread<typename E::TaskType>();
  if (simulator.data == nullptr) return state.for_each_field(detail::FillWithNan{});
  mjData& data = *simulator.data;
  mj_resetData(simulator.model, &data);
  __builtin_memcpy(data.qpos, qpos, sizeof state.qpos);
  __builtin_memcpy(data.qvel, qvel, sizeof state.qvel);
  mj_forward(simulator.model, &data);
  detail::store<E>(simulator, state);
}

}  // namespace mujoco

// Return why this environment cannot be stepped here, in one sentence, or null. Where it is not
// null, states, rewards and observations are NaN.
template <class E, mujoco::IfTask<E> = 0>
const char* unavailable(Generic, const E&) {
  return mujoco::model_of<typename E::TaskType>().unavailable();
}

template <class E, mujoco::IfTask<E> = 0>
void reset(Generic, const E& environment, const typename E::Parameters& parameters,
           typename E::State& state, RandomStream random) {
  const mjModel* model = mujoco::model_of<typename E::TaskType>().get();
  if (model == nullptr) return state.for_each_field(mujoco::detail::FillWithNan{});
  typename E::Positions qpos;
  typename E::Velocities qvel = {};
  __builtin_memcpy(qpos, model->qpos0, sizeof qpos);
  E::perturb(parameters, random, qpos, qvel);
  mujoco::begin_episode(environment, qpos, qvel, state);
}

template <class E, mujoco::IfTask<E> = 0>
StepResult<typename E::Scalar> step(Generic, const E&, const typename E::Parameters& parameters,
                                    typename E::State& state, const typename E::Scalar* action,
                                    RandomStream) {
  using T = typename E::Scalar;
  const mujoco::Simulator simulator = mujoco::simulator_of_this_thread<typename E::TaskType>();
  if (simulator.data == nullptr) {
    state.for_each_field(mujoco::detail::FillWithNan{});
    return {static_cast<T>(math::kQuietNan), false};
  }
  const mjModel& model = *simulator.model;
  mjData& data = *simulator.data;
  mujoco::detail::load(state, data);
  double control_squares = 0;
  for (int i = 0; i < E::kActionDim; i++) {
    const double low = model.actuator_ctrlrange[2 * i], high = model.actuator_ctrlrange[2 * i + 1];
    const double normalized = math::clamp(static_cast<double>(action[i]), -1.0, 1.0);
    data.ctrl[i] = 0.5 * (high + low) + normalized * (0.5 * (high - low));
    control_squares += data.ctrl[i] * data.ctrl[i];
  }
  for (int i = 0; i < E::kFrameSkip; i++) mj_step(&model, &data);
  E::finish(model, data);
  const double before_m = state.forward_position_m;
  mujoco::detail::store<E>(simulator, state);
  const double velocity_m_s =
      (state.forward_position_m - before_m) / (model.opt.timestep * E::kFrameSkip);
  control_squares = E::counted_control_squares(data, control_squares);
  return {static_cast<T>(E::reward(parameters, velocity_m_s, control_squares)),
          E::is_terminal(parameters, state)};
}

template <class E, mujoco::IfTask<E> = 0>
void observe(Generic, const E&, const typename E::Parameters&, const typename E::State& state,
             typename E::Scalar* observation, RandomStream) {
  E::observe(state, observation);
}

}  // namespace rlt
