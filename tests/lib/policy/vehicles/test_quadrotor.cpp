// Estimates of two firmwares as the contract's observation, compared with rotations of vectors in
// double precision; rotors by their place and direction.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

#include "rltools/policy/vehicles/quadrotor.h"

using namespace rlt::vehicles;

namespace {

using Vector = std::array<double, 3>;
using Quaternion = std::array<double, 4>;
constexpr double kPi = 3.14159265358979323846;
constexpr Vector kAxes[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

struct Chance {
  std::uint32_t state = 1;
  double next() {  // in [-1, 1)
    state = state * 1664525u + 1013904223u;
    return static_cast<double>(state >> 8) / double{1 << 23} - 1.0;
  }
  void fill(float* values, int count) {
    for (int i = 0; i < count; i++) values[i] = static_cast<float>(next());
  }
  // A rotation whose length is off by no more than rounding may make it.
  void rotation(float* q) {
    double values[4], length_2 = 0;
    while (length_2 < 0.01) {
      length_2 = 0;
      for (double& value : values) value = next(), length_2 += value * value;
    }
    const double length = std::sqrt(length_2) * (1 + 0.009 * next());
    for (int i = 0; i < 4; i++) q[i] = static_cast<float>(values[i] / length);
  }
};

Quaternion product(const Quaternion& a, const Quaternion& b) {
  return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
          a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
          a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
          a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
}
Vector turned(const float* rotation, const Vector& v) {
  Quaternion q{rotation[0], rotation[1], rotation[2], rotation[3]};
  const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (double& value : q) value /= length;
  const Quaternion result = product(product(q, {0, v[0], v[1], v[2]}), {q[0], -q[1], -q[2], -q[3]});
  return {result[1], result[2], result[3]};
}
// Out of the world into the one along a yaw.
Vector turned_back(double yaw, const Vector& v) {
  return {std::cos(yaw) * v[0] + std::sin(yaw) * v[1], std::cos(yaw) * v[1] - std::sin(yaw) * v[0],
          v[2]};
}
Vector vector_of(const float* v) { return {v[0], v[1], v[2]}; }
Vector enu(const Vector& ned) { return {ned[1], ned[0], -ned[2]}; }
Vector flu(const Vector& frd) { return {frd[0], -frd[1], -frd[2]}; }

void check_alike(const Vector& seen, const Vector& expected) {
  for (std::size_t i = 0; i < 3; i++) CHECK(std::fabs(seen[i] - expected[i]) < 5e-6);
}

}  // namespace

TEST_CASE("an estimate of PX4's turns body vectors into world vectors in both pairs of frames") {
  Chance chance;
  for (int round = 0; round < 500; round++) {
    float ned_m[3], ned_m_s[3], q[4], frd_rad_s[3];
    for (float* values : {ned_m, ned_m_s, frd_rad_s}) chance.fill(values, 3);
    chance.rotation(q);
    const auto ours = QuadrotorEstimate::of_px4(ned_m, ned_m_s, q, frd_rad_s);
    check_alike(vector_of(ours.position_m), enu(vector_of(ned_m)));
    check_alike(vector_of(ours.velocity_m_s), enu(vector_of(ned_m_s)));
    check_alike(vector_of(ours.angular_velocity_rad_s), flu(vector_of(frd_rad_s)));
    for (const Vector& frd : kAxes)
      check_alike(turned(ours.attitude, flu(frd)), enu(turned(q, frd)));
  }
}

TEST_CASE("an estimate of the Crazyflie's is ours, but for degrees") {
  const float m[] = {1, 2, 3}, m_s[] = {4, 5, 6}, q[] = {0.1f, 0.2f, 0.3f, 0.4f};
  const float deg_s[] = {180, -90, 45};
  const auto ours = QuadrotorEstimate::of_crazyflie(m, m_s, q, deg_s);
  check_alike(vector_of(ours.position_m), {1, 2, 3});
  check_alike(vector_of(ours.velocity_m_s), {4, 5, 6});
  check_alike(vector_of(ours.angular_velocity_rad_s), {kPi, -kPi / 2, kPi / 4});
  for (int i = 0; i < 4; i++) CHECK(ours.attitude[i] == q[i]);
}

TEST_CASE("the observation is the estimate, seen from its target along any yaw") {
  Chance chance;
  for (int round = 0; round < 500; round++) {
    QuadrotorEstimate estimate;
    QuadrotorTarget target;
    for (float* values :
         {estimate.position_m, estimate.velocity_m_s, estimate.angular_velocity_rad_s,
          target.position_m, target.velocity_m_s}) {
      chance.fill(values, 3);
    }
    chance.rotation(estimate.attitude);
    const double yaw = 4 * chance.next() * kPi;
    target.world = TurnedWorld::along(static_cast<float>(yaw));
    float seen[13];
    REQUIRE(observe(estimate, target, seen));
    Vector position, velocity;
    for (int i = 0; i < 3; i++) {
      position[i] = double{estimate.position_m[i]} - double{target.position_m[i]};
      velocity[i] = double{estimate.velocity_m_s[i]} - double{target.velocity_m_s[i]};
    }
    check_alike(vector_of(seen), turned_back(yaw, position));
    check_alike(vector_of(seen + 3), turned_back(yaw, velocity));
    for (const Vector& axis : kAxes) {
      check_alike(turned(seen + 6, axis), turned_back(yaw, turned(estimate.attitude, axis)));
    }
    for (int i = 0; i < 3; i++) CHECK(seen[10 + i] == estimate.angular_velocity_rad_s[i]);
    CHECK(seen[6] >= 0.0f);  // of the two quaternions, this one
    for (int i = 6; i < 10; i++) CHECK(std::fabs(seen[i]) <= 1.0f);
    float there_and_back[3] = {seen[0], seen[1], seen[2]};
    target.world.vector_back(there_and_back);
    check_alike(vector_of(there_and_back), position);
  }
}

TEST_CASE("an attitude that is no rotation is no observation") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float length_2 : {0.0f, 0.979f, 0.981f, 1.0f, 1.019f, 1.021f, kNan}) {
    QuadrotorEstimate estimate{};
    estimate.attitude[3] = -std::sqrt(length_2);
    float seen[13];
    CHECK(observe(estimate, {}, seen) == (std::fabs(length_2 - 1.0f) < 0.02f));
  }
}

// -- rotors ---------------------------------------------------------------------------------------

TEST_CASE("the contract's rotors are the motors of the same place and direction, and no others") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  // "Generic Quadcopter" of PX4: airframe 4001.
  const Rotor generic[] = {{1, 1, 0.05f}, {-1, -1, 0.05f}, {1, -1, -0.05f}, {-1, 1, -0.05f}};
  std::uint8_t motors[4];
  REQUIRE(find_motors(generic, 4, motors));
  CHECK(motors[0] == 0);  // front right
  CHECK(motors[1] == 3);  // rear right
  CHECK(motors[2] == 1);  // rear left
  CHECK(motors[3] == 2);  // front left
  CHECK(!find_motors(generic, 3, motors));
  CHECK(!find_motors(generic, 5, motors));
  const auto is_found = [&](auto&& change) {
    Rotor other[] = {generic[0], generic[1], generic[2], generic[3]};
    change(other);
    return find_motors(other, 4, motors);
  };
  CHECK(is_found([](Rotor* r) { std::swap(r[0], r[1]); }));
  CHECK(!is_found([](Rotor* r) { r[1] = r[0]; }));  // two at one place
  CHECK(!is_found([](Rotor* r) { r[1].forward = kNan; }));
  CHECK(!is_found([](Rotor* r) {
    for (int i = 0; i < 4; i++) r[i].moment = -r[i].moment;  // they turn the other way
  }));
  const Rotor plus[] = {{1, 0, 0.05f}, {-1, 0, 0.05f}, {0, -1, -0.05f}, {0, 1, -0.05f}};
  CHECK(!find_motors(plus, 4, motors));
}
