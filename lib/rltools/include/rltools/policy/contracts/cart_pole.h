// The observations and actions of a policy for Gymnasium's CartPole-v1. Angle 0 is upright, and
// grows to the right.
#pragma once

#include "rltools/policy/contract.h"

namespace rlt::contracts {

struct CartPole {
  static constexpr const char* kContractName = "cart-pole";
  static constexpr std::uint32_t kStepInterval_us = 20000;
  static constexpr int kObservationDim = 4;
  static constexpr int kActionDim = 1;
  // Twice what ends an episode; velocities have no bound, and do not come near these.
  static constexpr Channel kObservations[kObservationDim] = {
      {"cart_position", "m", -4.8f, 4.8f},
      {"cart_velocity", "m/s", -10.0f, 10.0f},
      {"pole_angle", "rad", -0.41887903f, 0.41887903f},
      {"pole_velocity", "rad/s", -10.0f, 10.0f},
  };
  static constexpr Channel kActions[kActionDim] = {choice("push", "left|right")};
  static constexpr float kSafeAction[kActionDim] = {0.0f};  // left: each of the two pushes
};

}  // namespace rlt::contracts
