// Dynamics of a quadrotor: a rigid body with four rotors that follow their commands with a lag.
//
// World: z up. The attitude (w, x, y, z) turns the body's vectors into the world. With the rotors'
// speeds w, thrusts F(w) and torques Q(w) of airframe.h, mass m and inertia I:
//   w'     = (setpoint - w) / lag, of speeding up or of slowing down
//   v'     = (0, 0, -g) + R ((0, 0, sum F) - drag R^T v) / m + force / m
//   q'     = 1/2 q (x) (0, omega), and of length 1 again after each step
//   omega' = I^-1 (torques + torque - omega x I omega - drag_rotation omega)
//   torques: sum y_i F_i, -sum x_i F_i, -Q_0 + Q_1 - Q_2 + Q_3
// The battery's voltage sags: setpoints are those commanded times
//   1 - sag_load load - sag_per_min charge,  load = mean w^2,  charge' = load, in minutes.
//
// One step is the classical Runge-Kutta method of order 4. Setpoints, disturbances and the sag are
// constant within it, so that the rotors' speeds have a closed form: the stages take them from it,
// and no lag is too short for the step.
//
// Straight-line code on scalars, without a branch on data: compilers step many drones in lanes of
// vectors.
#pragma once

#include "rltools/core/fields.h"
#include "rltools/core/math.h"
#include "rltools/core/unrolled.h"
#include "rltools/rl/environments/quadrotor/airframe.h"

namespace rlt::quadrotor {

template <class T>
using Vector = T[3];
template <class T>
using Quaternion = T[4];
template <class T>
using Rotors = T[4];

#define RLT_QUADROTOR_BODY(X)                                                     \
  X(Vector<T>, position_m)             /* in the world */                         \
  X(Vector<T>, velocity_m_s)           /* in the world */                         \
  X(Quaternion<T>, attitude)           /* w x y z, turns body into world */       \
  X(Vector<T>, angular_velocity_rad_s) /* about the body's axes */                \
  X(Rotors<T>, rotor_speed)            /* parts of the greatest one, in [0, 1] */ \
  X(T, charge_min)                     /* drawn so far, in minutes of full load */

template <class T>
RLT_DEFINE_FIELDS(Body, RLT_QUADROTOR_BODY)
// An airframe's numbers for a step, divided beforehand. Accelerations come from the rotors' speeds
// w by sums over the rotors, with the signs of each axis: a_1 sum +-w + a_2 sum +-w^2.
#define RLT_QUADROTOR_DYNAMICS(X)                                           \
  X(T, step_s)                                                              \
  X(T, lift_0) /* 4 t0 / m */                                               \
  X(T, lift_1)                                                              \
  X(T, lift_2)                                                              \
  X(T, roll_1)                                                              \
  X(T, roll_2)                                                              \
  X(T, pitch_1)                                                             \
  X(T, pitch_2)                                                             \
  X(T, yaw_1)                                                               \
  X(T, yaw_2)                                                               \
  X(T, lag_up_half) /* what is left of w - setpoint after half a step */    \
  X(T, lag_up)      /* ... and after a step, of a rotor that gains speed */ \
  X(T, lag_down_half)                                                       \
  X(T, lag_down)                                                            \
  X(T, gyro_x) /* (Iy - Iz) / Ix */                                         \
  X(T, gyro_y)                                                              \
  X(T, gyro_z)                                                              \
  X(T, damping_x) /* drag_rotation / Ix */                                  \
  X(T, damping_y)                                                           \
  X(T, damping_z)                                                           \
  X(T, drag)   /* of x, / m */                                              \
  X(T, drag_y) /* what y and z have beside it */                            \
  X(T, drag_z)                                                              \
  X(T, per_mass)                                                            \
  X(T, per_inertia_x)                                                       \
  X(T, per_inertia_y)                                                       \
  X(T, per_inertia_z)                                                       \
  X(T, sag_load)                                                            \
  X(T, sag_per_min)                                                         \
  X(T, thrust_0) /* the curve, which the flight controller inverts */       \
  X(T, thrust_1)                                                            \
  X(T, thrust_2)

template <class T>
RLT_DEFINE_FIELDS(Dynamics, RLT_QUADROTOR_DYNAMICS)

// Return the part of a difference that is left after `elapsed_s` with a time constant `lag_s`; 0
// without lag.
template <class T>
inline T left_after(T elapsed_s, T lag_s) {
  const bool lags = lag_s > T(0);
  const T left = math::exp(-elapsed_s / (lags ? lag_s : T(1)));
  return lags ? left : T(0);
}

// Set the fields of Dynamics<T> of `d`, a Dynamics<T> or a struct that has them among others.
template <class T, class D>
inline void derive_dynamics(const Airframe<T>& a, T step_s, D& d) {
  constexpr T kKgM2 = T(1e-6), kNm = T(1e-3);
  const T per_mass = T(1) / a.mass_kg;
  const T inertia_x = a.inertia_x * kKgM2, per_x = T(1) / inertia_x;
  const T inertia_y = a.inertia_y * kKgM2, per_y = T(1) / inertia_y;
  const T inertia_z = a.inertia_z * kKgM2, per_z = T(1) / inertia_z;
  d.step_s = step_s;
  d.lift_0 = T(4) * a.thrust_0 * per_mass;
  d.lift_1 = a.thrust_1 * per_mass;
  d.lift_2 = a.thrust_2 * per_mass;
  d.roll_1 = a.rotor_y_m * a.thrust_1 * per_x;
  d.roll_2 = a.rotor_y_m * a.thrust_2 * per_x;
  d.pitch_1 = a.rotor_x_m * a.thrust_1 * per_y;
  d.pitch_2 = a.rotor_x_m * a.thrust_2 * per_y;
  d.yaw_1 = -a.torque_1 * kNm * per_z;  // rotors 0 and 2 turn counter-clockwise
  d.yaw_2 = -a.torque_2 * kNm * per_z;
  d.lag_up_half = left_after(T(0.5) * step_s, a.lag_up_s);
  d.lag_up = left_after(step_s, a.lag_up_s);
  d.lag_down_half = left_after(T(0.5) * step_s, a.lag_down_s);
  d.lag_down = left_after(step_s, a.lag_down_s);
  d.gyro_x = (inertia_y - inertia_z) * per_x;
  d.gyro_y = (inertia_z - inertia_x) * per_y;
  d.gyro_z = (inertia_x - inertia_y) * per_z;
  d.damping_x = a.drag_rotation * kNm * per_x;
  d.damping_y = a.drag_rotation * kNm * per_y;
  d.damping_z = a.drag_rotation * kNm * per_z;
  d.drag = a.drag_x * per_mass;
  d.drag_y = (a.drag_y - a.drag_x) * per_mass;
  d.drag_z = (a.drag_z - a.drag_x) * per_mass;
  d.per_mass = per_mass;
  d.per_inertia_x = per_x;
  d.per_inertia_y = per_y;
  d.per_inertia_z = per_z;
  d.sag_load = a.sag_load;
  d.sag_per_min = a.sag_per_min;
  d.thrust_0 = a.thrust_0;
  d.thrust_1 = a.thrust_1;
  d.thrust_2 = a.thrust_2;
}

// Compute the rotors' setpoints from commanded thrusts, as the flight controller does: setpoint[i]
// is the speed at which a rotor has the part `fraction`[i], in [0, 1], of its greatest thrust.
template <class T, class D>
[[gnu::always_inline]] inline void rotor_setpoints(const D& d, const T (&fraction)[4],
                                                   T (&setpoint)[4]) {
  const T greatest = d.thrust_0 + d.thrust_1 + d.thrust_2;
  unrolled<4>([&](int i) {
    setpoint[i] = speed_of_thrust<T>(d.thrust_0, d.thrust_1, d.thrust_2, fraction[i] * greatest);
  });
}

// ---- One step ----------------------------------------------------------------------------------

// By the rotors: the body's acceleration along z, and its angular accelerations.
template <class T>
struct RotorEffect {
  T lift, roll, pitch, yaw;
};

// Return the accelerations by the rotors. `push`: the angular accelerations by the disturbance, and
// none along z.
template <class T, class D>
[[gnu::always_inline]] inline RotorEffect<T> rotor_effect(const D& d, const RotorEffect<T>& push,
                                                          T w0, T w1, T w2, T w3) {
  const T right = w0 + w1, left = w2 + w3, right_turn = w0 - w1, left_turn = w2 - w3;
  const T s0 = w0 * w0, s1 = w1 * w1, s2 = w2 * w2, s3 = w3 * w3;
  const T right_2 = s0 + s1, left_2 = s2 + s3, right_turn_2 = s0 - s1, left_turn_2 = s2 - s3;
  return {math::fma(d.lift_2, right_2 + left_2, math::fma(d.lift_1, right + left, d.lift_0)),
          math::fma(d.roll_2, left_2 - right_2, math::fma(d.roll_1, left - right, push.roll)),
          math::fma(d.pitch_2, left_turn_2 - right_turn_2,
                    math::fma(d.pitch_1, left_turn - right_turn, push.pitch)),
          math::fma(d.yaw_2, right_turn_2 + left_turn_2,
                    math::fma(d.yaw_1, right_turn + left_turn, push.yaw))};
}

// Velocity, attitude and angular velocity at a stage, or their derivatives: twice its own of the
// attitude.
template <class T>
struct Motion {
  T vx, vy, vz, qw, qx, qy, qz, wx, wy, wz;
};

// Return the derivative of a motion. `still`: the acceleration by gravity and by the disturbance.
template <class T, class D>
[[gnu::always_inline]] inline Motion<T> derivative(const D& d, const RotorEffect<T>& rotors,
                                                   T still_x, T still_y, T still_z,
                                                   const Motion<T>& m) {
  // The body's y and z axes, left and up, in the world.
  const T x2 = m.qx + m.qx, y2 = m.qy + m.qy, z2 = m.qz + m.qz;
  const T xx = m.qx * x2, yy = m.qy * y2, zz = m.qz * z2, yz = m.qy * z2;
  const T left_x = math::fma(m.qx, y2, -(m.qw * z2));
  const T left_y = T(1) - (xx + zz);
  const T left_z = math::fma(m.qw, x2, yz);
  const T up_x = math::fma(m.qx, z2, m.qw * y2);
  const T up_y = math::fma(-m.qw, x2, yz);
  const T up_z = T(1) - (xx + yy);
  const T along_left = math::fma(left_z, m.vz, math::fma(left_y, m.vy, left_x * m.vx));
  const T along_up = math::fma(up_z, m.vz, math::fma(up_y, m.vy, up_x * m.vx));
  const T by_left = -(d.drag_y * along_left);
  const T by_up = math::fma(-d.drag_z, along_up, rotors.lift);
  Motion<T> k;
  k.vx = math::fma(up_x, by_up, math::fma(left_x, by_left, math::fma(-d.drag, m.vx, still_x)));
  k.vy = math::fma(up_y, by_up, math::fma(left_y, by_left, math::fma(-d.drag, m.vy, still_y)));
  k.vz = math::fma(up_z, by_up, math::fma(left_z, by_left, math::fma(-d.drag, m.vz, still_z)));
  k.qw = -math::fma(m.qz, m.wz, math::fma(m.qy, m.wy, m.qx * m.wx));
  k.qx = math::fma(-m.qz, m.wy, math::fma(m.qy, m.wz, m.qw * m.wx));
  k.qy = math::fma(-m.qx, m.wz, math::fma(m.qz, m.wx, m.qw * m.wy));
  k.qz = math::fma(-m.qy, m.wx, math::fma(m.qx, m.wy, m.qw * m.wz));
  k.wx = math::fma(d.gyro_x, m.wy * m.wz, math::fma(-d.damping_x, m.wx, rotors.roll));
  k.wy = math::fma(d.gyro_y, m.wz * m.wx, math::fma(-d.damping_y, m.wy, rotors.pitch));
  k.wz = math::fma(d.gyro_z, m.wx * m.wy, math::fma(-d.damping_z, m.wz, rotors.yaw));
  return k;
}

// Return m + elapsed k.
template <class T>
[[gnu::always_inline]] inline Motion<T> moved(const Motion<T>& m, T elapsed, const Motion<T>& k) {
  const T half = T(0.5) * elapsed;  // of twice the attitude's derivative
  return {math::fma(elapsed, k.vx, m.vx), math::fma(elapsed, k.vy, m.vy),
          math::fma(elapsed, k.vz, m.vz), math::fma(half, k.qw, m.qw),
          math::fma(half, k.qx, m.qx),    math::fma(half, k.qy, m.qy),
          math::fma(half, k.qz, m.qz),    math::fma(elapsed, k.wx, m.wx),
          math::fma(elapsed, k.wy, m.wy), math::fma(elapsed, k.wz, m.wz)};
}

// Move `body`, a Body<T> or a struct that has its fields among others, on by d.step_s under the
// commanded rotor speeds `setpoint`, a disturbing force (world, N) and torque (body, N m).
template <class T, class D, class B>
[[gnu::always_inline]] inline void rk4_step(const D& d, B& body, const T (&setpoint)[4],
                                            const T (&force)[3], const T (&torque)[3]) {
  const T step = d.step_s, half = T(0.5) * step, sixth = step * static_cast<T>(1.0 / 6.0);

  const T w0 = body.rotor_speed[0], w1 = body.rotor_speed[1];
  const T w2 = body.rotor_speed[2], w3 = body.rotor_speed[3];
  const T load = T(0.25) * ((w0 * w0 + w1 * w1) + (w2 * w2 + w3 * w3));
  const T drained = math::fma(d.sag_per_min, body.charge_min, d.sag_load * load);
  const T voltage = math::maximum(T(1) - drained, T(0));
  const T set0 = voltage * setpoint[0], set1 = voltage * setpoint[1];
  const T set2 = voltage * setpoint[2], set3 = voltage * setpoint[3];
  const auto after = [](T set, T w, T up, T down) {
    return math::fma(set > w ? up : down, w - set, set);
  };
  const T u = d.lag_up, n = d.lag_down, uh = d.lag_up_half, nh = d.lag_down_half;
  const T e0 = after(set0, w0, u, n), e1 = after(set1, w1, u, n);
  const T e2 = after(set2, w2, u, n), e3 = after(set3, w3, u, n);
  const RotorEffect<T> push{T(0), torque[0] * d.per_inertia_x, torque[1] * d.per_inertia_y,
                            torque[2] * d.per_inertia_z};
  const T still_x = force[0] * d.per_mass, still_y = force[1] * d.per_mass;
  const T still_z = math::fma(force[2], d.per_mass, static_cast<T>(-kGravity_m_s2));
  const Motion<T> m{body.velocity_m_s[0],
                    body.velocity_m_s[1],
                    body.velocity_m_s[2],
                    body.attitude[0],
                    body.attitude[1],
                    body.attitude[2],
                    body.attitude[3],
                    body.angular_velocity_rad_s[0],
                    body.angular_velocity_rad_s[1],
                    body.angular_velocity_rad_s[2]};
  const auto begin = rotor_effect<T>(d, push, w0, w1, w2, w3);
  const auto k1 = derivative<T>(d, begin, still_x, still_y, still_z, m);
  const auto middle = rotor_effect<T>(d, push, after(set0, w0, uh, nh), after(set1, w1, uh, nh),
                                      after(set2, w2, uh, nh), after(set3, w3, uh, nh));
  const auto k2 = derivative<T>(d, middle, still_x, still_y, still_z, moved(m, half, k1));
  const auto k3 = derivative<T>(d, middle, still_x, still_y, still_z, moved(m, half, k2));
  const auto end = rotor_effect<T>(d, push, e0, e1, e2, e3);
  const auto k4 = derivative<T>(d, end, still_x, still_y, still_z, moved(m, step, k3));

  // The derivative of a position is a velocity, and its stages are velocities too:
  // p + h (v + h/6 (k1 + k2 + k3)).
  const auto position = [&](T p, T v, T a, T bc) {
    return math::fma(step, math::fma(sixth, a + bc, v), p);
  };
  const T x23 = k2.vx + k3.vx, y23 = k2.vy + k3.vy, z23 = k2.vz + k3.vz;
  body.position_m[0] = position(body.position_m[0], m.vx, k1.vx, x23);
  body.position_m[1] = position(body.position_m[1], m.vy, k1.vy, y23);
  body.position_m[2] = position(body.position_m[2], m.vz, k1.vz, z23);
  const auto weighted = [](T a, T bc, T e) { return math::fma(T(2), bc, a + e); };
  const Motion<T> sum{weighted(k1.vx, x23, k4.vx),           weighted(k1.vy, y23, k4.vy),
                      weighted(k1.vz, z23, k4.vz),           weighted(k1.qw, k2.qw + k3.qw, k4.qw),
                      weighted(k1.qx, k2.qx + k3.qx, k4.qx), weighted(k1.qy, k2.qy + k3.qy, k4.qy),
                      weighted(k1.qz, k2.qz + k3.qz, k4.qz), weighted(k1.wx, k2.wx + k3.wx, k4.wx),
                      weighted(k1.wy, k2.wy + k3.wy, k4.wy), weighted(k1.wz, k2.wz + k3.wz, k4.wz)};
  const auto next = moved(m, sixth, sum);
  body.velocity_m_s[0] = next.vx;
  body.velocity_m_s[1] = next.vy;
  body.velocity_m_s[2] = next.vz;
  const T square =
      math::fma(next.qz, next.qz,
                math::fma(next.qy, next.qy, math::fma(next.qx, next.qx, next.qw * next.qw)));
  const T scale = T(1) / math::sqrt(square);
  body.attitude[0] = next.qw * scale;
  body.attitude[1] = next.qx * scale;
  body.attitude[2] = next.qy * scale;
  body.attitude[3] = next.qz * scale;
  body.angular_velocity_rad_s[0] = next.wx;
  body.angular_velocity_rad_s[1] = next.wy;
  body.angular_velocity_rad_s[2] = next.wz;
  body.rotor_speed[0] = e0;
  body.rotor_speed[1] = e1;
  body.rotor_speed[2] = e2;
  body.rotor_speed[3] = e3;
  body.charge_min = math::fma(load, step * static_cast<T>(1.0 / 60.0), body.charge_min);
}

// ---- Hover --------------------------------------------------------------------------------------

// Set the fields of Body<T>: at rest at the origin, level, the rotors carrying the weight, the
// battery full.
template <class T, class B>
inline void begin_level_hover(const Airframe<T>& airframe, B& body) {
  const T speed = hover_rotor_speed(airframe);
  for (int i = 0; i < 3; i++) {
    body.position_m[i] = body.velocity_m_s[i] = body.angular_velocity_rad_s[i] = T(0);
  }
  for (int i = 0; i < 4; i++) {
    body.attitude[i] = i == 0 ? T(1) : T(0);
    body.rotor_speed[i] = speed;
  }
  body.charge_min = T(0);
}

}  // namespace rlt::quadrotor
