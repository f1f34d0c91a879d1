// Gymnasium's HalfCheetah-v4: a planar body with two legs, to run along x. It never ends an
// episode.
// Requires: mujoco
#pragma once

#include "rltools/rl/environments/mujoco/task.h"

namespace rlt {

#define RLT_HALF_CHEETAH_CONSTANTS(X) \
  X(double, forward_reward, 1.0)      \
  X(double, control_cost, 0.1)        \
  X(double, reset_noise_scale, 0.1)

namespace mujoco {

struct HalfCheetahTask : Task {
  using TaskType = HalfCheetahTask;
  static constexpr const char* kName = "HalfCheetah-v4";
  static constexpr int kEpisodeSteps = 1000;
  static constexpr float kSolvedReturn = 4800.0f;
  static constexpr const char* kModelFile = "half_cheetah.xml";
  static constexpr int kBodyCount = 8;
  static constexpr int kFrameSkip = 5;
  static constexpr std::uint32_t kStepInterval_us = 50000;
  static constexpr int kObservationDim = 17;
  static constexpr int kActionDim = 6;
  // The torso has x along the way and z up; b is the back leg, f the front one.
  static constexpr Channel kObservations[kObservationDim] = {
      length("rootz"),
      angle("rooty"),
      angle("bthigh"),
      angle("bshin"),
      angle("bfoot"),
      angle("fthigh"),
      angle("fshin"),
      angle("ffoot"),
      velocity("rootx_velocity"),
      velocity("rootz_velocity"),
      angular_velocity("rooty_rate"),
      angular_velocity("bthigh_rate"),
      angular_velocity("bshin_rate"),
      angular_velocity("bfoot_rate"),
      angular_velocity("fthigh_rate"),
      angular_velocity("fshin_rate"),
      angular_velocity("ffoot_rate"),
  };
  static constexpr Channel kActions[kActionDim] = {control("bthigh"), control("bshin"),
                                                   control("bfoot"),  control("fthigh"),
                                                   control("fshin"),  control("ffoot")};

  using Positions = double[9];
  using Velocities = double[9];
  RLT_DEFINE_FIELDS(State, RLT_MUJOCO_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_HALF_CHEETAH_CONSTANTS)

  static void perturb(const Parameters& parameters, RandomStream random, Positions& qpos,
                      Velocities& qvel) {
    add_uniform(random, kPositionNoise, parameters.reset_noise_scale, qpos);
    add_normal(random, kVelocityNoise, parameters.reset_noise_scale, qvel);
  }
  static double reward(const Parameters& parameters, double velocity_m_s, double control_squares) {
    return parameters.forward_reward * velocity_m_s - parameters.control_cost * control_squares;
  }
  static bool is_terminal(const Parameters&, const State&) { return false; }
  template <class T>
  static void observe(const State& state, T* observation) {
    observe_all(state.qvel, observe_all(state.qpos, observation, 1));
  }
};

}  // namespace mujoco

template <class T>
struct HalfCheetah : mujoco::HalfCheetahTask {
  using Scalar = T;
};

}  // namespace rlt
