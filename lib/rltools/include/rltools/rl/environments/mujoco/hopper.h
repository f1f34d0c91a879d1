// Gymnasium's Hopper-v4: a planar body on one leg, to hop along x.
// Requires: mujoco
#pragma once

#include "rltools/rl/environments/mujoco/task.h"

namespace rlt {

#define RLT_HOPPER_CONSTANTS(X)           \
  X(double, forward_reward, 1.0)          \
  X(double, healthy_reward, 1.0)          \
  X(double, control_cost, 1e-3)           \
  X(double, min_healthy_z_m, 0.7)         \
  X(double, max_healthy_angle_rad, 0.2)   \
  X(double, max_healthy_magnitude, 100.0) \
  X(double, reset_noise_scale, 5e-3)

namespace mujoco {

struct HopperTask : Task {
  using TaskType = HopperTask;
  static constexpr const char* kName = "Hopper-v4";
  static constexpr int kEpisodeSteps = 1000;
  static constexpr float kSolvedReturn = 3800.0f;
  static constexpr const char* kModelFile = "hopper.xml";
  static constexpr int kBodyCount = 5;
  static constexpr int kFrameSkip = 4;
  static constexpr std::uint32_t kStepInterval_us = 8000;
  static constexpr float kMaxObservedVelocity = 10.0f;
  static constexpr int kObservationDim = 11;
  static constexpr int kActionDim = 3;
  static constexpr Channel kObservations[kObservationDim] = {
      length("rootz"),
      angle("rooty"),
      angle("thigh"),
      angle("leg"),
      angle("foot"),
      velocity("rootx_velocity", kMaxObservedVelocity),
      velocity("rootz_velocity", kMaxObservedVelocity),
      angular_velocity("rooty_rate", kMaxObservedVelocity),
      angular_velocity("thigh_rate", kMaxObservedVelocity),
      angular_velocity("leg_rate", kMaxObservedVelocity),
      angular_velocity("foot_rate", kMaxObservedVelocity),
  };
  static constexpr Channel kActions[kActionDim] = {control("thigh"), control("leg"),
                                                   control("foot")};

  using Positions = double[6];
  using Velocities = double[6];
  RLT_DEFINE_FIELDS(State, RLT_MUJOCO_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_HOPPER_CONSTANTS)

  static void perturb(const Parameters& parameters, RandomStream random, Positions& qpos,
                      Velocities& qvel) {
    add_uniform(random, kPositionNoise, parameters.reset_noise_scale, qpos);
    add_uniform(random, kVelocityNoise, parameters.reset_noise_scale, qvel);
  }
  static void derive(const mjModel&, const mjData& data, State& state) {
    state.forward_position_m = data.qpos[0];
  }
  static double reward(const Parameters& parameters, double velocity_m_s, double control_squares) {
    return parameters.forward_reward * velocity_m_s + parameters.healthy_reward -
           parameters.control_cost * control_squares;
  }
  // Of positions, that along x and the height have no bound of magnitude.
  static bool is_terminal(const Parameters& parameters, const State& state) {
    const double bound = parameters.max_healthy_magnitude;
    return !(are_within(state.qpos, bound, 2) && are_within(state.qvel, bound) &&
             state.qpos[1] > parameters.min_healthy_z_m &&
             math::absolute(state.qpos[2]) < parameters.max_healthy_angle_rad);
  }
  template <class T>
  static void observe(const State& state, T* observation) {
    constexpr double kLimit = static_cast<double>(kMaxObservedVelocity);
    observe_within(state.qvel, kLimit, observe_all(state.qpos, observation, 1));
  }
};

}  // namespace mujoco

template <class T>
struct Hopper : mujoco::HopperTask {
  using Scalar = T;
};

}  // namespace rlt
