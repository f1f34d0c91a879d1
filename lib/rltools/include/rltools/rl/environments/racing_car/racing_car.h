// A model car of 1:10 that is to drive around a track (racing_car/track.h) as fast as it can, and
// sees by the rays of a lidar. Its motion is the kinematic bicycle's, whose reference point is the
// center of mass: Kong, Pfeiffer, Schildbach and Borrelli 2015, "Kinematic and dynamic vehicle
// models for autonomous driving control design", equations 1 and 2, rear wheels not steered:
//   x' = v cos(psi + beta)   y' = v sin(psi + beta)   psi' = v sin(beta) / l_r   v' = a
//   beta = atan(l_r tan(delta) / (l_f + l_r))
// Three things are added. The servo turns the wheels at a rate. The tyres hold the car up to a
// lateral acceleration, beyond which it drives a wider arc: |sin(beta)| <= l_r grip / v^2. And the
// car does not drive backwards. 20 Hz, each step in five of the midpoint method.
//
// The reward is the way along the center line, in meters. An episode ends where a side of the car,
// half its width from the center of mass, leaves the track, or after 500 steps, 25 s. It begins
// anywhere.
#pragma once

#include "rltools/core/math.h"
#include "rltools/core/random.h"
#include "rltools/policy/contracts/racing_car.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/environments/racing_car/track.h"

namespace rlt {

#define RLT_RACING_CAR_STATE(X)                   \
  X(T, x_m)                                       \
  X(T, y_m)                                       \
  X(T, ahead_x) /* psi as a vector of length 1 */ \
  X(T, ahead_y)                                   \
  X(T, speed_m_s) /* of the center of mass */     \
  X(T, steering_rad)                              \
  X(T, way_m) /* along the center line, where it was last */

#define RLT_RACING_CAR_CONSTANTS(X)                                              \
  X(T, front_m, T(0.16)) /* from the center of mass to the axle: l_f */          \
  X(T, rear_m, T(0.17))  /* l_r */                                               \
  X(T, half_width_m, T(0.15))                                                    \
  X(T, grip_m_s2, T(6))                                                          \
  X(T, steering_rate_rad_s, T(3.2))                                              \
  X(T, max_steering_rad, static_cast<T>(kMaxSteering_rad))                       \
  X(T, max_acceleration_m_s2, static_cast<T>(kMaxAcceleration_m_s2))             \
  X(T, max_speed_m_s, static_cast<T>(kMaxSpeed_m_s))                             \
  X(T, max_range_m, static_cast<T>(kMaxRange_m))                                 \
  X(T, step_s, static_cast<T>(kStepInterval_us / 1e6))                           \
  X(T, track_length_m, racing_car::kTrack<T>.length_m)                           \
  X(T, max_initial_offset_m, T(0.2))  /* from the center line, along the gate */ \
  X(T, max_initial_angle_rad, T(0.2)) /* to the direction of the track */        \
  X(T, max_initial_speed_m_s, T(3))

template <class T>
struct RacingCar : contracts::RacingCar, EnvironmentDefaults {
  using Scalar = T;
  static constexpr const char* kName = "RacingCar";
  static constexpr int kEpisodeSteps = 500;
  static constexpr float kSolvedReturn = 96.0f;  // three laps
  static constexpr int kSubsteps = 5;
  // As the car sees it, in meters, ahead is up: the track within the rays, the rays and the car.
  static constexpr Shape kPicture[] = {
      {"view", "", "-3, -1, 3, 5"},
      {"let", "ax", "-left_90"},
      {"let", "bx", "-0.8660 * left_60"},
      {"let", "by", "0.5 * left_60"},
      {"let", "cx", "-0.5736 * left_35"},
      {"let", "cy", "0.8192 * left_35"},
      {"let", "dx", "-0.3420 * left_20"},
      {"let", "dy", "0.9397 * left_20"},
      {"let", "ex", "-0.1736 * left_10"},
      {"let", "ey", "0.9848 * left_10"},
      {"let", "gx", "0.1736 * right_10"},
      {"let", "gy", "0.9848 * right_10"},
      {"let", "hx", "0.3420 * right_20"},
      {"let", "hy", "0.9397 * right_20"},
      {"let", "ix", "0.5736 * right_35"},
      {"let", "iy", "0.8192 * right_35"},
      {"let", "jx", "0.8660 * right_60"},
      {"let", "jy", "0.5 * right_60"},
      {"area", "ground",
       "ax, -0.4, ax, 0, bx, by, cx, cy, dx, dy, ex, ey, 0, ahead, gx, gy, hx, hy, ix, iy, jx, jy, "
       "right_90, 0, right_90, -0.4"},
      {"line", "part", "ax, 0, 0, 0, bx, by"},
      {"line", "part", "cx, cy, 0, 0, dx, dy"},
      {"line", "part", "ex, ey, 0, 0, 0, ahead"},
      {"line", "part", "gx, gy, 0, 0, hx, hy"},
      {"line", "part", "ix, iy, 0, 0, jx, jy"},
      {"line", "part", "right_90, 0, 0, 0"},
      {"rod", "body", "0, -0.19, 0, 0.18, 0.26"},
      {"rod", "push", "0, 0, 0, acceleration / 8, 0.08"},
      {"rod", "part",
       "-0.13 + 0.09 * sin(steering), 0.16 - 0.09 * cos(steering), -0.13 - 0.09 * sin(steering), "
       "0.16 + 0.09 * cos(steering), 0.06"},
      {"rod", "part",
       "0.13 + 0.09 * sin(steering), 0.16 - 0.09 * cos(steering), 0.13 - 0.09 * sin(steering), "
       "0.16 + 0.09 * cos(steering), 0.06"}};

  RLT_DEFINE_FIELDS(State, RLT_RACING_CAR_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_RACING_CAR_CONSTANTS)
};

namespace racing_car {

// Return the sine by its series, for the compiler; |x| <= pi.
constexpr double sine(double x) {
  double term = x, sum = x;
  for (int i = 2; i < 40; i += 2) {
    term *= -x * x / (i * (i + 1));
    sum += term;
  }
  return sum;
}

// Directions of the rays in the car's frame, x ahead and y to the left.
template <class T>
struct Rays {
  Point<T> direction[contracts::RacingCar::kRays];
};
template <class T>
constexpr Rays<T> make_rays() {
  constexpr double kPi = 3.141592653589793;
  Rays<T> rays{};
  for (int i = 0; i < contracts::RacingCar::kRays; i++) {
    const double angle = static_cast<double>(contracts::RacingCar::kRay_deg[i]) * kPi / 180;
    rays.direction[i] = {static_cast<T>(sine(kPi / 2 - angle)), static_cast<T>(sine(angle))};
  }
  return rays;
}
template <class T>
inline constexpr Rays<T> kRays = make_rays<T>();

// Return `p` turned to the left by the angle whose cosine and sine these are, and scaled by their
// length. Each product is added by an explicit fma: GCC 12 makes one of x * c - y * s beside y * c
// + x * s in vectors, whatever -ffp-contract says, and the bits would depend on that.
template <class T>
[[gnu::always_inline]] inline Point<T> rotated(Point<T> p, T cosine, T sine) {
  return {math::fma(p.x, cosine, -(p.y * sine)), math::fma(p.y, cosine, p.x * sine)};
}

// Drive for the time `h`: speed and steering angle change evenly, the rest by their means.
template <class T, class State, class Parameters>
[[gnu::always_inline]] inline void drive(const Parameters& p, State& state, T h, T steer_to,
                                         T acceleration) {
  const T max_change = p.steering_rate_rad_s * h;
  const T steered = math::clamp(steer_to - state.steering_rad, -max_change, max_change);
  const T speed = math::clamp(math::fma(acceleration, h, state.speed_m_s), T(0), p.max_speed_m_s);
  const T v = T(0.5) * (state.speed_m_s + speed);
  const auto delta = math::sincos(math::fma(T(0.5), steered, state.steering_rad));
  const T tangent = p.rear_m * delta.sine / ((p.front_m + p.rear_m) * delta.cosine);
  const T max_sine = p.rear_m * p.grip_m_s2 / (v * v);
  const T sine =
      math::clamp(tangent / math::sqrt(math::fma(tangent, tangent, T(1))), -max_sine, max_sine);
  const T cosine = math::sqrt(math::fma(-sine, sine, T(1)));
  const auto turn = math::sincos(T(0.5) * h * v * sine / p.rear_m);  // of half of the time
  const auto middle = rotated({state.ahead_x, state.ahead_y}, turn.cosine, turn.sine);
  const auto way = rotated(middle, h * v * cosine, h * v * sine);
  state.x_m += way.x;
  state.y_m += way.y;
  const auto end = rotated(middle, turn.cosine, turn.sine);
  const T scale = T(1) / math::sqrt(math::fma(end.x, end.x, end.y * end.y));
  state.ahead_x = scale * end.x;
  state.ahead_y = scale * end.y;
  state.speed_m_s = speed;
  state.steering_rad += steered;
}

}  // namespace racing_car

// Begin at a gate, each as likely as any other, near the center line and its direction; straight
// wheels.
template <class T>
void reset(Generic, const RacingCar<T>&, const typename RacingCar<T>::Parameters& parameters,
           typename RacingCar<T>::State& state, RandomStream random) {
  const auto& p = parameters;
  constexpr const racing_car::Track<T>& track = racing_car::kTrack<T>;
  T drawn[4];
  uniforms(random, drawn, T(-1), T(1));
  const std::uint32_t gate =
      uniform_index(random, 4, static_cast<std::uint32_t>(racing_car::kGates));
  const auto& center = track.center[gate];
  const auto& along = track.gate[gate];  // its normal is the direction of the track
  const auto turn = math::sincos(drawn[1] * p.max_initial_angle_rad);
  const T offset = drawn[0] * p.max_initial_offset_m;
  state.x_m = math::fma(-along.normal_y, offset, center.x);
  state.y_m = math::fma(along.normal_x, offset, center.y);
  const auto ahead = racing_car::rotated({along.normal_x, along.normal_y}, turn.cosine, turn.sine);
  state.ahead_x = ahead.x;
  state.ahead_y = ahead.y;
  state.speed_m_s = T(0.5) * (drawn[2] + T(1)) * p.max_initial_speed_m_s;
  state.steering_rad = T(0);
  state.way_m = track.begin_m[gate];
}

template <class T>
StepResult<T> step(Generic, const RacingCar<T>&,
                   const typename RacingCar<T>::Parameters& parameters,
                   typename RacingCar<T>::State& state, const T* action, RandomStream) {
  const auto& p = parameters;
  const T steer_to = math::clamp(action[0], T(-1), T(1)) * p.max_steering_rad;
  const T acceleration = math::clamp(action[1], T(-1), T(1)) * p.max_acceleration_m_s2;
  const T h = p.step_s / T(RacingCar<T>::kSubsteps);
  for (int i = 0; i < RacingCar<T>::kSubsteps; i++) {
    racing_car::drive(p, state, h, steer_to, acceleration);
  }
  const auto position = racing_car::track_position(state.x_m, state.y_m);
  const bool is_on_track = position.clearance_m >= T(0);
  const T driven = position.way_m - state.way_m;
  const T half = T(0.5) * p.track_length_m;
  const T lap = driven > half ? -p.track_length_m : driven < -half ? p.track_length_m : T(0);
  state.way_m = is_on_track ? position.way_m : state.way_m;
  return {is_on_track ? driven + lap : T(0), !(position.clearance_m >= p.half_width_m)};
}

// Observe. A large function, called several times: inlined it takes 6 KB more of a Cortex-M7.
template <class T>
[[gnu::noinline]] void observe(Generic, const RacingCar<T>&,
                               const typename RacingCar<T>::Parameters& parameters,
                               const typename RacingCar<T>::State& state, T* observation,
                               RandomStream) {
  constexpr int kRays = contracts::RacingCar::kRays;
  racing_car::Point<T> ray[kRays];
  for (int i = 0; i < kRays; i++) {
    ray[i] = racing_car::rotated(racing_car::kRays<T>.direction[i], state.ahead_x, state.ahead_y);
  }
  racing_car::cast_rays(state.x_m, state.y_m, ray, parameters.max_range_m, observation);
  observation[kRays] = state.speed_m_s;
  observation[kRays + 1] = state.steering_rad;
}

}  // namespace rlt
