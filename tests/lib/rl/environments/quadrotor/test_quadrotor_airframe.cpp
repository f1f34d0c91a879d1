// rl/environments/quadrotor/airframe.h: the airframes against their sources' figures, and the curve
// of thrust against its inverse.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "rltools/devices/generic.h"
#include "rltools/rl/environments/quadrotor/dynamics.h"
#include "rltools/rl/hyperparameters.h"

using namespace rlt;
using namespace rlt::quadrotor;

namespace {

RLT_DEFINE_HYPERPARAMETERS(AirframeSettings, RLT_QUADROTOR_AIRFRAME)

}  // namespace

TEST_CASE("each airframe has a name, a source, and parameters within the settings' bounds") {
  for (int t = 0; t < kTableCount; t++) {
    const auto& table = kTables<double>[t];
    CAPTURE(table.name);
    for (int other = 0; other < t; other++) {
      CHECK(std::string(table.name) != kTables<double>[other].name);
    }
    CHECK(std::strlen(table.source) > 0);
    CHECK(can_fly(table.airframe));
    int i = 0;
    table.airframe.for_each_field([&](const char* name, const double& value) {
      const ParameterInfo& info = AirframeSettings::info(i++);
      CAPTURE(name);
      CHECK(std::string(info.name) == name);
      CHECK(value >= info.minimum);
      CHECK(value <= info.maximum);
      if (t == 0) CHECK(value == info.default_value);
    });
    CHECK(i == AirframeSettings::kCount);
    const auto& as_float = kTables<float>[t].airframe;
    CHECK(as_float.thrust_2 == static_cast<float>(table.airframe.thrust_2));
  }
  Airframe<double> custom;
  custom.inertia_y = 11.64;
  CHECK(chosen_airframe(0, custom).inertia_y == custom.inertia_y);
  CHECK(chosen_airframe(7, custom).mass_kg == 1.5);
  CHECK(chosen_airframe(8, custom).inertia_y == custom.inertia_y);
}

TEST_CASE("the airframes' thrusts and torques are those of their sources") {
  const auto table = [](int number) { return kTables<double>[number - 1].airframe; };
  // Equal to a part of the value itself: doctest's own tolerance is never less than that of 1.
  const auto close = [](double value) { return doctest::Approx(value).epsilon(1e-4).scale(0); };
  CHECK(thrust(table(1), 1.0) == close(3.16e-10 * 21702.0 * 21702.0));
  CHECK(torque(table(1), 1.0) == close(0.005965 * thrust(table(1), 1.0)));
  CHECK(thrust(table(2), 0.5) == close(0.01087 + 0.03738 * 0.5 + 0.0628 * 0.25));
  CHECK(torque(table(2), 0.5) == close(0.004665 * thrust(table(2), 0.5)));
  CHECK(thrust(table(3), 0.5) == close(0.0035 + 0.0144 * 0.5 + 0.0922 * 0.25));
  CHECK(torque(table(3), 0.5) == close(0.004665 * thrust(table(3), 0.5)));
  CHECK(thrust(table(4), 1.0) == close(0.12));
  const double rpm = 0.8 * 23216.1;
  CHECK(thrust(table(4), 0.8) == close(2.458e-10 * rpm * rpm - 5.38e-7 * rpm).epsilon(1e-3));
  CHECK(torque(table(4), 0.8) == close(1.459e-12 * rpm * rpm + 1.410e-9 * rpm).epsilon(1e-3));
  CHECK(4 * thrust(table(5), 1.0) == close(2.25 * 0.027 * 9.8));
  CHECK(torque(table(5), 1.0) == close(thrust(table(5), 1.0) * 7.94e-12 / 3.16e-10));
  CHECK(thrust(table(6), 0.5) == close(2.5));
  CHECK(torque(table(6), 0.5) == close(0.05));
  CHECK(thrust(table(7), 0.5) == close(8.54858e-06 * 419 * 419));
  CHECK(torque(table(7), 0.5) == close(0.016 * thrust(table(7), 0.5)));
  for (const int diagonal : {4, 5}) {
    const auto a = table(diagonal);
    CHECK(std::hypot(a.rotor_x_m, a.rotor_y_m) == close(diagonal == 4 ? 0.03253 : 0.0397));
  }
}

TEST_CASE_TEMPLATE("a thrust's rotor speed has that thrust", T, float, double) {
  const T tolerance = sizeof(T) == 4 ? T(1e-5) : T(1e-12);
  for (const auto& table : kTables<T>) {
    CAPTURE(table.name);
    const auto& a = table.airframe;
    Dynamics<T> d;
    derive_dynamics(a, T(0.002), d);
    const T greatest = thrust(a, T(1));
    for (int i = 0; i <= 100; i++) {
      const T fraction[4] = {T(i) / T(100), T(1), T(0), T(i) / T(200)};
      T setpoint[4];
      rotor_setpoints<T>(d, fraction, setpoint);
      CHECK(std::fabs(setpoint[1] - T(1)) <= tolerance);
      CHECK(setpoint[2] == T(0));
      for (const int rotor : {0, 3}) {
        const T wanted = fraction[rotor] * greatest, speed = setpoint[rotor];
        CHECK(speed >= T(0));
        CHECK(speed <= T(1));
        if (wanted <= thrust(a, T(0))) {
          CHECK(speed == T(0));
        } else {
          CHECK(std::fabs(thrust(a, speed) - wanted) <= tolerance * greatest);
        }
      }
    }
    CHECK(speed_of_thrust(a, T(2) * greatest) == T(1));
    CHECK(std::fabs(thrust(a, hover_rotor_speed(a)) / (a.mass_kg * T(9.81)) - T(0.25)) <=
          tolerance);
  }
}

TEST_CASE("what cannot carry its weight, or whose thrust falls, cannot fly") {
  Airframe<float> heavy;
  heavy.mass_kg = 0.07f;
  CHECK_FALSE(can_fly(heavy));
  Airframe<float> falling;
  falling.thrust_1 = 0.5f;
  falling.thrust_2 = -0.3f;
  CHECK_FALSE(can_fly(falling));
}
