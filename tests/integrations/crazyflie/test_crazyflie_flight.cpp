// A rigid body with the firmware's four rotors is flown by a policy of one layer, whose weights are
// written down from the contract's words: so that frames, signs, units and the rotors' order agree
// with each other. The body's dynamics know nothing of the adapter.
#include "crazyflie_bench.h"

using namespace crazyflie_bench;

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kGravity = 9.81;
constexpr double kHover = 0.55;  // thrust of each rotor at which it hovers
// M1 to M4, as the contract's drawing has them: front or rear, left or right, and which way each
// turns (1: counter-clockwise from above, so that the body is turned clockwise).
constexpr double kForward[4] = {1, -1, -1, 1};
constexpr double kLeft[4] = {-1, -1, 1, 1};
constexpr double kCounterClockwise[4] = {1, -1, 1, -1};

struct Body {
  double position[3] = {}, velocity[3] = {}, attitude[4] = {1, 0, 0, 0}, rate[3] = {};

  void step(const float* thrusts, double dt) {
    double sum = 0, torque[3] = {};
    for (int i = 0; i < 4; i++) {
      const double thrust = static_cast<double>(thrusts[i]);
      sum += thrust;
      torque[0] += kLeft[i] * thrust;              // r x F: y * Fz
      torque[1] -= kForward[i] * thrust;           // -x * Fz
      torque[2] -= kCounterClockwise[i] * thrust;  // the rotor's reaction
    }
    const double gain[3] = {250, 250, 30};  // rad/s^2
    for (int i = 0; i < 3; i++) rate[i] += gain[i] * torque[i] * dt;
    turn(dt);
    const double w = attitude[0], x = attitude[1], y = attitude[2], z = attitude[3];
    const double up[3] = {2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)};
    for (int i = 0; i < 3; i++) {
      const double force = sum / (4 * kHover) * kGravity * up[i] - (i == 2 ? kGravity : 0);
      velocity[i] += (force - 0.2 * velocity[i]) * dt;
      position[i] += velocity[i] * dt;
    }
  }
  // attitude' = attitude * (0, rate) / 2
  void turn(double dt) {
    const double w = attitude[0], x = attitude[1], y = attitude[2], z = attitude[3];
    const double p = 0.5 * dt * rate[0], q = 0.5 * dt * rate[1], r = 0.5 * dt * rate[2];
    attitude[0] += -x * p - y * q - z * r;
    attitude[1] += w * p + y * r - z * q;
    attitude[2] += w * q - x * r + z * p;
    attitude[3] += w * r + x * q - y * p;
    double length = 0;
    for (const double value : attitude) length += value * value;
    for (double& value : attitude) value /= std::sqrt(length);
  }
  double yaw() const {
    return std::atan2(2 * (attitude[0] * attitude[3] + attitude[1] * attitude[2]),
                      1 - 2 * (attitude[2] * attitude[2] + attitude[3] * attitude[3]));
  }
};

// Thrust, roll, pitch and yaw that bring each error to zero, shared out to the rotors.
Bytes hover_policy() {
  static Linear network;
  for (float& value : network.values) value = 0.0f;
  for (int i = 0; i < 4; i++) {
    const auto weigh = [i](int channel, double weight) {
      network.weights(0)[channel * 4 + i] += static_cast<float>(2 * weight);  // 2: of [-1, 1]
    };
    network.bias(0)[i] = static_cast<float>(2 * kHover - 1);
    weigh(2, -0.2);  // too high: less of all
    weigh(5, -0.15);
    // Forward of the target, or going there: nose up, which is a turn about -y.
    const double nose_up = kForward[i], left_up = kLeft[i], turn_left = -kCounterClockwise[i];
    weigh(0, 0.03 * nose_up);
    weigh(3, 0.03 * nose_up);
    weigh(8, 0.25 * nose_up);  // attitude_y > 0 is nose down
    weigh(11, 0.025 * nose_up);
    // Left of the target: right side down, which is a turn about +x.
    weigh(1, 0.03 * left_up);
    weigh(4, 0.03 * left_up);
    weigh(7, -0.25 * left_up);
    weigh(10, -0.025 * left_up);
    weigh(9, -0.4 * turn_left);
    weigh(12, -0.1 * turn_left);
  }
  return image_of(network);
}

void sense(const Body& body, RltSensed& sensed) {
  for (int i = 0; i < 3; i++) {
    sensed.position_m[i] = static_cast<float>(body.position[i]);
    sensed.velocity_m_s[i] = static_cast<float>(body.velocity[i]);
    sensed.gyro_deg_s[i] = static_cast<float>(body.rate[i] * 180 / kPi);
  }
  for (int i = 0; i < 4; i++) sensed.quaternion[i] = static_cast<float>(body.attitude[i]);
}

}  // namespace

TEST_CASE("it flies to its target and looks where it should") {
  const double yaws[] = {0, 60, 135, -120};
  for (const double yaw_deg : yaws) {
    CAPTURE(yaw_deg);
    Bench bench(hover_policy());
    bench.settings.enable = 1;
    Body body;
    body.position[0] = 0.7;
    body.position[1] = -0.4;
    body.position[2] = 0.8;
    body.rate[0] = 2;
    const double start = (yaw_deg + 30) * kPi / 180;  // 30 degrees off
    body.attitude[0] = std::cos(start / 2);
    body.attitude[3] = std::sin(start / 2);
    bench.sensed.target_m[0] = 0.2f;
    bench.sensed.target_m[1] = 0.3f;
    bench.sensed.target_m[2] = 1.0f;
    bench.sensed.target_yaw_deg = static_cast<float>(yaw_deg);
    for (int ms = 0; ms < 10000; ms++) {
      sense(body, bench.sensed);
      REQUIRE(bench.turn() == RLT_PILOT_POLICY);
      body.step(bench.decision.thrusts, 1e-3);
    }
    CHECK(std::fabs(body.position[0] - 0.2) < 0.01);
    CHECK(std::fabs(body.position[1] - 0.3) < 0.01);
    CHECK(std::fabs(body.position[2] - 1.0) < 0.01);
    CHECK(std::fabs(std::remainder(body.yaw() - yaw_deg * kPi / 180, 2 * kPi)) < 0.01);
  }
}
