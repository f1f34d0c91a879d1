// rl/environments/quadrotor/dynamics.h: what test_quadrotor_scipy.py, which integrates the same
// equations otherwise, does not show: equilibria, exact lags, each rotor's side, the battery, and
// the method's order.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "rltools/devices/generic.h"
#include "rltools/rl/environments/quadrotor/dynamics.h"

using namespace rlt;
using namespace rlt::quadrotor;

namespace {

constexpr double kStep_s = 0.002;

// What a body does under constant setpoints, forces and torques.
template <class T>
struct Flight {
  explicit Flight(const Airframe<T>& of, T step_s = static_cast<T>(kStep_s)) : airframe(of) {
    derive_dynamics(of, step_s, dynamics);
    begin_level_hover(of, body);
    set_all(hover_rotor_speed(of));
  }
  void set_all(T value) {
    for (T& one : setpoint) one = value;
  }
  void stop_rotors() {
    set_all(T(0));
    for (T& speed : body.rotor_speed) speed = T(0);
  }
  void go(int steps) {
    for (int i = 0; i < steps; i++) rk4_step<T>(dynamics, body, setpoint, force, torque);
  }
  std::vector<double> state() const {
    std::vector<double> numbers;
    const T* first = body.position_m;
    for (std::size_t i = 0; i < sizeof body / sizeof(T); i++) {
      numbers.push_back(static_cast<double>(first[i]));
    }
    return numbers;
  }

  Airframe<T> airframe;
  Dynamics<T> dynamics;
  Body<T> body;
  T setpoint[4], force[3] = {}, torque[3] = {};
};

template <class T>
void set(T (&to)[3], double x, double y, double z) {
  to[0] = static_cast<T>(x), to[1] = static_cast<T>(y), to[2] = static_cast<T>(z);
}

// Equal to a part of the value itself: doctest's own tolerance is never less than that of 1.
doctest::Approx close(double value, double epsilon = 1e-5) {
  return doctest::Approx(value).epsilon(epsilon).scale(0);
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); i++) {
    REQUIRE(std::isfinite(a[i]));
    largest = std::fmax(largest, std::fabs(a[i] - b[i]));
  }
  return largest;
}

// A flight in which everything that there is acts, but the battery's sag.
template <class T>
Flight<T> lively(double step_s) {
  Airframe<T> a = kTables<T>[3].airframe;  // of Crazyflow, with drag
  a.drag_y = T(0.02);
  a.drag_rotation = T(0.002);
  a.inertia_y = T(14);
  Flight<T> flight(a, static_cast<T>(step_s));
  set(flight.body.velocity_m_s, 1.0, -2.0, 0.5);
  set(flight.body.angular_velocity_rad_s, 9.0, -6.0, 12.0);
  set(flight.force, 0.02, -0.01, 0.03);
  set(flight.torque, 1e-4, -2e-4, 5e-5);
  const double setpoints[4] = {0.9, 0.7, 0.8, 0.95};
  for (int i = 0; i < 4; i++) flight.setpoint[i] = static_cast<T>(setpoints[i]);
  return flight;
}

}  // namespace

TEST_CASE("hover is an equilibrium of every airframe") {
  for (const auto& table : kTables<double>) {
    CAPTURE(table.name);
    Flight<double> flight(table.airframe);
    const auto before = flight.state();
    flight.go(500);
    auto after = flight.state();
    CHECK(after[17] == close(std::pow(before[13], 2) / 60));  // charge of one second
    after[17] = 0;
    CHECK(largest_difference(after, before) < 1e-12);
  }
}

TEST_CASE("rotors follow their setpoints with their lags, faster or slower") {
  for (const double lag : {0.0, 1e-5, 0.0125, 0.15}) {
    for (const bool gains : {false, true}) {
      Airframe<double> a;
      (gains ? a.lag_up_s : a.lag_down_s) = lag;
      (gains ? a.lag_down_s : a.lag_up_s) = 0.7;
      Flight<double> flight(a);
      const double from = gains ? 0.2 : 0.9, to = gains ? 0.9 : 0.2;
      for (double& speed : flight.body.rotor_speed) speed = from;
      flight.set_all(to);
      for (int steps = 1; steps <= 50; steps++) {
        flight.go(1);
        const double left = lag > 0 ? std::exp(-steps * kStep_s / lag) : 0.0;
        for (const double speed : flight.body.rotor_speed) {
          CHECK(std::fabs(speed - (to + (from - to) * left)) < 1e-14);
        }
      }
    }
  }
}

// Where rotors stand and how they turn is written out, for a map of the motors that is wrong must
// not pass: 0 front right, 1 rear right, 2 rear left, 3 front left.
TEST_CASE("each rotor lifts, rolls, pitches and turns the body to its own side") {
  const double ahead[4] = {1, -1, -1, 1}, to_the_left[4] = {-1, -1, 1, 1};
  const double torque_of_air[4] = {-1, 1, -1, 1};  // counter-clockwise ones turn it clockwise
  std::vector<Airframe<double>> airframes;
  for (const auto& table : kTables<double>) airframes.push_back(table.airframe);
  airframes[0].rotor_x_m = 0.02;  // one of which every number counts
  airframes[0].thrust_1 = airframes[0].torque_1 = 0.03;
  for (const auto& a : airframes) {
    CAPTURE(a.mass_kg);
    for (int rotor = 0; rotor < 4; rotor++) {
      CAPTURE(rotor);
      constexpr double kShort_s = 1e-6;
      Flight<double> flight(a, kShort_s);
      const double hover = flight.setpoint[0], more = 1.1 * hover;
      flight.setpoint[rotor] = flight.body.rotor_speed[rotor] = more;
      const double lift = thrust(a, more) - thrust(a, hover);
      const double turn = quadrotor::torque(a, more) - quadrotor::torque(a, hover);
      flight.go(1);
      const double* rate = flight.body.angular_velocity_rad_s;
      const auto expect = [&](double torque_nm, double inertia) {
        return close(torque_nm / (inertia * 1e-6) * kShort_s, 1e-3);
      };
      CHECK(rate[0] == expect(to_the_left[rotor] * a.rotor_y_m * lift, a.inertia_x));
      CHECK(rate[1] == expect(-ahead[rotor] * a.rotor_x_m * lift, a.inertia_y));
      CHECK(rate[2] == expect(torque_of_air[rotor] * turn, a.inertia_z));
      CHECK(flight.body.velocity_m_s[2] == close(lift / a.mass_kg * kShort_s, 1e-3));
    }
  }
}

TEST_CASE("the battery's sag slows the rotors by load and by what was drawn") {
  Airframe<double> a;
  a.lag_up_s = a.lag_down_s = 0;
  a.sag_load = 0.2;
  a.sag_per_min = 0.1;
  Flight<double> flight(a);
  for (double& speed : flight.body.rotor_speed) speed = 0.5;
  flight.body.rotor_speed[3] = 1.0;
  flight.body.charge_min = 2.0;
  flight.set_all(0.8);
  flight.go(1);
  const double load = (3 * 0.25 + 1.0) / 4;
  CHECK(flight.body.rotor_speed[0] == close(0.8 * (1 - 0.2 * load - 0.1 * 2.0)));
  CHECK(flight.body.charge_min == close(2.0 + load * kStep_s / 60, 1e-12));
  flight.body.charge_min = 1000.0;  // flat: rotors stand still, and do not turn back
  flight.go(1);
  CHECK(flight.body.rotor_speed[2] == 0.0);
}

TEST_CASE("halving the step divides the error by sixteen: order 4") {
  const auto state_after = [](double step_s) {
    auto flight = lively<double>(step_s);
    flight.go(static_cast<int>(std::lround(0.2 / step_s)));
    return flight.state();
  };
  auto reference = state_after(0.2 / 8000);
  const auto error = [&](double step_s) {
    auto state = state_after(step_s);
    state[17] = reference[17];  // the charge is that of the load at the step's begin
    return largest_difference(state, reference);
  };
  const double coarse = error(0.01), middle = error(0.005), fine = error(0.0025);
  CAPTURE(coarse);
  CAPTURE(middle);
  CAPTURE(fine);
  CHECK(fine > 1e-10);  // of the method, not of rounding
  CHECK(std::log2(coarse / middle) == close(4.0, 0.08));
  CHECK(std::log2(middle / fine) == close(4.0, 0.05));
}

TEST_CASE("float stays with double: 1e-4 in a second of flight") {
  auto exact = lively<double>(kStep_s);
  auto rounded = lively<float>(kStep_s);
  for (int i = 0; i < 10; i++) {
    exact.go(50);
    rounded.go(50);
    auto difference = rounded.state();
    const auto expected = exact.state();
    for (std::size_t k = 0; k < expected.size(); k++) {
      CAPTURE(k);
      CHECK(std::fabs(difference[k] - expected[k]) < 1e-4 * std::fmax(1.0, std::fabs(expected[k])));
    }
  }
}

TEST_CASE("an attitude has length 1 after a step, whatever it had before, and a fast spin no NaN") {
  Flight<float> flight(kTables<float>[0].airframe);
  flight.body.attitude[0] = 1.2f;
  flight.body.attitude[2] = 0.5f;
  set(flight.body.angular_velocity_rad_s, 300.0, -200.0, 100.0);
  flight.set_all(1.0f);
  for (int i = 0; i < 1000; i++) {
    flight.go(1);
    const float* q = flight.body.attitude;
    CHECK(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] == close(1.0f, 1e-6));
  }
}
