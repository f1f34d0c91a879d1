// Pendulum: its limits, and what it begins with. test_pendulum_gymnasium.py compares its steps with
// gymnasium's.
#include <doctest/doctest.h>

#include <cmath>

#include "rltools/devices/generic.h"
#include "rltools/rl/environments/pendulum.h"

using namespace rlt;

namespace {

constexpr double kPi = 3.14159265358979323846;

constexpr RandomStream kNothingIsDrawn{};

}  // namespace

static_assert(kIsKept<EnvironmentContract<Pendulum<float>>> &&
              kIsKept<EnvironmentContract<Pendulum<double>>>);

TEST_CASE("limits: torque, velocity, and the worst reward") {
  const auto reward_of = [](Pendulum<float>::State& state, float action) {
    return step(Generic{}, Pendulum<float>{}, {}, state, &action, kNothingIsDrawn).reward;
  };
  const auto after = [&](float angle, float velocity, float action) {
    Pendulum<float>::State state{angle, velocity};
    reward_of(state, action);
    return state;
  };
  // Hanging down, where gravity does nothing: the velocity after one step is torque times 3 / 20.
  CHECK(after(static_cast<float>(kPi), 0.0f, 1.0f).velocity_rad_s == doctest::Approx(0.3));
  for (const float action : {1.001f, 2.0f, 1e30f, math::kInfinity}) {
    CHECK(after(1.0f, 0.5f, action).velocity_rad_s == after(1.0f, 0.5f, 1.0f).velocity_rad_s);
    CHECK(after(1.0f, 0.5f, -action).velocity_rad_s == after(1.0f, 0.5f, -1.0f).velocity_rad_s);
  }
  CHECK(after(1.5f, 7.9f, 1.0f).velocity_rad_s == 8.0f);
  CHECK(after(-1.5f, -7.9f, -1.0f).velocity_rad_s == -8.0f);
  Pendulum<float>::State worst{static_cast<float>(-kPi), 8.0f}, best{0.0f, 0.0f};
  CHECK(reward_of(worst, 1.0f) == doctest::Approx(-(kPi * kPi + 6.4 + 0.004)));
  CHECK(reward_of(best, 0.0f) == 0.0f);
}

TEST_CASE("a torque that is no number makes the state no number, it is not clipped to a bound") {
  const float action = math::kQuietNan;
  Pendulum<float>::State state{0.1f, 0.0f};
  step(Generic{}, Pendulum<float>{}, {}, state, &action, kNothingIsDrawn);
  CHECK(std::isnan(state.velocity_rad_s));
}

TEST_CASE("it never terminates") {
  const float action = 1.0f;
  for (Pendulum<float>::State state : {Pendulum<float>::State{0.0f, 0.0f}, {3.0f, 8.0f}}) {
    CHECK_FALSE(step(Generic{}, Pendulum<float>{}, {}, state, &action, kNothingIsDrawn).terminated);
  }
}

TEST_CASE("initial angles and velocities fill their ranges, and are drawn apart") {
  constexpr std::uint32_t kCount = 2000;
  double angle_sum = 0, velocity_sum = 0, product = 0, largest_angle = 0, largest_velocity = 0;
  for (std::uint32_t episode = 0; episode < kCount; episode++) {
    Pendulum<float>::State state;
    reset(Generic{}, Pendulum<float>{}, {}, state, {9, Purpose::environment_reset, episode});
    const double angle = static_cast<double>(state.angle_rad) / kPi;
    const double velocity = static_cast<double>(state.velocity_rad_s);
    largest_angle = std::fmax(largest_angle, std::abs(angle));
    largest_velocity = std::fmax(largest_velocity, std::abs(velocity));
    angle_sum += angle, velocity_sum += velocity, product += angle * velocity;
  }
  CHECK((largest_angle > 0.995 && largest_angle <= 1 + 1e-7));
  CHECK((largest_velocity > 0.995 && largest_velocity <= 1));
  // Five standard deviations: 1 / sqrt(3) of each number, a third of their product.
  CHECK(std::abs(angle_sum) < 5 * std::sqrt(kCount / 3.0));
  CHECK(std::abs(velocity_sum) < 5 * std::sqrt(kCount / 3.0));
  CHECK(std::abs(product) < 5.0 / 3 * std::sqrt(double{kCount}));
}
