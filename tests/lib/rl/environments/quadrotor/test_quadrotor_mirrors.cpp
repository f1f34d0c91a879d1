// A quadrotor seen in its mirrors flies as one: what is stepped and observed of a mirrored state
// with mirrored actions is the mirrored rest of the flight.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "quadrotor_episode.h"
#include "rltools/rl/environments/with_action_history.h"

using namespace rlt;

namespace {

using Seen = WithActionHistory<Quadrotor<float, 10, 2>, 3>;

// By hand, from what a mirror does to vectors and rotations, and from where the rotors are: the
// elements along the normal of the mirror's plane, axis 0 or 1.
struct Mirror {
  int normal;
  int rotor(int r) const {
    static constexpr bool kFront[] = {true, false, false, true};
    static constexpr bool kLeft[] = {false, false, true, true};
    for (int other = 0; other < 4; other++) {
      const bool same_front = kFront[other] == kFront[r], same_left = kLeft[other] == kLeft[r];
      if (same_front == (normal == 1) && same_left == (normal == 0)) return other;
    }
    return -1;
  }
  void vector(float (&v)[3]) const { v[normal] = -v[normal]; }
  void rotation(float* v) const {
    for (int i = 0; i < 3; i++) v[i] = i == normal ? v[i] : -v[i];
  }
  template <class Values>
  void rotors(Values& values, int offset = 0) const {
    const float before[4] = {values[offset], values[offset + 1], values[offset + 2],
                             values[offset + 3]};
    for (int r = 0; r < 4; r++) values[offset + rotor(r)] = before[r];
  }
  void state(Seen::State& s) const {
    vector(s.position_m);
    vector(s.velocity_m_s);
    vector(s.gust_m_s2);
    vector(s.target_position_m);
    vector(s.target_velocity_m_s);
    rotation(s.attitude + 1);
    rotation(s.angular_velocity_rad_s);
    rotors(s.rotor_speed);
    rotors(s.last_action);
    for (int i = 0; i < 3; i++) rotors(s.last_actions, 4 * i);
    for (int i = 0; i < quadrotor::held_actions(10); i++) rotors(s.held_setpoint, 4 * i);
  }
};

}  // namespace

TEST_CASE("quadrotor: in its mirrors it is a quadrotor, whatever the airframe") {
  Seen environment;
  environment.settings = quadrotor::TrainingSettings{};
  environment.settings.gust_m_s2 = 0.0f;  // is drawn in the world, not in its image
  environment.settings.limit_rate = 100.0f;
  for (const int normal : {1, 0}) {  // left and right is mirror 0
    const Mirror mirror{normal};
    const int number = 1 - normal;
    for (std::uint32_t table = 1; table <= quadrotor::kTableCount; table++) {
      CAPTURE(normal);
      CAPTURE(table);
      environment.settings.airframe = table;
      Episode<Seen> flight(environment, table);
      flight.state.gust_m_s2[0] = 1.5f;
      flight.state.gust_m_s2[1] = -0.7f;
      flight.parameters.gust_keeps = 1.0f;
      Episode<Seen> image = flight;
      mirror.state(image.state);
      for (std::uint32_t tick = 0; tick < 15; tick++) {
        std::vector<float> action(4);
        fill_uniform(Generic{}, RandomStream{1, Purpose::exploration, tick, table}, action.data(),
                     4, -1.0f, 1.0f);
        std::vector<float> image_action(4);
        for (int r = 0; r < 4; r++) {
          const Mirrored to = Seen::mirrored_action(number, r);
          REQUIRE(to.element == mirror.rotor(r));
          REQUIRE(to.sign == 1);
          image_action[static_cast<std::size_t>(to.element)] = action[static_cast<std::size_t>(r)];
        }
        const auto result = flight.take(action);
        const auto image_result = image.take(image_action);
        CHECK(image_result.reward == doctest::Approx(result.reward).epsilon(1e-4).scale(1.0));
        CHECK(image_result.terminated == result.terminated);
        const auto seen = flight.see(), image_seen = image.see();
        for (int i = 0; i < kCriticObservationDim<Seen>; i++) {
          CAPTURE(i);
          const Mirrored to = Seen::mirrored_observation(number, i);
          CHECK(image_seen[static_cast<std::size_t>(to.element)] ==
                doctest::Approx(static_cast<float>(to.sign) * seen[static_cast<std::size_t>(i)])
                    .epsilon(1e-3)
                    .scale(1.0));
        }
      }
    }
  }
}
