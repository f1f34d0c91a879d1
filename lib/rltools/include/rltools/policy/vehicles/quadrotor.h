// A flight controller's estimate becomes the observation of policy/contracts/quadrotor.h, and the
// contract's rotors its motors.
//
//                     PX4                              Crazyflie
//   world             NED: x north, y east, z down     x, y as its positioning has them, z up
//   body              FRD: x forward, y right, z down  FLU: x forward, y left, z up
//   attitude          (w, x, y, z), FRD to NED         (w, x, y, z), FLU to the world
//   angular velocity  rad/s about FRD                  degrees/s about FLU
//   yaw               heading, clockwise from north    degrees, anti-clockwise from x
//   motors            in any order, by parameters      M1 to M4, in the contract's order
//
// Sources. PX4: the comments of its messages vehicle_local_position, vehicle_attitude and
// vehicle_angular_velocity, and its parameters CA_ROTORn_PX (forward), CA_ROTORn_PY (right) and
// CA_ROTORn_KM (positive where the rotor turns counter-clockwise, seen from above). Crazyflie:
// state_t, sensorData_t and setpoint_t of its stabilizer_types.h, whose motors its README shows.
//
// A world that is z up is ENU here (x east, y north); so
//   position, velocity  (x, y, z)_ENU = (y, x, -z)_NED
//   angular velocity    (x, y, z)_FLU = (x, -y, -z)_FRD
//   attitude            R(ENU<-FLU) = R(ENU<-NED) R(NED<-FRD) R(FRD<-FLU). The outer two are half
//                       turns: about (1, 1, 0) / sqrt 2, and about x. As quaternions:
//                       q = (w + z, x + y, x - y, w - z) / sqrt 2 of PX4's
//   yaw                 yaw_ENU = pi/2 - heading
#pragma once

#include <cstdint>

#include "rltools/core/math.h"
#include "rltools/policy/contracts/quadrotor.h"

namespace rlt::vehicles {

constexpr float kHalfPi = 1.57079633f;
constexpr float kSqrtHalf = 0.70710678f;
constexpr float kRadians = 0.017453292519943295f;  // of a degree

// -- frames ---------------------------------------------------------------------------------------

inline void enu_of_ned(const float* ned, float* enu) {
  enu[0] = ned[1];
  enu[1] = ned[0];
  enu[2] = -ned[2];
}

inline void flu_of_frd(const float* frd, float* flu) {
  flu[0] = frd[0];
  flu[1] = -frd[1];
  flu[2] = -frd[2];
}

inline void enu_flu_of_ned_frd(const float* q, float* result) {
  result[0] = kSqrtHalf * (q[0] + q[3]);
  result[1] = kSqrtHalf * (q[1] + q[2]);
  result[2] = kSqrtHalf * (q[1] - q[2]);
  result[3] = kSqrtHalf * (q[0] - q[3]);
}

// A world that is turned about z: what points along `yaw` in ENU points along x in it.
struct TurnedWorld {
  float half_cosine = 1.0f, half_sine = 0.0f;  // of half of the yaw
  float cosine = 1.0f, sine = 0.0f;

  static TurnedWorld along(float yaw_rad) {
    const auto half = math::sincos(0.5f * yaw_rad);
    const float c = half.cosine, s = half.sine;
    return {c, s, c * c - s * s, 2.0f * c * s};
  }
  void vector(float* v) const {
    const float x = v[0], y = v[1];
    v[0] = cosine * x + sine * y;
    v[1] = cosine * y - sine * x;
  }
  // Turn a vector out of that world again.
  void vector_back(float* v) const {
    const float x = v[0], y = v[1];
    v[0] = cosine * x - sine * y;
    v[1] = cosine * y + sine * x;
  }
  // Set q to (half_cosine, 0, 0, -half_sine) times q.
  void attitude(float* q) const {
    const float w = q[0], x = q[1], y = q[2], z = q[3];
    q[0] = half_cosine * w + half_sine * z;
    q[1] = half_cosine * x + half_sine * y;
    q[2] = half_cosine * y - half_sine * x;
    q[3] = half_cosine * z - half_sine * w;
  }
};

// -- the observation ------------------------------------------------------------------------------

// In ENU and FLU.
struct QuadrotorEstimate {
  float position_m[3], velocity_m_s[3], attitude[4], angular_velocity_rad_s[3];

  static QuadrotorEstimate of_px4(const float* ned_m, const float* ned_m_s, const float* q,
                                  const float* frd_rad_s) {
    QuadrotorEstimate result;
    enu_of_ned(ned_m, result.position_m);
    enu_of_ned(ned_m_s, result.velocity_m_s);
    enu_flu_of_ned_frd(q, result.attitude);
    flu_of_frd(frd_rad_s, result.angular_velocity_rad_s);
    return result;
  }
  static QuadrotorEstimate of_crazyflie(const float* m, const float* m_s, const float* q,
                                        const float* deg_s) {
    return {{m[0], m[1], m[2]},
            {m_s[0], m_s[1], m_s[2]},
            {q[0], q[1], q[2], q[3]},
            {kRadians * deg_s[0], kRadians * deg_s[1], kRadians * deg_s[2]}};
  }
};

struct QuadrotorTarget {
  float position_m[3] = {}, velocity_m_s[3] = {};
  TurnedWorld world;  // along the yaw to hold
};

inline float squared_length(const float* q) {
  return q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
}

// Return whether a quaternion's length differs from 1 by no more than rounding; that of a NaN does.
inline bool is_rotation(const float* q) {
  const float length_2 = squared_length(q);
  return length_2 >= 0.98f && length_2 <= 1.02f;
}

// Set the contract's observation; return false where the estimate's attitude is no rotation.
inline bool observe(const QuadrotorEstimate& estimate, const QuadrotorTarget& target,
                    float* observation) {
  if (!is_rotation(estimate.attitude)) return false;
  float* attitude = observation + 6;
  for (int i = 0; i < 3; i++) {
    observation[i] = estimate.position_m[i] - target.position_m[i];
    observation[3 + i] = estimate.velocity_m_s[i] - target.velocity_m_s[i];
    observation[10 + i] = estimate.angular_velocity_rad_s[i];
  }
  for (int i = 0; i < 4; i++) attitude[i] = estimate.attitude[i];
  target.world.vector(observation);
  target.world.vector(observation + 3);
  target.world.attitude(attitude);
  const float to_unit =
      (attitude[0] < 0.0f ? -1.0f : 1.0f) / math::sqrt(squared_length(estimate.attitude));
  for (int i = 0; i < 4; i++) {
    attitude[i] = math::clamp(to_unit * attitude[i], i == 0 ? 0.0f : -1.0f, 1.0f);
  }
  return true;
}

// -- the motors -----------------------------------------------------------------------------------

constexpr int kRotors = contracts::Quadrotor::kActionDim;

struct Rotor {
  float forward, right;  // position
  float moment;          // positive where it turns counter-clockwise, seen from above
};

// The rotors of the contract, by signs.
constexpr Rotor kContractRotors[kRotors] = {{1, 1, 1}, {-1, 1, -1}, {-1, -1, 1}, {1, -1, -1}};

// Set motors[i] to the airframe's motor, from 0, that is rotor i of the contract. Return false
// where the airframe is not a quadrotor in X whose rotors turn as the contract's.
inline bool find_motors(const Rotor* airframe, int count, std::uint8_t* motors) {
  if (count != kRotors) return false;
  for (int i = 0; i < kRotors; i++) {
    const Rotor& wanted = kContractRotors[i];
    int found = 0;
    for (int motor = 0; motor < kRotors; motor++) {
      const Rotor& rotor = airframe[motor];
      if (wanted.forward * rotor.forward > 0 && wanted.right * rotor.right > 0 &&
          wanted.moment * rotor.moment > 0) {
        motors[i] = static_cast<std::uint8_t>(motor);
        found++;
      }
    }
    if (found != 1) return false;
  }
  return true;
}

}  // namespace rlt::vehicles
