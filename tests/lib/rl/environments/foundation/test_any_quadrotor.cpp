// The quadrotor with any airframe: which airframes are drawn, that they fly as they are said to,
// and that a table is the one that quadrotor.h flies.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "quadrotor_episode.h"
#include "rltools/rl/environments/foundation/any_quadrotor.h"

using namespace rlt;

namespace {

using Any = AnyQuadrotor<float>;
static_assert(kIsKept<EnvironmentContract<Any>> &&
              kIsKept<EnvironmentContract<AnyQuadrotor<float, 1, 1>>>);

Any undisturbed(float table_share = 0.0f) {
  Any environment = calm<Any>();
  environment.settings.environment.table_share = table_share;
  return environment;
}

quadrotor::Airframe<float> airframe(std::uint32_t number, std::uint32_t seed = 1) {
  return quadrotor::drawn_airframe<float>({}, {seed, Purpose::environment_parameters, number});
}

double lift(const quadrotor::Airframe<float>& a) {
  return 4.0 * static_cast<double>(quadrotor::thrust(a, 1.0f)) /
         (static_cast<double>(a.mass_kg) * quadrotor::kGravity_m_s2);
}

// Of `values`, which lie within the bounds, as many in each third of them, of their logarithms.
void check_even(std::vector<double> values, double low, double high, bool is_log) {
  CAPTURE(low);
  const auto scale = [&](double x) { return is_log ? std::log(x) : x; };
  int third[3] = {};
  for (const double value : values) {
    REQUIRE(value >= low * (1 - 1e-5));
    REQUIRE(value <= high * (1 + 1e-5));
    const double part = (scale(value) - scale(low)) / (scale(high) - scale(low));
    third[std::clamp(static_cast<int>(3.0 * part), 0, 2)]++;
  }
  for (const int count : third) {
    CHECK(count == doctest::Approx(static_cast<double>(values.size()) / 3.0).epsilon(0.1));
  }
}

}  // namespace

TEST_CASE("airframes are spread evenly over RAPTOR's bounds") {
  constexpr int kCount = 3000;
  std::vector<double> mass, lifts, turn, up, down, yaw, drag;
  for (std::uint32_t i = 0; i < kCount; i++) {
    const auto a = airframe(i);
    REQUIRE(quadrotor::can_fly(a));
    const double greatest = static_cast<double>(quadrotor::thrust(a, 1.0f));
    const auto to_inertia = [&](float arm, float inertia) {
      return static_cast<double>(arm) * greatest / (static_cast<double>(inertia) * 1e-6);
    };
    const double x = to_inertia(a.rotor_y_m, a.inertia_x), y = to_inertia(a.rotor_x_m, a.inertia_y);
    CHECK(x / y >= 1.0 / 1.4001);
    CHECK(x / y <= 1.4001);
    mass.push_back(static_cast<double>(a.mass_kg));
    lifts.push_back(lift(a));
    turn.push_back(std::sqrt(x * y));
    up.push_back(static_cast<double>(a.lag_up_s));
    down.push_back(static_cast<double>(a.lag_down_s));
    yaw.push_back(1e-3 * static_cast<double>(a.torque_1 + a.torque_2) / greatest);
    drag.push_back(static_cast<double>(a.drag_x / a.mass_kg));
  }
  check_even(mass, 0.02, 5.0, true);
  check_even(lifts, 1.5, 5.0, false);
  check_even(turn, 40.0, 1200.0, true);
  check_even(up, 0.03, 0.1, true);
  check_even(down, 0.03, 0.3, true);
  check_even(yaw, 0.005, 0.05, true);
  check_even(drag, 0.0, 0.5, false);
}

TEST_CASE("an airframe depends on seed and number alone") {
  const auto a = airframe(7), again = airframe(7), other = airframe(8), elsewhere = airframe(7, 2);
  CHECK(std::memcmp(&a, &again, sizeof a) == 0);
  CHECK(a.mass_kg != other.mass_kg);
  CHECK(a.mass_kg != elsewhere.mass_kg);
}

TEST_CASE("a table is the one that the quadrotor flies, bit by bit") {
  for (std::uint32_t table = 1; table <= quadrotor::kAnyAirframe; table++) {
    CAPTURE(table);
    Any any = undisturbed(1.0f);
    using Same = Quadrotor<float, 10, 2, quadrotor::AnySettings>;
    Same same = calm<Same>();
    any.settings.airframe = same.settings.airframe = table;
    any.settings.spread = same.settings.spread = 0.1f;
    Episode<Any> flight(any, table);
    Episode<Same> expected(same, table);
    const quadrotor::EpisodeParameters<float>& parameters = flight.parameters;
    CHECK(std::memcmp(&parameters, &expected.parameters, sizeof parameters) == 0);
  }
}

TEST_CASE("drawn airframes hover, and turn as their traits say") {
  for (std::uint32_t number = 0; number < 40; number++) {
    CAPTURE(number);
    Episode<Any> still(undisturbed(), number);
    for (int i = 0; i < 50; i++) CHECK_FALSE(still.hover().terminated);
    CHECK(norm(still.state.position_m) < 1e-3f);
    // About x by one rotor's thrust more on the left, and one's less on the right, in the end.
    Episode<Any> turning(undisturbed(), number);
    const float hover = 2.0f * turning.parameters.hover_fraction - 1.0f, little = 0.01f;
    const std::vector<float> action{hover - little, hover - little, hover + little, hover + little};
    turning.environment.settings.limit_rate = turning.environment.settings.limit_position = 1e6f;
    turning.environment.settings.limit_velocity = 1e6f;
    for (int i = 0; i < 150; i++) turning.take(action);  // lags have passed
    const float before = turning.state.angular_velocity_rad_s[0];
    turning.take(action);
    const double measured =
        static_cast<double>(turning.state.angular_velocity_rad_s[0] - before) / 0.02;
    const double turn = 220.0 * std::pow(5.5, static_cast<double>(turning.parameters.traits[1]));
    CHECK(measured == doctest::Approx(4.0 * 0.5 * 0.01 * turn).epsilon(0.02));
    CHECK(2.7 * std::pow(1.8, static_cast<double>(turning.parameters.traits[0])) ==
          doctest::Approx(1.0 / static_cast<double>(turning.parameters.hover_fraction))
              .epsilon(1e-4));
    const auto seen = turning.see();
    for (int i = 0; i < quadrotor::kTraits; i++) {
      CHECK(std::abs(turning.parameters.traits[i]) < 3.0f);
      CHECK(seen[static_cast<std::size_t>(20 + i)] == turning.parameters.traits[i]);
    }
  }
}
