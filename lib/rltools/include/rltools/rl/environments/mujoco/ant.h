// Gymnasium's Ant-v4: four legs, to run along x. Without contact forces, as v4 is by default.
// Requires: mujoco
#pragma once

#include "rltools/rl/environments/mujoco/task.h"

namespace rlt {

#define RLT_ANT_CONSTANTS(X)      \
  X(double, healthy_reward, 1.0)  \
  X(double, control_cost, 0.5)    \
  X(double, min_healthy_z_m, 0.2) \
  X(double, max_healthy_z_m, 1.0) \
  X(double, reset_noise_scale, 0.1)

namespace mujoco {

struct AntTask : Task {
  using TaskType = AntTask;
  static constexpr const char* kName = "Ant-v4";
  static constexpr int kEpisodeSteps = 1000;
  static constexpr float kSolvedReturn = 6000.0f;
  static constexpr const char* kModelFile = "ant.xml";
  static constexpr int kBodyCount = 14;
  static constexpr int kTorso = 1;  // among its bodies
  static constexpr int kFrameSkip = 5;
  static constexpr std::uint32_t kStepInterval_us = 50000;
  static constexpr int kObservationDim = 27;
  static constexpr int kActionDim = 8;
  static constexpr Channel kObservations[kObservationDim] = {
      length("torso_z"),
      quaternion("torso_quaternion_w"),
      quaternion("torso_quaternion_x"),
      quaternion("torso_quaternion_y"),
      quaternion("torso_quaternion_z"),
      angle("hip_1"),
      angle("ankle_1"),
      angle("hip_2"),
      angle("ankle_2"),
      angle("hip_3"),
      angle("ankle_3"),
      angle("hip_4"),
      angle("ankle_4"),
      velocity("torso_velocity_x"),
      velocity("torso_velocity_y"),
      velocity("torso_velocity_z"),
      angular_velocity("torso_rate_x"),
      angular_velocity("torso_rate_y"),
      angular_velocity("torso_rate_z"),
      angular_velocity("hip_1_rate"),
      angular_velocity("ankle_1_rate"),
      angular_velocity("hip_2_rate"),
      angular_velocity("ankle_2_rate"),
      angular_velocity("hip_3_rate"),
      angular_velocity("ankle_3_rate"),
      angular_velocity("hip_4_rate"),
      angular_velocity("ankle_4_rate"),
  };
  static constexpr Channel kActions[kActionDim] = {
      control("hip_4"), control("ankle_4"), control("hip_1"), control("ankle_1"),
      control("hip_2"), control("ankle_2"), control("hip_3"), control("ankle_3")};

  using Positions = double[15];
  using Velocities = double[14];
  RLT_DEFINE_FIELDS(State, RLT_MUJOCO_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_ANT_CONSTANTS)

  static void perturb(const Parameters& parameters, RandomStream random, Positions& qpos,
                      Velocities& qvel) {
    add_uniform(random, kPositionNoise, parameters.reset_noise_scale, qpos);
    add_normal(random, kVelocityNoise, parameters.reset_noise_scale, qvel);
  }
  // Read the torso's position. In MuJoCo it is that of the last evaluation within the step, not of
  // its end.
  static void derive(const mjModel&, const mjData& data, State& state) {
    state.forward_position_m = data.xpos[3 * kTorso];
  }
  static double reward(const Parameters& parameters, double velocity_m_s, double control_squares) {
    return velocity_m_s + parameters.healthy_reward - parameters.control_cost * control_squares;
  }
  static bool is_terminal(const Parameters& parameters, const State& state) {
    constexpr double kInfinity = static_cast<double>(math::kInfinity);
    return !(are_within(state.qpos, kInfinity) && are_within(state.qvel, kInfinity) &&
             parameters.min_healthy_z_m <= state.qpos[2] &&
             state.qpos[2] <= parameters.max_healthy_z_m);
  }
  template <class T>
  static void observe(const State& state, T* observation) {
    observe_all(state.qvel, observe_all(state.qpos, observation, 2));
  }
};

}  // namespace mujoco

template <class T>
struct Ant : mujoco::AntTask {
  using Scalar = T;
};

}  // namespace rlt
