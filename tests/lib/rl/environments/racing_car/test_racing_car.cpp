// The racing car: its limits, what a step earns and ends, what it begins with, and its track.
// test_racing_car_reference.py compares its steps and rays with other computations of them.
#include <doctest/doctest.h>

#include <cmath>

#include "rltools/devices/generic.h"
#include "rltools/rl/environments/racing_car/racing_car.h"
#include "rltools/rl/fingerprint.h"

using namespace rlt;

namespace {

template <class T>
using StateOf = typename RacingCar<T>::State;

// On the first straight, which goes along x: 1 m from gate 0.
template <class T>
StateOf<T> on_straight(T speed_m_s) {
  return {T(1), T(-0.05), T(1), T(0), speed_m_s, T(0), T(1)};
}

template <class T>
StepResult<T> stepped(StateOf<T>& state, T steer_to, T acceleration) {
  const T action[] = {steer_to, acceleration};
  return step(Generic{}, RacingCar<T>{}, {}, state, action, RandomStream{});
}

}  // namespace

static_assert(kIsKept<EnvironmentContract<RacingCar<float>>> &&
              kIsKept<EnvironmentContract<RacingCar<double>>>);

TEST_CASE("it earns the way that it drives, and none where it stands") {
  StateOf<float> standing = on_straight(0.0f), driving = on_straight(4.0f);
  stepped(standing, 0.5f, -1.0f);  // its way is then where it stands
  CHECK(stepped(standing, 0.5f, -1.0f).reward == 0.0f);
  CHECK(standing.x_m == 1.0f);
  CHECK(standing.speed_m_s == 0.0f);
  const StepResult<float> driven = stepped(driving, 0.0f, 0.0f);
  CHECK(driven.reward == doctest::Approx(0.2).epsilon(0.02));
  CHECK_FALSE(driven.terminated);
  CHECK(driving.x_m == doctest::Approx(1.2));
}

TEST_CASE("steering, speed and acceleration keep their limits, and it does not drive backwards") {
  for (const float way : {1.0f, 3.0f, math::kInfinity}) {
    StateOf<float> state = on_straight(1.0f);
    stepped(state, way, way);
    CHECK(state.steering_rad == doctest::Approx(0.16));  // 3.2 rad/s for 50 ms
    CHECK(state.speed_m_s == doctest::Approx(1.25));     // 5 m/s2
    for (int i = 0; i < 40; i++) stepped(state, way, way);
    CHECK(state.steering_rad == doctest::Approx(0.4));
    CHECK(state.speed_m_s == 6.0f);
    for (int i = 0; i < 40; i++) stepped(state, -way, -way);
    CHECK(state.steering_rad == doctest::Approx(-0.4));
    CHECK(state.speed_m_s == 0.0f);
  }
}

TEST_CASE("an episode ends where half of the car's width is no longer within the border") {
  const auto ends_at = [](float y) {
    StateOf<float> state = on_straight(0.0f);
    state.y_m = y;
    return stepped(state, 0.0f, -1.0f);
  };
  CHECK_FALSE(ends_at(0.48f).terminated);  // of 0.64 m to the left border there
  CHECK(ends_at(0.52f).terminated);
  CHECK_FALSE(ends_at(-0.59f).terminated);
  CHECK(ends_at(-0.63f).terminated);
  CHECK(ends_at(-0.63f).reward != 0.0f);  // still on the track
  for (const float y : {2.0f, -50.0f, math::kQuietNan}) {
    CAPTURE(y);
    CHECK(ends_at(y).terminated);
    CHECK(ends_at(y).reward == 0.0f);
  }
}

TEST_CASE("the way goes on over gate 0, and around the track it is the track's length") {
  const auto& track = racing_car::kTrack<float>;
  double sum = 0;
  StateOf<float> state = on_straight(0.0f);
  state.way_m = 0;
  for (int i = 1; i <= 3 * racing_car::kGates; i++) {
    const auto& gate = track.gate[i % racing_car::kGates];
    const auto& center = track.center[i % racing_car::kGates];
    state = {center.x + 0.01f * gate.normal_x,
             center.y + 0.01f * gate.normal_y,
             gate.normal_x,
             gate.normal_y,
             0,
             0,
             state.way_m};
    const StepResult<float> result = stepped(state, 0.0f, -1.0f);
    CAPTURE(i);
    CHECK_FALSE(result.terminated);
    CHECK((result.reward > 0.3f && result.reward < 0.6f));
    sum += static_cast<double>(result.reward);
  }
  CHECK(sum == doctest::Approx(3 * static_cast<double>(track.length_m) + 0.01).epsilon(1e-4));
}

TEST_CASE("sections are convex, and no others come near enough to be mistaken for them") {
  const auto& track = racing_car::kTrack<double>;
  constexpr int kCount = racing_car::kGates;
  for (int i = 0; i < kCount; i++) {
    const int next = (i + 1) % kCount;
    CAPTURE(i);
    for (const auto* border : {&track.left, &track.right}) {
      CHECK(track.gate[i].distance((*border)[i].x, (*border)[i].y) == doctest::Approx(0));
      CHECK(track.gate[i].distance((*border)[next].x, (*border)[next].y) > 0.05);
      CHECK(track.gate[next].distance((*border)[i].x, (*border)[i].y) < -0.05);
    }
    CHECK(track.left_edge[i].distance(track.right[i].x, track.right[i].y) > 1.2);
    CHECK(track.right_edge[i].distance(track.left[next].x, track.left[next].y) > 1.2);
    for (int j = 0; j < kCount; j++) {
      const int apart = std::abs(i - j);
      if (std::min(apart, kCount - apart) < 8) continue;
      const double x = track.center[i].x - track.center[j].x;
      const double y = track.center[i].y - track.center[j].y;
      CHECK(std::hypot(x, y) > 3 * racing_car::kHalfWidth_m);
    }
  }
}

TEST_CASE("it begins at every gate, to both sides and in both directions, and on the track") {
  int begun[racing_car::kGates] = {};
  float widest[2] = {0, 0}, fastest = 0;
  for (std::uint32_t episode = 0; episode < 3000; episode++) {
    StateOf<float> state;
    reset(Generic{}, RacingCar<float>{}, {}, state, {9, Purpose::environment_reset, episode});
    const auto position = racing_car::track_position(state.x_m, state.y_m);
    CHECK(position.clearance_m > 0.4f);
    CHECK(std::abs(state.ahead_x * state.ahead_x + state.ahead_y * state.ahead_y - 1) < 1e-6f);
    const auto& track = racing_car::kTrack<float>;
    for (int i = 0; i < racing_car::kGates; i++) {
      if (state.way_m != track.begin_m[i]) continue;
      begun[i]++;
      const float aside = (state.y_m - track.center[i].y) * track.gate[i].normal_x -
                          (state.x_m - track.center[i].x) * track.gate[i].normal_y;
      widest[aside > 0] = std::fmax(widest[aside > 0], std::abs(aside));
    }
    fastest = std::fmax(fastest, state.speed_m_s);
  }
  for (const int count : begun) CHECK((count > 10 && count < 90));
  for (const float aside : widest) CHECK((aside > 0.195f && aside < 0.2001f));
  CHECK((fastest > 2.98f && fastest < 3.0f));
}

TEST_CASE("what the racing car does is known") {
  CHECK(detail::behavior_hash<RacingCar<float>>() == 117616981u);  // as in test_behavior.cpp
}
