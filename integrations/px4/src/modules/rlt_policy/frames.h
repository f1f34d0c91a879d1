// PX4's frames and the policy's. World: NED (x north, y east, z down) against ENU; body: FRD (x
// forward, y right, z down) against FLU.
//
//   position, velocity   (x, y, z)_ENU = (y, x, -z)_NED
//   angular velocity     (x, y, z)_FLU = (x, -y, -z)_FRD
//   attitude             R(ENU<-FLU) = R(ENU<-NED) R(NED<-FRD) R(FRD<-FLU). The outer two are half
//                        turns: about (1, 1, 0) / sqrt 2, and about x. As quaternions (w, x, y, z):
//                        q = (w + z, x + y, x - y, w - z) / sqrt 2 of PX4's
//   heading              PX4's is clockwise from north, that of ENU anti-clockwise from east:
//                        yaw_ENU = pi/2 - heading
//
// Frames: PX4's messages vehicle_local_position, vehicle_attitude and vehicle_angular_velocity.
#pragma once

#include <cstdint>

#include "rltools/core/math.h"

namespace rlt::px4 {

constexpr float kHalfPi = 1.57079633f;
constexpr float kSqrtHalf = 0.70710678f;

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
  float cosine = 1.0f, sine = 0.0f;            // of the yaw
  float half_cosine = 1.0f, half_sine = 0.0f;  // of half of it

  static TurnedWorld along(float yaw) {
    const auto whole = math::sincos(yaw), half = math::sincos(0.5f * yaw);
    return {whole.cosine, whole.sine, half.cosine, half.sine};
  }
  void vector(float* v) const {
    const float x = v[0], y = v[1];
    v[0] = cosine * x + sine * y;
    v[1] = cosine * y - sine * x;
  }
  // Out of that world again.
  void vector_back(float* v) const {
    const float x = v[0], y = v[1];
    v[0] = cosine * x - sine * y;
    v[1] = cosine * y + sine * x;
  }
  // (half_cosine, 0, 0, -half_sine) times q
  void attitude(float* q) const {
    const float w = q[0], x = q[1], y = q[2], z = q[3];
    q[0] = half_cosine * w + half_sine * z;
    q[1] = half_cosine * x + half_sine * y;
    q[2] = half_cosine * y - half_sine * x;
    q[3] = half_cosine * z - half_sine * w;
  }
};

}  // namespace rlt::px4
