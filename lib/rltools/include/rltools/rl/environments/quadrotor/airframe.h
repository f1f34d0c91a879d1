// Airframes of quadrotors: mass, inertia, rotors, drag, battery; and tables of published ones.
//
// Frames and the order of the rotors are those of policy/contracts/quadrotor.h: body x forward, y
// left, z up; rotor 0 front right, 1 rear right, 2 rear left, 3 front left. A rotor's speed is
// stated as a part of its greatest one, in [0, 1]; its thrust and its torque are curves over that.
#pragma once

#include "rltools/core/fields.h"
#include "rltools/core/math.h"

namespace rlt::quadrotor {

inline constexpr double kGravity_m_s2 = 9.81;

// X(type, name, default, minimum, maximum, unit, description), as RLT_DEFINE_HYPERPARAMETERS takes
// it. The defaults are the table crazyflie-l2f.
#define RLT_QUADROTOR_AIRFRAME(X)                                                                  \
  X(float, mass_kg, 0.027, 0.005, 20, "kg", "Mass, everything on board included.")                 \
  X(float, inertia_x, 3.85, 0.1, 1e6, "1e-6 kg m2", "Moment of inertia about x, for roll.")        \
  X(float, inertia_y, 3.85, 0.1, 1e6, "1e-6 kg m2", "Moment of inertia about y, for pitch.")       \
  X(float, inertia_z, 5.97, 0.1, 1e6, "1e-6 kg m2", "Moment of inertia about z, for yaw.")         \
  X(float, rotor_x_m, 0.028, 0.001, 1, "m", "Distance of the rotors from the y axis.")             \
  X(float, rotor_y_m, 0.028, 0.001, 1, "m", "Distance of the rotors from the x axis.")             \
  X(float, thrust_0, 0, 0, 100, "N", "Thrust of a rotor at rest: t0 of t0 + t1 w + t2 w^2.")       \
  X(float, thrust_1, 0, -100, 100, "N", "t1; w is the speed as a part of the greatest one.")       \
  X(float, thrust_2, 0.148829, -100, 100, "N", "t2; the greatest thrust is t0 + t1 + t2.")         \
  X(float, torque_0, 0, -1e5, 1e5, "mN m", "Torque of a rotor at rest: q0 of q0 + q1 w + q2 w^2.") \
  X(float, torque_1, 0, -1e5, 1e5, "mN m", "q1 of a rotor's torque.")                              \
  X(float, torque_2, 0.887763, -1e5, 1e5, "mN m", "q2 of a rotor's torque.")                       \
  X(float, lag_up_s, 0.15, 0, 2, "s", "Time constant of a rotor that gains speed; 0: none.")       \
  X(float, lag_down_s, 0.15, 0, 2, "s", "Time constant of a rotor that loses speed; 0: none.")     \
  X(float, drag_x, 0, 0, 10, "N s/m", "Drag along x at 1 m/s.")                                    \
  X(float, drag_y, 0, 0, 10, "N s/m", "Drag along y at 1 m/s.")                                    \
  X(float, drag_z, 0, 0, 10, "N s/m", "Drag along z at 1 m/s.")                                    \
  X(float, drag_rotation, 0, 0, 1000, "mN m s", "Torque against a rotation of 1 rad/s.")           \
  X(float, sag_load, 0, 0, 0.9, "1", "Part of the speed that the battery loses at full load.")     \
  X(float, sag_per_min, 0, 0, 1, "1/min", "... and after a minute of full load.")

#define RLT_QUADROTOR_AIRFRAME_FIELD(Type, Name, Default, Minimum, Maximum, Unit, Description) \
  T Name = static_cast<T>(Default);
#define RLT_QUADROTOR_AIRFRAME_VISIT(Type, Name, Default, Minimum, Maximum, Unit, Description) \
  visit(#Name, this->Name);

template <class T>
struct Airframe {
  RLT_QUADROTOR_AIRFRAME(RLT_QUADROTOR_AIRFRAME_FIELD)
  RLT_FIELD_VISITS(RLT_QUADROTOR_AIRFRAME, RLT_QUADROTOR_AIRFRAME_VISIT)
};

// ---- Published airframes -----------------------------------------------------------------------

// Return the thrust k n^2 of a rotor at n revolutions a minute.
constexpr double thrust_of_rpm(double k, double rpm) { return k * rpm * rpm; }

inline constexpr double kMilli = 1e3;                           // mN m in a N m
inline constexpr double kHalfSquareRoot = 0.70710678118654752;  // of 2: a diagonal arm along x

// Learning to Fly in Seconds, Eschmann, Albani and Loianno 2023, arXiv:2311.13081: 3.16e-10 N at a
// revolution a minute, 21,702 at most; torque per thrust .005965 m. States no drag.
template <class T>
constexpr Airframe<T> crazyflie_l2f() {
  return {};
}

// The two tables of a Crazyflie with decks, from the same group: torque per thrust .004665 m.
template <class T>
constexpr Airframe<T> crazyflie_with_decks(double t0, double t1, double t2, double lag_up_s,
                                           double lag_down_s) {
  constexpr double kTorquePerThrust_mm = 4.665;
  Airframe<T> a;
  a.mass_kg = T(0.0306);
  a.inertia_x = T(9.42);
  a.inertia_y = T(9.64);
  a.inertia_z = T(17.5);
  a.thrust_0 = static_cast<T>(t0);
  a.thrust_1 = static_cast<T>(t1);
  a.thrust_2 = static_cast<T>(t2);
  a.torque_0 = static_cast<T>(kTorquePerThrust_mm * t0);
  a.torque_1 = static_cast<T>(kTorquePerThrust_mm * t1);
  a.torque_2 = static_cast<T>(kTorquePerThrust_mm * t2);
  a.lag_up_s = static_cast<T>(lag_up_s);
  a.lag_down_s = static_cast<T>(lag_down_s);
  return a;
}

template <class T>
constexpr Airframe<T> crazyflie_decks() {
  return crazyflie_with_decks<T>(0.01087, 0.03738, 0.0628, 0.069, 0.114);
}

// RAPTOR: a foundation policy for quadrotor control, Eschmann, Albani and Loianno 2025,
// arXiv:2509.11481.
template <class T>
constexpr Airframe<T> crazyflie_raptor() {
  return crazyflie_with_decks<T>(0.0035, 0.0144, 0.0922, 0.055, 0.249);
}

// Crazyflow's Crazyflie 2.1, cf2x_L250 of github.com/utiasDSL/drone-models at 77f04ab,
// drone_models/data/params.toml. The greatest thrust of .12 N is at 23,216 revolutions a minute.
// Speeding up is n' = 7.3556 (n_set - n) there; slowing down n' = 2.4444e-4 (n_set^2 - n^2), of
// which the time constant is that about hover, at 18,966: 1 / (2 2.4444e-4 18,966) = .108 s.
template <class T>
constexpr Airframe<T> crazyflie_cf21() {
  constexpr double kGreatest_rpm = 23216.1, kHover_rpm = 18966.0;
  constexpr double kArm_m = 0.03253;  // from the center, along the diagonal
  Airframe<T> a;
  a.mass_kg = T(0.0319);
  a.inertia_x = a.inertia_y = T(16.8);
  a.inertia_z = T(29.8);
  a.rotor_x_m = a.rotor_y_m = static_cast<T>(kArm_m * kHalfSquareRoot);
  a.thrust_1 = static_cast<T>(-5.382196214637237e-7 * kGreatest_rpm);
  a.thrust_2 = static_cast<T>(thrust_of_rpm(2.4582929831265485e-10, kGreatest_rpm));
  a.torque_1 = static_cast<T>(1.410454111996297e-9 * kGreatest_rpm * kMilli);
  a.torque_2 = static_cast<T>(thrust_of_rpm(1.4592584373980652e-12, kGreatest_rpm) * kMilli);
  a.lag_up_s = static_cast<T>(1.0 / 7.355623702172756);
  a.lag_down_s = static_cast<T>(1.0 / (2.0 * 2.4443862952110715e-4 * kHover_rpm));
  a.drag_x = a.drag_y = T(0.01471782);
  a.drag_z = T(0.01277641);
  return a;
}

// gym-pybullet-drones, gym_pybullet_drones/assets/cf2x.urdf of
// github.com/utiasDSL/gym-pybullet-drones at 90b178a; Panerati and others 2021,
// doi:10.1109/IROS51168.2021.9635857. It takes the greatest speed from thrust / weight = 2.25 at
// 9.8 m/s^2, and has no lag.
template <class T>
constexpr Airframe<T> crazyflie_cf2x() {
  constexpr double kArm_m = 0.0397;  // from the center, along the diagonal
  constexpr double kGreatestThrust_n = 2.25 * 0.027 * 9.8 / 4.0;
  Airframe<T> a;
  a.mass_kg = T(0.027);
  a.inertia_x = a.inertia_y = T(14);
  a.inertia_z = T(21.7);
  a.rotor_x_m = a.rotor_y_m = static_cast<T>(kArm_m * kHalfSquareRoot);
  a.thrust_2 = static_cast<T>(kGreatestThrust_n);
  a.torque_2 = static_cast<T>(kGreatestThrust_n * 7.94e-12 / 3.16e-10 * kMilli);
  a.lag_up_s = a.lag_down_s = T(0);
  return a;
}

// PX4's simulator in hardware, src/modules/simulation/simulator_sih/sih_params.yaml of
// github.com/PX4/PX4-Autopilot at 1dfff54: thrust and torque proportional to the lagged output.
template <class T>
constexpr Airframe<T> px4_sih() {
  Airframe<T> a;
  a.mass_kg = T(1);
  a.inertia_x = a.inertia_y = T(25e3);
  a.inertia_z = T(30e3);
  a.rotor_x_m = a.rotor_y_m = T(0.2);
  a.thrust_1 = T(5);
  a.thrust_2 = T(0);
  a.torque_1 = T(100);
  a.torque_2 = T(0);
  a.lag_up_s = a.lag_down_s = T(0.05);
  a.drag_x = a.drag_y = a.drag_z = T(1);
  a.drag_rotation = T(25);
  return a;
}

// 3DR Iris of RotorS, rotors_description/urdf/iris.xacro of github.com/ethz-asl/rotors_simulator at
// 0d5209d; Furrer, Burri, Achtelik and Siegwart 2016, doi:10.1007/978-3-319-26054-9_23. Its rotors
// stand at y = .22 m in front and .2 m behind: the mean. Its rotors' drag, 8.06428e-5 N s/m at
// 1 rad/s across the axis, is taken at the speed of hover, 656 rad/s.
template <class T>
constexpr Airframe<T> iris() {
  constexpr double kGreatest_rad_s = 838.0, kHover_rad_s = 656.0;
  constexpr double kGreatestThrust_n = 8.54858e-6 * kGreatest_rad_s * kGreatest_rad_s;
  Airframe<T> a;
  a.mass_kg = T(1.5);
  a.inertia_x = T(34756.3);
  a.inertia_y = T(45892.9);
  a.inertia_z = T(97700);
  a.rotor_x_m = T(0.13);
  a.rotor_y_m = T(0.21);
  a.thrust_2 = static_cast<T>(kGreatestThrust_n);
  a.torque_2 = static_cast<T>(kGreatestThrust_n * 0.016 * kMilli);
  a.lag_up_s = T(0.0125);
  a.lag_down_s = T(0.025);
  a.drag_x = a.drag_y = static_cast<T>(4.0 * 8.06428e-5 * kHover_rad_s);
  return a;
}

template <class T>
struct Table {
  const char* name;
  const char* source;
  Airframe<T> airframe;
};

inline constexpr int kTableCount = 7;

template <class T>
inline constexpr Table<T> kTables[kTableCount] = {
    {"crazyflie-l2f", "Learning to Fly in Seconds, arXiv:2311.13081", crazyflie_l2f<T>()},
    {"crazyflie-decks", "the same group, with decks", crazyflie_decks<T>()},
    {"crazyflie-raptor", "RAPTOR, arXiv:2509.11481", crazyflie_raptor<T>()},
    {"crazyflie-cf21", "Crazyflow's identified Crazyflie 2.1", crazyflie_cf21<T>()},
    {"crazyflie-cf2x", "gym-pybullet-drones, cf2x", crazyflie_cf2x<T>()},
    {"px4-sih", "PX4's simulator in hardware", px4_sih<T>()},
    {"iris", "RotorS, 3DR Iris", iris<T>()}};

// Return a setting's choice of an airframe: 0 is `custom`, the settings' own values, n is table n.
template <class T>
inline Airframe<T> chosen_airframe(unsigned choice, const Airframe<T>& custom) {
  return choice == 0 || choice > static_cast<unsigned>(kTableCount)
             ? custom
             : kTables<T>[choice - 1u].airframe;
}

// ---- Thrust ------------------------------------------------------------------------------------

// Return the thrust of one rotor at `speed` in [0, 1], N.
template <class T>
inline T thrust(const Airframe<T>& a, T speed) {
  return math::fma(math::fma(a.thrust_2, speed, a.thrust_1), speed, a.thrust_0);
}

// Return the torque of one rotor on its axis, N m.
template <class T>
inline T torque(const Airframe<T>& a, T speed) {
  return T(1e-3) * math::fma(math::fma(a.torque_2, speed, a.torque_1), speed, a.torque_0);
}

// Return the speed in [0, 1] at which a rotor's thrust is `wanted` N: the greater root of the
// curve. 0 where that is no more than a rotor's at rest.
template <class T>
[[gnu::always_inline]] inline T speed_of_thrust(T thrust_0, T thrust_1, T thrust_2, T wanted) {
  const T c = wanted - thrust_0;
  const T root =
      math::sqrt(math::maximum(math::fma(thrust_1, thrust_1, T(4) * thrust_2 * c), T(0)));
  // The form that does not cancel: (root - t1) / (2 t2) = 2 c / (root + t1).
  const bool falls = thrust_1 < T(0);
  const T numerator = falls ? root - thrust_1 : c + c;
  const T denominator = falls ? thrust_2 + thrust_2 : root + thrust_1;
  const bool turns = c > T(0);
  const T speed = numerator / (turns ? denominator : T(1));
  return turns ? math::minimum(speed, T(1)) : T(0);
}

template <class T>
inline T speed_of_thrust(const Airframe<T>& a, T wanted) {
  return speed_of_thrust(a.thrust_0, a.thrust_1, a.thrust_2, wanted);
}

// Return the speed at which the rotors carry the weight.
template <class T>
inline T hover_rotor_speed(const Airframe<T>& a) {
  return speed_of_thrust(a, a.mass_kg * static_cast<T>(kGravity_m_s2 / 4.0));
}

// Return whether the rotors can carry the weight, and their thrust rises with their speed at its
// end.
template <class T>
inline bool can_fly(const Airframe<T>& a) {
  return T(4) * thrust(a, T(1)) > a.mass_kg * static_cast<T>(kGravity_m_s2) &&
         a.thrust_1 + T(2) * a.thrust_2 > T(0);
}

}  // namespace rlt::quadrotor
