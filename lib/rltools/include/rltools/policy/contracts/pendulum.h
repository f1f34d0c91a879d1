// The observations and actions of a policy for Gymnasium's Pendulum-v1. Angle 0 is upright.
#pragma once

#include "rltools/policy/contract.h"

namespace rlt::contracts {

struct Pendulum {
  static constexpr const char* kContractName = "pendulum";
  static constexpr float kMaxVelocity_rad_s = 8.0f;
  static constexpr float kMaxTorque_nm = 2.0f;
  static constexpr std::uint32_t kStepInterval_us = 50000;
  static constexpr int kObservationDim = 3;
  static constexpr int kActionDim = 1;
  static constexpr Channel kObservations[kObservationDim] = {
      {"cos_angle", "1", -1.0f, 1.0f},
      {"sin_angle", "1", -1.0f, 1.0f},
      {"velocity", "rad/s", -kMaxVelocity_rad_s, kMaxVelocity_rad_s},
  };
  static constexpr Channel kActions[kActionDim] = {
      {"torque", "N*m", -kMaxTorque_nm, kMaxTorque_nm}};
  static constexpr float kSafeAction[kActionDim] = {0.0f};  // it swings freely
};

}  // namespace rlt::contracts
