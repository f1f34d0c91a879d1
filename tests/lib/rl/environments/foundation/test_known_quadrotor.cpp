// The quadrotor for a policy that knows its airframe: what its actions are to the rotors, and its
// mirrors.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "quadrotor_episode.h"
#include "rltools/rl/environments/foundation/known_quadrotor.h"
#include "rltools/rl/fingerprint.h"
#include "rltools/rl/symmetry/symmetry.h"

using namespace rlt;

namespace {

using Known = KnownQuadrotor<float>;
using Any = AnyQuadrotor<float>;
static_assert(kIsKept<EnvironmentContract<Known>>);
static_assert(detail::observations_mirror<Known>() && detail::actions_mirror<Known>());

template <class E>
E drawn() {
  E environment = calm<E>();
  environment.settings.environment.table_share = 0.0f;
  return environment;
}

}  // namespace

TEST_CASE(
    "zeros hover, lift goes from no thrust to the greatest, and turns are seen as asked for") {
  for (std::uint32_t number = 0; number < 30; number++) {
    CAPTURE(number);
    Episode<Known> still(drawn<Known>(), number);
    for (int i = 0; i < 50; i++) still.take({0, 0, 0, 0});
    CHECK(norm(still.state.position_m) < 1e-3f);
    float rotors[4];
    const auto translate = [&](const std::vector<float>& action) {
      translate_action(Generic{}, still.environment, still.parameters, action.data(), rotors);
    };
    translate({-1, 0, 0, 0});
    for (const float rotor : rotors) CHECK(rotor == doctest::Approx(-1.0f));
    translate({7, 0, 0, 0});  // is 1
    for (const float rotor : rotors) CHECK(rotor == doctest::Approx(1.0f));
    // About x, y and z, seen by the angular acceleration, and in the observation.
    for (std::size_t axis = 1; axis < 4; axis++) {
      CAPTURE(axis);
      Episode<Known> turning(drawn<Known>(), number);
      std::vector<float> action(4, 0.0f);
      action[axis] = 0.05f;
      for (int i = 0; i < 5; i++) turning.take(action);
      for (std::size_t other = 0; other < 3; other++) {
        const float rate = turning.state.angular_velocity_rad_s[other];
        CHECK((other + 1 == axis ? rate > 0.0f : std::abs(rate) < 1e-4f));
      }
      const auto seen = turning.see();
      for (std::size_t i = 0; i < 4; i++) {
        const float asked_for = i == axis ? 0.05f : 0.0f;
        CHECK(seen[17 + i] == doctest::Approx(asked_for).epsilon(1e-3).scale(0.01));
        if (i != axis) CHECK(std::abs(seen[13 + i]) < 0.05f);  // lags differ, up and down
      }
      CHECK(seen[13 + axis] > 0.0f);
      CHECK(seen[13 + axis] <= 0.0501f);
    }
  }
}

TEST_CASE("its steps are those of the drone that nobody knows, with the translated action") {
  Episode<Known> known(drawn<Known>(), 3);
  Episode<Any> any(drawn<Any>(), 3);
  for (std::uint32_t tick = 0; tick < 30; tick++) {
    std::vector<float> action(4), rotors(4);
    fill_uniform(Generic{}, RandomStream{1, Purpose::exploration, tick}, action.data(), 4, -1.0f,
                 1.0f);
    translate_action(Generic{}, known.environment, known.parameters, action.data(), rotors.data());
    CHECK(known.take(action).reward == any.take(rotors).reward);
  }
  for (int i = 0; i < 3; i++) CHECK(known.state.position_m[i] == any.state.position_m[i]);
}

TEST_CASE("mirrored actions have mirrored effects") {
  // Of left and right: rotors 0 and 3, 1 and 2; of front and rear: 0 and 1, 2 and 3.
  const Known environment = drawn<Known>();
  const Episode<Known> flight(environment, 5);
  for (int mirror = 0; mirror < 2; mirror++) {
    const float action[4] = {0.1f, 0.2f, -0.05f, 0.03f};
    float image[4], rotors[4], image_rotors[4];
    for (int i = 0; i < 4; i++) {
      const Mirrored to = Known::mirrored_action(mirror, i);
      image[to.element] = static_cast<float>(to.sign) * action[i];
    }
    translate_action(Generic{}, environment, flight.parameters, static_cast<const float*>(action),
                     rotors);
    translate_action(Generic{}, environment, flight.parameters, static_cast<const float*>(image),
                     image_rotors);
    for (int r = 0; r < 4; r++) {
      CHECK(image_rotors[Any::mirrored_action(mirror, r).element] == doctest::Approx(rotors[r]));
    }
  }
}

TEST_CASE("what the quadrotors with any airframe do is known") {
  CHECK(detail::behavior_hash<Any>() == 1327746860u);  // as in test_behavior.cpp
  CHECK(detail::behavior_hash<AnyQuadrotor<float, 1, 1>>() == 1676662136u);
  CHECK(detail::behavior_hash<Known>() == 1586237202u);
}
