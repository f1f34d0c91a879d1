// The observations and actions of a policy that drives a model car of 1:10 around a track:
// distances from its center of mass to the border of the track, as a scanning lidar measures them,
// its speed and its steering angle. Angles and the steering angle grow to the left.
#pragma once

#include "rltools/policy/contract.h"

namespace rlt::contracts {

struct RacingCar {
  static constexpr const char* kContractName = "racing-car";
  static constexpr std::uint32_t kStepInterval_us = 50000;
  static constexpr int kRays = 11;
  static constexpr float kMaxRange_m = 10.0f;
  static constexpr float kMaxSpeed_m_s = 6.0f;
  static constexpr float kMaxSteering_rad = 0.4f;
  static constexpr float kMaxAcceleration_m_s2 = 5.0f;
  static constexpr int kObservationDim = kRays + 2;
  static constexpr int kActionDim = 2;
  // Directions of the rays, in degrees from ahead.
  static constexpr float kRay_deg[kRays] = {90, 60, 35, 20, 10, 0, -10, -20, -35, -60, -90};
  static constexpr Channel kObservations[kObservationDim] = {
      {"left_90", "m", 0.0f, kMaxRange_m},
      {"left_60", "m", 0.0f, kMaxRange_m},
      {"left_35", "m", 0.0f, kMaxRange_m},
      {"left_20", "m", 0.0f, kMaxRange_m},
      {"left_10", "m", 0.0f, kMaxRange_m},
      {"ahead", "m", 0.0f, kMaxRange_m},
      {"right_10", "m", 0.0f, kMaxRange_m},
      {"right_20", "m", 0.0f, kMaxRange_m},
      {"right_35", "m", 0.0f, kMaxRange_m},
      {"right_60", "m", 0.0f, kMaxRange_m},
      {"right_90", "m", 0.0f, kMaxRange_m},
      {"speed", "m/s", 0.0f, kMaxSpeed_m_s},
      {"steering", "rad", -kMaxSteering_rad, kMaxSteering_rad},
  };
  // The steering angle is where the servo is to go, at its own rate.
  static constexpr Channel kActions[kActionDim] = {
      {"steer_to", "rad", -kMaxSteering_rad, kMaxSteering_rad},
      {"acceleration", "m/s2", -kMaxAcceleration_m_s2, kMaxAcceleration_m_s2}};
  static constexpr float kSafeAction[kActionDim] = {0.0f, -kMaxAcceleration_m_s2};  // it brakes
};

}  // namespace rlt::contracts
