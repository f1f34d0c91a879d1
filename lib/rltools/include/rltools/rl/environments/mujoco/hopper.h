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

struct HopperTask : LeggedTask {
  using TaskType = HopperTask;
  static constexpr const char* kName = "Hopper-v4";
  static constexpr int kEpisodeSteps = 1000;
  static constexpr float kSolvedReturn = 3800.0f;
  static constexpr const char* kModelFile = "hopper.xml";
  static constexpr int kBodyCount = 5;
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

  // Return whether the state is terminal. The positions along x and z have no bound of magnitude.
  static bool is_terminal(const Parameters& parameters, const State& state) {
    const double bound = parameters.max_healthy_magnitude;
    return !(are_within(state.qpos, bound, 2) && are_within(state.qvel, bound) &&
             state.qpos[1] > parameters.min_healthy_z_m &&
             math::absolute(state.qpos[2]) < parameters.max_healthy_angle_rad);
  }
};

}  // namespace mujoco

template <class T>
struct Hopper : mujoco::HopperTask {
  using Scalar = T;
};

}  // namespace rlt
