// The contract between a policy and a quadrotor: what it observes, what it does, and how often.
//
// World: x East, y North, z up (ENU), with its origin in the target; or turned about z so that x
// points where the vehicle points when the mode is entered (RLT_HEADING). Body: x forward, y left,
// z up (FLU). frames.h has the equations from PX4's frames.
//
//   0..2    position of the vehicle in the world: position - target
//   3..5    its velocity in the world
//   6..9    its attitude: the unit quaternion (w, x, y, z) that turns body into world vectors, w >=
//   0 10..12  its angular velocity in the body frame: roll to the right, nose down, turn to the
//   left
//
// Actions: thrust of each rotor, 0 none and 1 the most it has. Rotors from above:
//
//                front (x)
//       3 clockwise      0 counter-clockwise
//                 \    /
//       left (y)    ><
//                 /    \                  .
//       2 counter-       1 clockwise
//         clockwise
#pragma once

#include "rltools/policy/contract.h"

namespace rlt::contracts {

struct Quadrotor {
  static constexpr const char* kContractName = "quadrotor";
  static constexpr float kMaxPosition_m = 5.0f;
  static constexpr float kMaxVelocity_m_s = 5.0f;
  static constexpr float kMaxAngularVelocity_rad_s = 35.0f;
  static constexpr std::uint32_t kStepInterval_us = 2000;
  static constexpr int kObservationDim = 13;
  static constexpr int kActionDim = 4;
  static constexpr Channel kObservations[kObservationDim] = {
      {"position_error_x", "m", -kMaxPosition_m, kMaxPosition_m},
      {"position_error_y", "m", -kMaxPosition_m, kMaxPosition_m},
      {"position_error_z", "m", -kMaxPosition_m, kMaxPosition_m},
      {"velocity_x", "m/s", -kMaxVelocity_m_s, kMaxVelocity_m_s},
      {"velocity_y", "m/s", -kMaxVelocity_m_s, kMaxVelocity_m_s},
      {"velocity_z", "m/s", -kMaxVelocity_m_s, kMaxVelocity_m_s},
      {"attitude_w", "1", -1.0f, 1.0f},
      {"attitude_x", "1", -1.0f, 1.0f},
      {"attitude_y", "1", -1.0f, 1.0f},
      {"attitude_z", "1", -1.0f, 1.0f},
      {"angular_velocity_x", "rad/s", -kMaxAngularVelocity_rad_s, kMaxAngularVelocity_rad_s},
      {"angular_velocity_y", "rad/s", -kMaxAngularVelocity_rad_s, kMaxAngularVelocity_rad_s},
      {"angular_velocity_z", "rad/s", -kMaxAngularVelocity_rad_s, kMaxAngularVelocity_rad_s},
  };
  static constexpr Channel kActions[kActionDim] = {{"thrust_front_right", "1", 0.0f, 1.0f},
                                                   {"thrust_rear_right", "1", 0.0f, 1.0f},
                                                   {"thrust_rear_left", "1", 0.0f, 1.0f},
                                                   {"thrust_front_left", "1", 0.0f, 1.0f}};
};

}  // namespace rlt::contracts
