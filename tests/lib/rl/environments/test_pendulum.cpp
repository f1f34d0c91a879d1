// Pendulum: the equations in double as gymnasium writes them, limits, and the distribution of
// initial states. test_pendulum_gymnasium.py compares with gymnasium itself.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "numeric_differentiation.h"
#include "rltools/devices/generic.h"
#include "rltools/rl/environments/pendulum.h"

using namespace rlt;

namespace {

constexpr double kPi = 3.14159265358979323846;

constexpr RandomStream kNothingIsDrawn{};

struct Expected {
  double angle, velocity, reward;
};

// gymnasium/envs/classic_control/pendulum.py: ((x + pi) mod 2 pi) - pi, and the step that follows.
Expected by_the_book(double angle, double velocity, double action) {
  const double torque = std::fmin(std::fmax(2 * action, -2), 2);
  double wrapped = std::fmod(angle + kPi, 2 * kPi);
  if (wrapped < 0) wrapped += 2 * kPi;
  wrapped -= kPi;
  const double cost = wrapped * wrapped + 0.1 * velocity * velocity + 0.001 * torque * torque;
  double next = velocity + (3 * 10.0 / (2 * 1.0) * std::sin(angle) + 3.0 * torque) * 0.05;
  next = std::fmin(std::fmax(next, -8), 8);
  return {angle + next * 0.05, next, -cost};
}

template <class T>
double largest_difference() {
  const Pendulum<T> environment{};
  const typename Pendulum<T>::Parameters parameters;
  const auto angles = numeric::random_values<double>(20000, 1, -60.0, 60.0);
  const auto velocities = numeric::random_values<double>(20000, 2, -8.0, 8.0);
  const auto actions = numeric::random_values<double>(20000, 3, -1.5, 1.5);
  double largest = 0;
  for (std::size_t i = 0; i < angles.size(); i++) {
    const typename Pendulum<T>::State state{static_cast<T>(angles[i]),
                                            static_cast<T>(velocities[i])};
    const T action = static_cast<T>(actions[i]);
    T observation[3];
    observe(Generic{}, environment, parameters, state, observation, kNothingIsDrawn);
    auto next = state;
    const T r = step(Generic{}, environment, parameters, next, &action, kNothingIsDrawn).reward;
    const double angle = state.angle_rad, velocity = state.velocity_rad_s;
    const Expected expected = by_the_book(angle, velocity, action);
    // The reward jumps by nothing at the turn: the angle's square is the same on both sides.
    for (const double difference :
         {next.angle_rad - expected.angle, next.velocity_rad_s - expected.velocity,
          r - expected.reward, observation[0] - std::cos(angle), observation[1] - std::sin(angle),
          observation[2] - velocity}) {
      largest = std::fmax(largest, std::abs(difference));
    }
  }
  return largest;
}

}  // namespace

static_assert(EnvironmentContract<Pendulum<float>>::kKept &&
              EnvironmentContract<Pendulum<double>>::kKept);

TEST_CASE("steps, rewards and observations agree with gymnasium's equations") {
  CHECK(largest_difference<double>() <= 1e-12);
  CHECK(largest_difference<float>() <= 1e-5);
}

TEST_CASE_TEMPLATE("the angle is normalised to half a turn on either side, after many turns", T,
                   float, double) {
  const double largest = sizeof(T) == 4 ? 1000 : 1e6;
  const T step = static_cast<T>(largest / 5003);
  for (int i = -5003; i <= 5003; i++) {
    const T angle = static_cast<T>(i) * step;
    const double normalized = detail::normalized_angle(angle);
    CHECK(std::abs(normalized) <= kPi * (1 + 1e-6));
    // It is the same direction.
    CHECK(std::abs(std::remainder(normalized - static_cast<double>(angle), 2 * kPi)) <=
          (sizeof(T) == 4 ? 1e-6 : 1e-9));
  }
}

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

TEST_CASE("initial angles and velocities are uniform in their ranges and independent") {
  constexpr int kCount = 20000, kBins = 20;
  int angle_count[kBins] = {}, velocity_count[kBins] = {};
  double covariance = 0;
  for (std::uint32_t episode = 0; episode < kCount; episode++) {
    Pendulum<float>::State state;
    reset(Generic{}, Pendulum<float>{}, {}, state, {9, Purpose::environment_reset, episode});
    const double angle = static_cast<double>(state.angle_rad) / kPi;
    const double velocity = static_cast<double>(state.velocity_rad_s);
    REQUIRE(std::abs(angle) <= 1 + 1e-7);
    REQUIRE(std::abs(velocity) <= 1);
    angle_count[static_cast<int>((angle + 1) / 2 * kBins) % kBins]++;
    velocity_count[static_cast<int>((velocity + 1) / 2 * kBins) % kBins]++;
    covariance += angle * velocity / kCount;
  }
  double angle_chi_square = 0, velocity_chi_square = 0;
  for (int bin = 0; bin < kBins; bin++) {
    const double expected = kCount / kBins;
    angle_chi_square += std::pow(angle_count[bin] - expected, 2) / expected;
    velocity_chi_square += std::pow(velocity_count[bin] - expected, 2) / expected;
  }
  // 19 degrees of freedom: above 43.8 once in a thousand samples, and this sample is always the
  // same.
  CHECK(angle_chi_square < 43.8);
  CHECK(velocity_chi_square < 43.8);
  CHECK(std::abs(covariance) < 5.0 / 3 / std::sqrt(double{kCount}));
}
