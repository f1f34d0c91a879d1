// What Gymnasium's tasks begin with, choices that are drawn, and an action that is no number. Their
// steps and ends against gymnasium's: test_acrobot_gymnasium.py, test_cart_pole_gymnasium.py,
// test_pendulum_gymnasium.py.
#include <doctest/doctest.h>

#include <cmath>

#include "rltools/devices/generic.h"
#include "rltools/rl/environments/acrobot.h"
#include "rltools/rl/environments/cart_pole.h"
#include "rltools/rl/environments/pendulum.h"

using namespace rlt;

namespace {

constexpr double kPi = 3.14159265358979323846;

// Each field is drawn from [-bound, bound), and nearly reaches both.
template <class E>
void check_initial_states(float bound) {
  float smallest[4] = {1, 1, 1, 1}, largest[4] = {-1, -1, -1, -1};
  for (std::uint32_t episode = 0; episode < 2000; episode++) {
    typename E::State state;
    reset(Generic{}, E{}, {}, state, {9, Purpose::environment_reset, episode});
    int i = 0;
    state.for_each_field([&](const char*, float value) {
      smallest[i] = std::fmin(smallest[i], value);
      largest[i] = std::fmax(largest[i], value);
      i++;
    });
  }
  for (int i = 0; i < 4; i++) {
    CAPTURE(i);
    CHECK((smallest[i] >= -bound && smallest[i] < -0.996f * bound));
    CHECK((largest[i] < bound && largest[i] > 0.996f * bound));
  }
}

}  // namespace

TEST_CASE("initial states fill their range in each field") {
  check_initial_states<Acrobot<float>>(0.1f);
  check_initial_states<CartPole<float>>(0.05f);
}

TEST_CASE(
    "an episode's choices are drawn evenly, and those of its network are its largest outputs") {
  int right = 0;
  for (std::uint32_t i = 0; i < 2000; i++) {
    float action = 0;
    choose_uniformly<CartPole<float>>({1, Purpose::exploration, i}, &action, &action);
    CHECK((action == 0.0f || action == 1.0f));
    right += action == 1.0f;
  }
  CHECK(std::abs(right - 1000) < 5 * 22);  // five standard deviations
  const auto taken = [](float left_output, float right_output) {
    const float output[] = {left_output, right_output};
    float action;
    take_outputs<CartPole<float>>(output, output, &action);
    return action;
  };
  CHECK(taken(1, 2) == 1.0f);
  CHECK(taken(2, 1) == 0.0f);
  CHECK(taken(2, 2) == 0.0f);
  CHECK(std::isnan(taken(math::kInfinity, 0)));
  CHECK(std::isnan(taken(0, math::kQuietNan)));
}

TEST_CASE("a torque that is no number makes the state no number, it is not clipped to a bound") {
  const float action = math::kQuietNan;
  Pendulum<float>::State state{0.1f, 0.0f};
  step(Generic{}, Pendulum<float>{}, {}, state, &action, RandomStream{});
  CHECK(std::isnan(state.velocity_rad_s));
}

TEST_CASE("a torque beyond its bounds is that of the bound") {
  for (const float bound : {-1.0f, 1.0f}) {
    Pendulum<float>::State at{1.0f, 0.5f};
    step(Generic{}, Pendulum<float>{}, {}, at, &bound, RandomStream{});
    for (const float action : {1.001f * bound, math::kInfinity * bound}) {
      Pendulum<float>::State state{1.0f, 0.5f};
      step(Generic{}, Pendulum<float>{}, {}, state, &action, RandomStream{});
      CHECK(state.velocity_rad_s == at.velocity_rad_s);
    }
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
