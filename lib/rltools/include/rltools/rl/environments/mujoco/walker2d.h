// Gymnasium's Walker2d-v4: a planar body on two legs, to walk along x.
// Requires: mujoco
#pragma once

#include "rltools/rl/environments/mujoco/task.h"

namespace rlt {

#define RLT_WALKER2D_CONSTANTS(X)       \
  X(double, forward_reward, 1.0)        \
  X(double, healthy_reward, 1.0)        \
  X(double, control_cost, 1e-3)         \
  X(double, min_healthy_z_m, 0.8)       \
  X(double, max_healthy_z_m, 2.0)       \
  X(double, max_healthy_angle_rad, 1.0) \
  X(double, reset_noise_scale, 5e-3)

namespace mujoco {

struct Walker2dTask : LeggedTask {
  using TaskType = Walker2dTask;
  static constexpr const char* kName = "Walker2d-v4";
  static constexpr int kEpisodeSteps = 1000;
  static constexpr const char* kModelFile = "walker2d.xml";
  static constexpr int kBodyCount = 8;
  static constexpr int kObservationDim = 17;
  static constexpr int kActionDim = 6;
  static constexpr Channel kObservations[kObservationDim] = {
      length("rootz"),
      angle("rooty"),
      angle("thigh"),
      angle("leg"),
      angle("foot"),
      angle("thigh_left"),
      angle("leg_left"),
      angle("foot_left"),
      velocity("rootx_velocity", kMaxObservedVelocity),
      velocity("rootz_velocity", kMaxObservedVelocity),
      angular_velocity("rooty_rate", kMaxObservedVelocity),
      angular_velocity("thigh_rate", kMaxObservedVelocity),
      angular_velocity("leg_rate", kMaxObservedVelocity),
      angular_velocity("foot_rate", kMaxObservedVelocity),
      angular_velocity("thigh_left_rate", kMaxObservedVelocity),
      angular_velocity("leg_left_rate", kMaxObservedVelocity),
      angular_velocity("foot_left_rate", kMaxObservedVelocity),
  };
  static constexpr Channel kActions[kActionDim] = {control("thigh"),    control("leg"),
                                                   control("foot"),     control("thigh_left"),
                                                   control("leg_left"), control("foot_left")};

  using Positions = double[9];
  using Velocities = double[9];
  RLT_DEFINE_FIELDS(State, RLT_MUJOCO_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_WALKER2D_CONSTANTS)

  static bool is_terminal(const Parameters& parameters, const State& state) {
    return !(parameters.min_healthy_z_m < state.qpos[1] &&
             state.qpos[1] < parameters.max_healthy_z_m &&
             math::absolute(state.qpos[2]) < parameters.max_healthy_angle_rad);
  }
};

}  // namespace mujoco

template <class T>
struct Walker2d : mujoco::Walker2dTask {
  using Scalar = T;
};

}  // namespace rlt
