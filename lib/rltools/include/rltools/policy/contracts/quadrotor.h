// The observations and actions of a policy that holds a position and a yaw with a quadrotor: the
// same for a Crazyflie and for PX4, so that one policy flies both.
//
// Frames. The *body*: x forward, y left, z up, right-handed. The *target*: its origin is the
// position to hold, z up against gravity, x in the direction of the yaw to hold. A policy therefore
// brings all errors to zero and the attitude to (1, 0, 0, 0), whatever position and yaw it is asked
// for.
//
// Attitude is a quaternion and not a rotation matrix: 4 numbers instead of 9 (13 observations
// instead of 18, 1.3 KB less of an image with 64 units), and what flight controllers estimate. The
// two quaternions of an attitude are one observation: w is never negative.
//
// Rotors, seen from above:
//
//                       x, forward
//      front left, clockwise |  front right, counter-clockwise
//                         `. | .'
//             y, left --------+
//                         .'   `.
//   rear left, counter-cl.      rear right, clockwise
#pragma once

#include "rltools/policy/contract.h"

namespace rlt::contracts {

struct Quadrotor {
  static constexpr const char* kContractName = "quadrotor";
  static constexpr std::uint32_t kStepInterval_us = 2000;
  static constexpr float kMaxPositionError_m = 5.0f;
  static constexpr float kMaxVelocityError_m_s = 10.0f;      // of a fall until it is upright again
  static constexpr float kMaxAngularVelocity_rad_s = 35.0f;  // gyroscopes: 2,000 deg/s
  static constexpr int kObservationDim = 13;
  static constexpr int kActionDim = 4;
  static constexpr Channel kObservations[kObservationDim] = {
      // the body's position in the target's frame
      {"position_error_x", "m", -kMaxPositionError_m, kMaxPositionError_m},
      {"position_error_y", "m", -kMaxPositionError_m, kMaxPositionError_m},
      {"position_error_z", "m", -kMaxPositionError_m, kMaxPositionError_m},
      // the body's velocity less the target's, in the target's frame
      {"velocity_error_x", "m/s", -kMaxVelocityError_m_s, kMaxVelocityError_m_s},
      {"velocity_error_y", "m/s", -kMaxVelocityError_m_s, kMaxVelocityError_m_s},
      {"velocity_error_z", "m/s", -kMaxVelocityError_m_s, kMaxVelocityError_m_s},
      // turns the body's vectors into the target's frame; of unit length
      {"attitude_w", "1", 0.0f, 1.0f},
      {"attitude_x", "1", -1.0f, 1.0f},
      {"attitude_y", "1", -1.0f, 1.0f},
      {"attitude_z", "1", -1.0f, 1.0f},
      // about the body's axes, right-handed
      {"angular_velocity_x", "rad/s", -kMaxAngularVelocity_rad_s, kMaxAngularVelocity_rad_s},
      {"angular_velocity_y", "rad/s", -kMaxAngularVelocity_rad_s, kMaxAngularVelocity_rad_s},
      {"angular_velocity_z", "rad/s", -kMaxAngularVelocity_rad_s, kMaxAngularVelocity_rad_s},
  };
  // Each rotor's thrust as a part of its greatest one.
  static constexpr Channel kActions[kActionDim] = {{"thrust_front_right", "1", 0.0f, 1.0f},
                                                   {"thrust_rear_right", "1", 0.0f, 1.0f},
                                                   {"thrust_rear_left", "1", 0.0f, 1.0f},
                                                   {"thrust_front_left", "1", 0.0f, 1.0f}};
  // A board on a bench does nothing. Adapters give way to the firmware's own controller instead.
  static constexpr float kSafeAction[kActionDim] = {0.0f, 0.0f, 0.0f, 0.0f};
};

}  // namespace rlt::contracts
