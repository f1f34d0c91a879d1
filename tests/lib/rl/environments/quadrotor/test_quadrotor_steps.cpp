// A step of the quadrotor's: its ticks, what its action costs, and what happens within it.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "quadrotor_episode.h"

using namespace rlt;

namespace {

// Two episodes, without one of the costs and with it.
struct Compared {
  Compared(float Flight::Settings::* weight, float value)
      : without(flight(weight, 0.0f)), with(flight(weight, value)) {}
  static Flight flight(float Flight::Settings::* weight, float value) {
    Flight environment = calm<Flight>();
    environment.settings.*weight = value;
    return environment;
  }

  Episode<Flight> without, with;
};

}  // namespace

TEST_CASE("a step is twenty ticks") {
  Flight by_steps_environment = calm<Flight>();
  Tick by_ticks_environment = calm<Tick>();
  Episode<Flight> by_steps(by_steps_environment);
  Episode<Tick> by_ticks(by_ticks_environment);
  for (int i = 0; i < 5; i++) {
    const std::vector<float> action{0.01f, -0.01f, 0.005f, -0.005f};
    by_steps.take(action);
    for (int k = 0; k < Flight::kTicksPerStep; k++) by_ticks.take(action);
  }
  CHECK(by_steps.state.time_s == doctest::Approx(by_ticks.state.time_s));
  for (int i = 0; i < 3; i++) {
    CHECK(by_steps.state.position_m[i] ==
          doctest::Approx(by_ticks.state.position_m[i]).epsilon(1e-3).scale(0.1));
    CHECK(by_steps.state.angular_velocity_rad_s[i] ==
          doctest::Approx(by_ticks.state.angular_velocity_rad_s[i]).epsilon(1e-3));
  }
}

TEST_CASE("a change of the action costs by its square, once") {
  auto [without, with] = Compared(&Flight::Settings::cost_change, 4.0f);
  const float hover = 2.0f * with.parameters.hover_fraction - 1.0f;
  const std::vector<float> action{hover + 0.1f, hover, hover - 0.2f, hover};
  CHECK(without.take(action).reward - with.take(action).reward ==
        doctest::Approx(0.01f + 0.04f).epsilon(1e-4));
  CHECK(without.take(action).reward == with.take(action).reward);  // it is the last one now
}

TEST_CASE("a limit of the angular velocity holds within a step, too") {
  const std::vector<float> rolls{-1.0f, -1.0f, 1.0f, 1.0f};
  Flight environment = calm<Flight>();
  environment.settings.limit_rate = 100.0f;
  Episode<Flight> unlimited(environment);
  CHECK_FALSE(unlimited.take(rolls).terminated);
  const float reached = norm(unlimited.state.angular_velocity_rad_s);
  CHECK(reached > 1.0f);
  environment.settings.limit_rate = 0.9f * reached;
  CHECK(Episode<Flight>(environment).take(rolls).terminated);
}

TEST_CASE("a speed upwards costs as any other") {
  auto [without, with] = Compared(&Flight::Settings::cost_velocity, 2.0f);
  without.state.velocity_m_s[2] = with.state.velocity_m_s[2] = 0.5f;
  const float cost = without.hover().reward - with.hover().reward;
  CHECK(cost == doctest::Approx(2.0f * std::fabs(with.state.velocity_m_s[2])));
  CHECK(cost > 0.9f);
}
