// What a policy may be handed: bounds, what is not known, a state out of an observation, and in a
// deployment the bounds of the policy that acts.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "entry_images.h"
#include "flash_model.h"
#include "policy_networks.h"
#include "rltools/devices/host.h"
#include "rltools/policy/deployment.h"

using namespace rlt;
using namespace policy_networks;

namespace {

constexpr EntryEnvelope kBounds = {5.0f, 2.0f, 0.5f, 3.0f, 1.5f};
constexpr EntryState kAtBounds = {5.0f, 2.0f, 0.5f, 3.0f, 1.5f};
constexpr const char* kEnters = "may be handed over";

std::string refusal(const EntryState& state) {
  return entry_obstacle_text(entry_obstacle(kBounds, state));
}

float above(float value) { return std::nextafterf(value, 100.0f); }

}  // namespace

TEST_CASE("what is equal to a bound enters, and the next number does not, by name") {
  CHECK(refusal(kAtBounds) == kEnters);
  EntryState state = kAtBounds;
  state.speed_m_s = above(5.0f);
  CHECK(refusal(state) == "too fast for this policy");
  state = kAtBounds;
  state.offset_m = above(2.0f);
  CHECK(refusal(state) == "target too far away for this policy");
  state = kAtBounds;
  state.tilt_rad = above(0.5f);
  CHECK(refusal(state) == "tilted too far for this policy");
  state = kAtBounds;
  state.rate_rad_s = above(3.0f);
  CHECK(refusal(state) == "turns too fast for this policy");
  state = kAtBounds;
  state.height_m = std::nextafterf(1.5f, 0.0f);
  CHECK(refusal(state) == "too low for this policy");
}

TEST_CASE("less height is needed the less of the bounds is used") {
  const auto needed = [](const EntryState& state) { return height_needed(kBounds, state); };
  CHECK(needed({0, 0, 0, 0, 9}) == 0.5f);
  CHECK(needed(kAtBounds) == 1.5f);
  CHECK(needed({2.5f, 0, 0, 0, 9}) == 1.0f);
  CHECK(needed({2.5f, 1.5f, 0, 0, 9}) == 1.25f);
  CHECK(refusal({2.5f, 0, 0, 0, 1.0f}) == kEnters);
  CHECK(refusal({2.5f, 0, 0, 0, 0.99f}) == "too low for this policy");
  // A bound of 0, and a height below the margin.
  CHECK(entry_obstacle({0, 1, 0, 1, 0.25f}, {0, 1, 0, 1, 0.25f}) == EntryObstacle::none);
  CHECK(entry_obstacle({0, 1, 0, 1, 0.25f}, {0, 0, 0, 0, 0.2f}) != EntryObstacle::none);
}

TEST_CASE("what is not a number refuses, but for a height that nothing measures") {
  const float unknown[] = {math::kQuietNan, math::kInfinity, -math::kInfinity};
  for (const float value : unknown) {
    CHECK(refusal({value, 0, 0, 0, 9}) == "a measurement is not finite");
    CHECK(refusal({0, value, 0, 0, 9}) == "a measurement is not finite");
    CHECK(refusal({0, 0, value, 0, 9}) == "a measurement is not finite");
    CHECK(refusal({0, 0, 0, value, 9}) == "a measurement is not finite");
  }
  CHECK(refusal({0, 0, 0, 0, math::kQuietNan}) == kEnters);
  CHECK(refusal({0, 0, 0, 0, -math::kInfinity}) == "too low for this policy");
  CHECK(entry_obstacle({math::kQuietNan, 1, 1, 1, 0}, {0, 0, 0, 0, 9}) != EntryObstacle::none);
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
      CHECK(state.height_m == -8.0f);  // the target's, which is 12 m lower
      CHECK(std::fabs(double(state.tilt_rad) - tilt * pi / 180.0) < 4e-4);
    }
  }
}

TEST_CASE("in a deployment it is what the image of the policy that acts states") {
  using Flash = flash_model::Flash<256, 4>;
  using Deployment = PolicyDeployment<Host, Flash, 2, 64>;
  const auto with = [](const EntryEnvelope& entry, std::uint32_t seed) {
    return entry_images::with_entry(small_image(Host{}, seed), entry);
  };
  const Bytes built_in = with({1, 1, 1, 1, 1}, 1), first = with({2, 2, 2, 2, 2}, 2);
  const Bytes second = small_image(Host{}, 3);  // which states none
  Flash flash(2 + 2 * 8);
  Deployment deployment(Host{}, flash, policy_contract<Contract>());
  const auto speed = [&] { return deployment.entry_envelope().speed_m_s; };
  const auto stage = [&](const Bytes& image) {
    REQUIRE(deployment.stage() == SlotError::none);
    const auto bytes = static_cast<std::uint32_t>(image.size());
    REQUIRE(deployment.write(0, image.data(), bytes) == SlotError::none);
    REQUIRE(deployment.finish().accepted());
  };
  CHECK(speed() == kEntryAtRest.speed_m_s);  // no policy
  deployment.begin(built_in.data(), static_cast<std::uint32_t>(built_in.size()));
  CHECK(speed() == 1.0f);
  stage(first);
  CHECK(speed() == 1.0f);
  REQUIRE(deployment.start_trial(0, 1000) == SlotError::none);
  CHECK(speed() == 2.0f);
  deployment.poll(1000);  // nobody confirmed it
  CHECK(speed() == 1.0f);
  stage(first);
  REQUIRE(deployment.start_trial(2000, 1000) == SlotError::none);
  REQUIRE(deployment.confirm(2000) == SlotError::none);
  stage(second);
  REQUIRE(deployment.start_trial(3000, 1000) == SlotError::none);
  CHECK(speed() == kEntryAtRest.speed_m_s);
  REQUIRE(deployment.confirm(3000) == SlotError::none);
  REQUIRE(deployment.roll_back() == SlotError::none);
  CHECK(speed() == 2.0f);
  const EntryEnvelope entry = deployment.entry_envelope();
  CHECK(entry.height_m == 2.0f);
  CHECK(entry.tilt_rad == 2.0f);
}
