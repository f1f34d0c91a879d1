// Gymnasium's Humanoid-v4: to run along x. Its 376 observations are the joints' positions and
// velocities and what MuJoCo derives of them, so that its state holds all of these.
// Requires: mujoco
#pragma once

#include "rltools/rl/environments/mujoco/humanoid_channels.h"
#include "rltools/rl/environments/mujoco/task.h"

namespace rlt {

#define RLT_HUMANOID_STATE(X)  \
  RLT_MUJOCO_STATE(X)          \
  X(BodyInertias, cinert)      \
  X(BodyVectors, cvel)         \
  X(Velocities, qfrc_actuator) \
  X(BodyVectors, cfrc_ext)

#define RLT_HUMANOID_CONSTANTS(X) \
  X(double, forward_reward, 1.25) \
  X(double, healthy_reward, 5.0)  \
  X(double, control_cost, 0.1)    \
  X(double, min_healthy_z_m, 1.0) \
  X(double, max_healthy_z_m, 2.0) \
  X(double, reset_noise_scale, 1e-2)

namespace mujoco {

struct HumanoidTask : Task {
  using TaskType = HumanoidTask;
  static constexpr const char* kName = "Humanoid-v4";
  static constexpr int kEpisodeSteps = 1000;
  static constexpr const char* kModelFile = "humanoid.xml";
  static constexpr int kBodyCount = kHumanoidBodyCount;
  static constexpr int kFrameSkip = 5;
  static constexpr std::uint32_t kStepInterval_us = 15000;
  static constexpr int kObservationDim = kHumanoidObservationDim;
  static constexpr int kActionDim = 17;
  static constexpr const Channel* kObservations = kHumanoidChannels.channel;
  static constexpr float kMaxControl = 0.4f;
  static constexpr Channel kActions[kActionDim] = {
      control("abdomen_y", kMaxControl),       control("abdomen_z", kMaxControl),
      control("abdomen_x", kMaxControl),       control("right_hip_x", kMaxControl),
      control("right_hip_z", kMaxControl),     control("right_hip_y", kMaxControl),
      control("right_knee", kMaxControl),      control("left_hip_x", kMaxControl),
      control("left_hip_z", kMaxControl),      control("left_hip_y", kMaxControl),
      control("left_knee", kMaxControl),       control("right_shoulder1", kMaxControl),
      control("right_shoulder2", kMaxControl), control("right_elbow", kMaxControl),
      control("left_shoulder1", kMaxControl),  control("left_shoulder2", kMaxControl),
      control("left_elbow", kMaxControl)};

  using Positions = double[24];
  using Velocities = double[23];
  using BodyInertias = double[10 * kBodyCount];
  using BodyVectors = double[6 * kBodyCount];
  RLT_DEFINE_FIELDS(State, RLT_HUMANOID_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_HUMANOID_CONSTANTS)

  // Compute the contact forces cfrc_ext, which no step needs itself.
  static void finish(const mjModel& model, mjData& data) { mj_rnePostConstraint(&model, &data); }
  static double counted_control_squares(const mjData& data, double) {
    double squares = 0;
    for (int i = 0; i < kActionDim; i++) squares += data.ctrl[i] * data.ctrl[i];
    return squares;
  }
  // Read the forward position. It is that of the center of mass, as of MuJoCo's last evaluation
  // within the step.
  static void derive(const mjModel& model, const mjData& data, State& state) {
    double moment = 0, mass = 0;
    for (int body = 0; body < kBodyCount; body++) {
      moment += model.body_mass[body] * data.xipos[3 * body];
      mass += model.body_mass[body];
    }
    state.forward_position_m = moment / mass;
    __builtin_memcpy(state.cinert, data.cinert, sizeof state.cinert);
    __builtin_memcpy(state.cvel, data.cvel, sizeof state.cvel);
    __builtin_memcpy(state.qfrc_actuator, data.qfrc_actuator, sizeof state.qfrc_actuator);
    __builtin_memcpy(state.cfrc_ext, data.cfrc_ext, sizeof state.cfrc_ext);
  }
  static bool is_terminal(const Parameters& parameters, const State& state) {
    return !(parameters.min_healthy_z_m < state.qpos[2] &&
             state.qpos[2] < parameters.max_healthy_z_m);
  }
  template <class T>
  static void observe(const State& state, T* observation) {
    observation = observe_all(state.qvel, observe_all(state.qpos, observation, 2));
    observation = observe_all(state.cvel, observe_all(state.cinert, observation));
    observe_all(state.cfrc_ext, observe_all(state.qfrc_actuator, observation));
  }
};

}  // namespace mujoco

template <class T>
struct Humanoid : mujoco::HumanoidTask {
  using Scalar = T;
};

}  // namespace rlt
