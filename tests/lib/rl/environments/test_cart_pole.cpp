// Cart and pole: where an episode ends, which way a choice pushes, and what it begins with.
// test_cart_pole_gymnasium.py compares its steps with gymnasium's.
#include <doctest/doctest.h>

#include <cmath>

#include "rltools/devices/generic.h"
#include "rltools/rl/environments/cart_pole.h"

using namespace rlt;

namespace {

using State = CartPole<float>::State;

StepResult<float> stepped(State& state, float action) {
  return step(Generic{}, CartPole<float>{}, {}, state, &action, RandomStream{});
}

bool ends(State state) { return stepped(state, 1.0f).terminated; }

}  // namespace

static_assert(kIsKept<EnvironmentContract<CartPole<float>>> && kIsDiscrete<CartPole<float>> &&
              kOutputDim<CartPole<float>> == 2);

TEST_CASE("the first choice pushes to the left, the second to the right, and each step earns 1") {
  State left{0, 0, 0, 0}, right{0, 0, 0, 0};
  CHECK(stepped(left, 0.0f).reward == 1.0f);
  CHECK(stepped(right, 1.0f).reward == 1.0f);
  CHECK(left.cart_velocity_m_s < 0);
  CHECK(left.pole_velocity_rad_s > 0);  // the pole stays behind
  CHECK(right.cart_velocity_m_s == -left.cart_velocity_m_s);
  CHECK(right.pole_velocity_rad_s == -left.pole_velocity_rad_s);
}

TEST_CASE("an episode ends where the cart is too far away or the pole leans too much") {
  CHECK_FALSE(ends({2.3999f, 0, 0, 0}));
  CHECK(ends({2.4001f, 0, 0, 0}));
  CHECK_FALSE(ends({-2.3999f, 0, 0, 0}));
  CHECK(ends({-2.4001f, 0, 0, 0}));
  CHECK(ends({2.39f, 1, 0, 0}));  // in the state that is reached
  constexpr float kMax = 0.20943951f;
  CHECK_FALSE(ends({0, 0, kMax - 1e-4f, 0}));
  CHECK(ends({0, 0, kMax + 1e-4f, 0}));
  CHECK_FALSE(ends({0, 0, 1e-4f - kMax, 0}));
  CHECK(ends({0, 0, -kMax - 1e-4f, 0}));
}

TEST_CASE("initial states fill their range in each field") {
  float smallest[4] = {1, 1, 1, 1}, largest[4] = {-1, -1, -1, -1};
  for (std::uint32_t episode = 0; episode < 2000; episode++) {
    State state;
    reset(Generic{}, CartPole<float>{}, {}, state, {9, Purpose::environment_reset, episode});
    float observation[4];
    observe(Generic{}, CartPole<float>{}, {}, state, observation, RandomStream{});
    for (int i = 0; i < 4; i++) {
      smallest[i] = std::fmin(smallest[i], observation[i]);
      largest[i] = std::fmax(largest[i], observation[i]);
    }
  }
  for (int i = 0; i < 4; i++) {
    CAPTURE(i);
    CHECK((smallest[i] >= -0.05f && smallest[i] < -0.0498f));
    CHECK((largest[i] < 0.05f && largest[i] > 0.0498f));
  }
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
