// Acrobot: which way a torque turns, its energy, its limits, what ends an episode, and what it
// begins with. test_acrobot_gymnasium.py compares its steps with gymnasium's.
#include <doctest/doctest.h>

#include <cmath>

#include "rltools/devices/generic.h"
#include "rltools/rl/environments/acrobot.h"

using namespace rlt;

namespace {

template <class T>
using StateOf = typename Acrobot<T>::State;

constexpr float kClockwise = 0, kNone = 1, kCounterclockwise = 2;

template <class T>
StepResult<T> stepped(StateOf<T>& state, T action,
                      const typename Acrobot<T>::Parameters& parameters = {}) {
  return step(Generic{}, Acrobot<T>{}, parameters, state, &action, RandomStream{});
}

// Of links of 1 kg and 1 m, whose centers of mass lie in their middles; 0 is at the joint's height.
double energy_j(const StateOf<double>& at) {
  const double a = at.upper_angle_rad, b = a + at.lower_angle_rad;
  const double w = at.upper_velocity_rad_s, v = w + at.lower_velocity_rad_s;
  const double upper_m2_s2 = 0.25 * w * w;
  const double lower_m2_s2 = w * w + 0.25 * v * v + w * v * std::cos(a - b);
  const double turning = 0.5 * (w * w + v * v);
  return 0.5 * (upper_m2_s2 + lower_m2_s2) + turning -
         9.8 * (1.5 * std::cos(a) + 0.5 * std::cos(b));
}

}  // namespace

static_assert(kIsKept<EnvironmentContract<Acrobot<float>>> && kIsDiscrete<Acrobot<float>> &&
              kOutputDim<Acrobot<float>> == 3);

TEST_CASE("a torque turns the lower link its way and the upper one the other way, and none, none") {
  StateOf<float> left{0, 0, 0, 0}, right{0, 0, 0, 0}, still{0, 0, 0, 0};
  CHECK(stepped(left, kClockwise).reward == -1.0f);
  CHECK(stepped(right, kCounterclockwise).reward == -1.0f);
  CHECK(stepped(still, kNone).reward == -1.0f);
  CHECK(right.lower_velocity_rad_s > 0.1f);
  CHECK(right.upper_velocity_rad_s < -0.01f);
  CHECK(left.lower_velocity_rad_s == -right.lower_velocity_rad_s);
  CHECK(left.upper_angle_rad == -right.upper_angle_rad);
  CHECK(still.lower_velocity_rad_s == 0);
  CHECK(still.upper_angle_rad == 0);
}

TEST_CASE("without a torque, short steps keep the energy to their fourth order") {
  double worst[2] = {0, 0};
  for (int is_finer = 0; is_finer < 2; is_finer++) {
    Acrobot<double>::Parameters parameters;
    parameters.step_s = is_finer ? 0.005 : 0.01;
    for (int start = 0; start < 20; start++) {
      StateOf<double> state{0.31 * start - 3, 2.7 - 0.23 * start, 0.2 * start - 2, 3 - 0.3 * start};
      const double begin = energy_j(state);
      for (int i = 0; i < (is_finer ? 400 : 200); i++) stepped(state, 1.0, parameters);
      worst[is_finer] = std::fmax(worst[is_finer], std::abs(energy_j(state) - begin));
    }
  }
  CHECK(worst[0] < 1e-3);
  CHECK(worst[0] > 12 * worst[1]);
}

TEST_CASE("velocities stay within their limits") {
  for (const float sign : {1.0f, -1.0f}) {
    StateOf<float> state{0.5f, sign * 1.0f, sign * 12.5f, sign * 28.2f};
    float fastest_upper = 0, fastest_lower = 0;
    for (int i = 0; i < 20; i++) {
      stepped(state, sign > 0 ? kCounterclockwise : kClockwise);
      CHECK(std::abs(state.upper_angle_rad) <= 3.1415930f);
      CHECK(std::abs(state.lower_angle_rad) <= 3.1415930f);
      fastest_upper = std::fmax(fastest_upper, std::abs(state.upper_velocity_rad_s));
      fastest_lower = std::fmax(fastest_lower, std::abs(state.lower_velocity_rad_s));
    }
    CHECK(fastest_upper == contracts::Acrobot::kMaxUpperVelocity_rad_s);
    CHECK(fastest_lower == contracts::Acrobot::kMaxLowerVelocity_rad_s);
  }
}

TEST_CASE("an episode ends, and its last step costs nothing, where the end is high enough") {
  constexpr float kPi = math::kPi<float>;
  // Upright it is at rest, and so it is where it is after a step; at 2 m.
  StateOf<float> upright{kPi, 0, 0, 0};
  const StepResult<float> reached = stepped(upright, kNone);
  CHECK(reached.terminated);
  CHECK(reached.reward == 0.0f);
  // Folded upwards the end is at the joint.
  StateOf<float> folded{kPi, kPi, 0, 0};
  const StepResult<float> not_there = stepped(folded, kNone);
  CHECK_FALSE(not_there.terminated);
  CHECK(not_there.reward == -1.0f);
}

TEST_CASE("initial states fill their range in each field") {
  float smallest[4] = {1, 1, 1, 1}, largest[4] = {-1, -1, -1, -1};
  for (std::uint32_t episode = 0; episode < 2000; episode++) {
    StateOf<float> state;
    reset(Generic{}, Acrobot<float>{}, {}, state, {9, Purpose::environment_reset, episode});
    const float values[4] = {state.upper_angle_rad, state.lower_angle_rad,
                             state.upper_velocity_rad_s, state.lower_velocity_rad_s};
    for (int i = 0; i < 4; i++) {
      smallest[i] = std::fmin(smallest[i], values[i]);
      largest[i] = std::fmax(largest[i], values[i]);
    }
  }
  for (int i = 0; i < 4; i++) {
    CAPTURE(i);
    CHECK((smallest[i] >= -0.1f && smallest[i] < -0.0996f));
    CHECK((largest[i] < 0.1f && largest[i] > 0.0996f));
  }
}
