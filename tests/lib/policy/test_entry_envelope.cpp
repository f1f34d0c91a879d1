// What a policy may be handed: bounds, what is not known, and a state out of an observation.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "rltools/policy/entry_envelope.h"

using namespace rlt;

namespace {

constexpr EntryEnvelope kBounds = {5.0f, 2.0f, 0.5f, 3.0f, 1.5f};
constexpr EntryState kAtBounds = {5.0f, 2.0f, 0.5f, 3.0f, 1.5f};

std::string refusal(const EntryState& state) {
  const char* reason = entry_refusal(kBounds, state);
  return reason == nullptr ? "" : reason;
}

float next(float value) { return std::nextafterf(value, 100.0f); }

}  // namespace

TEST_CASE("what is equal to a bound enters, and the next number does not, by name") {
  CHECK(refusal(kAtBounds) == "");
  EntryState state = kAtBounds;
  state.speed_m_s = next(5.0f);
  CHECK(refusal(state) == "too fast for this policy");
  state = kAtBounds;
  state.offset_m = next(2.0f);
  CHECK(refusal(state) == "target too far away for this policy");
  state = kAtBounds;
  state.tilt_rad = next(0.5f);
  CHECK(refusal(state) == "tilted too far for this policy");
  state = kAtBounds;
  state.rate_rad_s = next(3.0f);
  CHECK(refusal(state) == "turns too fast for this policy");
  state = kAtBounds;
  state.height_m = std::nextafterf(1.5f, 0.0f);
  CHECK(refusal(state) == "too low for this policy");
}

TEST_CASE("what is not a number refuses, but for a height that nothing measures") {
  const float unknown[] = {math::kQuietNan, math::kInfinity, -math::kInfinity};
  for (const float value : unknown) {
    CHECK(refusal({value, 0, 0, 0, 9}) == "a measurement is not finite");
    CHECK(refusal({0, value, 0, 0, 9}) == "a measurement is not finite");
    CHECK(refusal({0, 0, value, 0, 9}) == "a measurement is not finite");
    CHECK(refusal({0, 0, 0, value, 9}) == "a measurement is not finite");
  }
  CHECK(refusal({0, 0, 0, 0, math::kQuietNan}) == "");
  CHECK(refusal({0, 0, 0, 0, -math::kInfinity}) == "too low for this policy");
  CHECK(entry_refusal({math::kQuietNan, 1, 1, 1, 0}, {0, 0, 0, 0, 9}) != nullptr);
}

TEST_CASE("the texts fit into PX4's messages") {
  for (int i = 0; i < kEntryObstacleCount; i++) {
    CHECK(std::string(entry_obstacle_text(static_cast<EntryObstacle>(i))).size() <= 38);
  }
}

TEST_CASE("a state out of an observation: lengths, and the angle from level whatever the yaw") {
  for (int yaw = -180; yaw <= 180; yaw += 30) {
    for (double tilt = 0.0; tilt <= 180.0; tilt += 0.5) {
      const double pi = std::acos(-1.0), half_yaw = yaw * pi / 360.0, half = tilt * pi / 360.0;
      const double about = 0.7;  // the axis of the tilt
      // (yaw about z) times (tilt about an axis in the plane)
      const double x = std::sin(half) * std::cos(about), y = std::sin(half) * std::sin(about);
      const double w = std::cos(half_yaw), z = std::sin(half_yaw), c = std::cos(half);
      const float observation[13] = {3,
                                     -4,
                                     12,
                                     1,
                                     2,
                                     -2,
                                     float(w * c),
                                     float(w * x - z * y),
                                     float(w * y + z * x),
                                     float(z * c),
                                     2,
                                     -3,
                                     6};
      const EntryState state = entry_state(observation, 4.0f);
      CHECK(state.speed_m_s == 3.0f);
      CHECK(state.offset_m == 13.0f);
      CHECK(state.rate_rad_s == 7.0f);
      CHECK(state.height_m == 4.0f);
      CHECK(std::fabs(double(state.tilt_rad) - tilt * pi / 180.0) < 4e-4);
    }
  }
}
