// The quadrotor's task: what an episode begins with, what disturbs it, what it is to do and what it
// earns. The dynamics have tests of their own.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "quadrotor_episode.h"
#include "rltools/core/crc32.h"
#include "rltools/rl/environments/with_action_history.h"

using namespace rlt;

namespace {

static_assert(kIsKept<EnvironmentContract<Flight>> && kIsKept<EnvironmentContract<Tick>>);
static_assert(kIsKept<EnvironmentContract<WithActionHistory<Flight, 4>>>);
static_assert(kHasSettings<Flight> && kSamplesParameters<Flight>);

}  // namespace

TEST_CASE_TEMPLATE("with hover's thrusts nothing moves, on every airframe", E, Flight, Tick) {
  E environment = calm<E>();
  for (std::uint32_t table = 0; table <= quadrotor::kTableCount; table++) {
    environment.settings.airframe = table;
    Episode<E> episode(environment);
    CHECK(episode.parameters.table == table);
    for (int i = 0; i < 500; i++) {
      const auto result = episode.hover();
      CHECK_FALSE(result.terminated);
      CHECK(result.reward == doctest::Approx(environment.settings.reward_alive).epsilon(0.02));
    }
    CHECK(norm(episode.state.position_m) < 1e-2f);
    CHECK(episode.state.attitude[0] == doctest::Approx(1.0f));
  }
}

TEST_CASE("a policy sees errors, a unit quaternion with w >= 0, and rates") {
  Flight environment;
  environment.settings.start_share = 1.0f;
  environment.settings.start_tilt = 180.0f;
  for (std::uint32_t number = 0; number < 50; number++) {
    Episode<Flight> episode(environment, number);
    const float sign = number % 2 == 0 ? 1.0f : -1.0f;
    for (float& element : episode.state.attitude) element *= sign;  // of the two, the same attitude
    const auto seen = episode.see();
    const auto& state = episode.state;
    float length = 0.0f;
    for (int i = 0; i < 3; i++) {
      CHECK(seen[i] == state.position_m[i]);
      CHECK(seen[3 + i] == state.velocity_m_s[i]);
      CHECK(seen[10 + i] == state.angular_velocity_rad_s[i]);
      CHECK(std::fabs(seen[i]) <= environment.settings.start_position);
      CHECK(std::fabs(seen[3 + i]) <= environment.settings.start_velocity);
      CHECK(std::fabs(seen[10 + i]) <= environment.settings.start_rate);
    }
    for (int i = 0; i < 4; i++) {
      CHECK(seen[6 + i] == sign * state.attitude[i]);
      CHECK(seen[13 + i] == state.rotor_speed[i]);  // critics alone
      length += seen[6 + i] * seen[6 + i];
    }
    CHECK(length == doctest::Approx(1.0f));
    CHECK(seen[6] >= 0.0f);
  }
  Episode<Flight> rounded(environment, 0);  // as rounding leaves it, beyond 1
  const float most = std::nextafter(1.0f, 2.0f);
  for (const float q : {most, -most}) {
    for (int i = 0; i < 4; i++) rounded.state.attitude[i] = i == 1 ? q : 0.0f;
    CHECK(rounded.see()[7] == (q > 0 ? 1.0f : -1.0f));
  }
  environment.settings.start_tilt = 30.0f;
  for (std::uint32_t number = 0; number < 50; number++) {
    Episode<Flight> episode(environment, number);
    CHECK(episode.state.attitude[0] >= std::cos(0.5f * 30.0f * 3.14159265f / 180.0f) - 1e-5f);
  }
}

TEST_CASE("the sensors' noise has the stated deviations and touches nothing else") {
  Flight environment = calm<Flight>();
  environment.settings.noise = 2.0f;
  constexpr int kCount = 4000;
  double square[kCriticObservationDim<Flight>] = {};
  Episode<Flight> episode(environment);
  const auto quiet = Episode<Flight>(calm<Flight>()).see();
  for (int i = 0; i < kCount; i++) {
    episode.steps = static_cast<std::uint32_t>(i);
    const auto seen = episode.see();
    for (std::size_t k = 0; k < seen.size(); k++) {
      const double difference = static_cast<double>(seen[k]) - static_cast<double>(quiet[k]);
      square[k] += difference * difference;
    }
  }
  const auto deviation = [&](int k) { return std::sqrt(square[k] / kCount); };
  for (int k = 0; k < 3; k++) {
    CHECK(deviation(k) == doctest::Approx(0.004).epsilon(0.1));
    CHECK(deviation(3 + k) == doctest::Approx(0.04).epsilon(0.1));
    CHECK(deviation(7 + k) == doctest::Approx(0.005).epsilon(0.1));  // half of the angle
    CHECK(deviation(10 + k) == doctest::Approx(0.1).epsilon(0.1));
  }
  for (int k = 13; k < kCriticObservationDim<Flight>; k++) CHECK(deviation(k) == 0.0);
}

// An executor takes what is beyond a channel's range for a fault.
TEST_CASE("an attitude that is observed with noise is a rotation") {
  Flight environment = calm<Flight>();
  environment.settings.noise = 10.0f;
  Episode<Flight> episode(environment);
  for (int i = 0; i < 4000; i++) {
    episode.steps = static_cast<std::uint32_t>(i);
    const float half = 0.01f * static_cast<float>(i % 10);
    episode.state.attitude[0] = std::cos(half);
    episode.state.attitude[1] = std::sin(half);
    const auto seen = episode.see();
    double square = 0.0;
    for (std::size_t k = 6; k < 10; k++) {
      REQUIRE(seen[k] >= Flight::kObservations[k].minimum);
      REQUIRE(seen[k] <= Flight::kObservations[k].maximum);
      square += static_cast<double>(seen[k]) * static_cast<double>(seen[k]);
    }
    REQUIRE(square == doctest::Approx(1.0).epsilon(1e-6));
  }
}

TEST_CASE("a command reaches the rotors after the episode's latency, in ticks of 2 ms") {
  Tick environment = calm<Tick>();
  environment.settings.latency_ms = 20.0f;
  std::vector<int> seen(12);
  for (std::uint32_t number = 0; number < 200; number++) {
    Episode<Tick> episode(environment, number);
    const float before = episode.state.rotor_speed[0];
    std::uint32_t ticks = 0;
    while (std::fabs(episode.state.rotor_speed[0] - before) < 1e-4f) {
      episode.take({1.0f, 1.0f, 1.0f, 1.0f});
      ticks++;
      REQUIRE(ticks < 20);
    }
    CHECK(ticks == episode.parameters.latency + 1);
    seen[episode.parameters.latency]++;
  }
  for (int latency = 0; latency <= 10; latency++) CHECK(seen[latency] > 0);
  CHECK(seen[11] == 0);
}

TEST_CASE("in training the latency is a number of the integrator's steps") {
  Flight environment = calm<Flight>();
  environment.settings.latency_ms = 20.0f;
  std::vector<int> seen(6);
  for (std::uint32_t number = 0; number < 200; number++) {
    Episode<Flight> episode(environment, number);
    seen[episode.parameters.latency]++;
    const float before = episode.state.rotor_speed[0];
    episode.take({1.0f, 1.0f, 1.0f, 1.0f});
    const double acts_s = (8.0 - episode.parameters.latency) * 0.005;
    const double left = std::exp(-acts_s / 0.15);  // of the table's lag
    CHECK(episode.state.rotor_speed[0] == doctest::Approx(1.0 + (before - 1.0) * left));
  }
  for (int latency = 0; latency <= 4; latency++) CHECK(seen[latency] > 0);
  CHECK(seen[5] == 0);
}

TEST_CASE("a command that is lost leaves the last one in force") {
  Tick environment = calm<Tick>();
  environment.settings.loss = 1.0f;
  Episode<Tick> episode(environment);
  const float before = episode.state.rotor_speed[0];
  for (int i = 0; i < 50; i++) episode.take({1.0f, 1.0f, 1.0f, 1.0f});
  CHECK(episode.state.rotor_speed[0] == doctest::Approx(before));
}

TEST_CASE("gusts have the stated deviation and time, pushes the stated size and rate") {
  Flight environment = calm<Flight>();
  environment.settings.gust_m_s2 = 1.5f;
  environment.settings.limit_position = 5.0f;
  double square = 0, product = 0;
  int count = 0;
  for (std::uint32_t number = 0; number < 400; number++) {
    Episode<Flight> episode(environment, number);
    for (int i = 0; i < 50; i++) {
      const float before = episode.state.gust_m_s2[1];
      episode.hover();
      square += static_cast<double>(before) * static_cast<double>(before);
      product += static_cast<double>(before) * static_cast<double>(episode.state.gust_m_s2[1]);
      count++;
    }
  }
  CHECK(std::sqrt(square / count) == doctest::Approx(1.5).epsilon(0.1));
  CHECK(product / square == doctest::Approx(std::exp(-0.04 / 0.5)).epsilon(0.01));

  environment = calm<Flight>();
  environment.settings.push_m_s = 0.5f;
  environment.settings.push_every_s = 0.2f;
  int pushes = 0;
  const int kSteps = 5;
  for (std::uint32_t number = 0; number < 500; number++) {
    Episode<Flight> episode(environment, number);
    for (int i = 0; i < kSteps; i++) {
      float before[3], change[3];
      std::memcpy(before, episode.state.velocity_m_s, sizeof before);
      episode.hover();
      for (int k = 0; k < 3; k++) change[k] = episode.state.velocity_m_s[k] - before[k];
      if (norm(change) < 0.1f) continue;
      pushes++;
      CHECK(norm(change) == doctest::Approx(0.5f).epsilon(0.05));
    }
  }
  CHECK(pushes == doctest::Approx(500.0 * kSteps * 0.04 / 0.2).epsilon(0.15));
}

TEST_CASE("the dynamics of episodes differ by the stated spread, and tables are drawn alike") {
  Flight environment;
  environment.settings.airframe = quadrotor::kAnyCrazyflie;
  std::vector<int> tables(quadrotor::kTableCount + 1);
  for (std::uint32_t number = 0; number < 1000; number++) {
    tables[Episode<Flight>(environment, number).parameters.table]++;
  }
  for (int table = 1; table <= 5; table++) CHECK(tables[table] > 150);
  CHECK(tables[0] + tables[6] + tables[7] == 0);

  environment.settings.airframe = 1;
  environment.settings.spread = 0.2f;
  environment.settings.rotor_spread = 0.1f;
  float least = 1.0f, most = 0.0f, least_gain = 1.0f, most_gain = 1.0f;
  for (std::uint32_t number = 0; number < 1000; number++) {
    const auto parameters = Episode<Flight>(environment, number).parameters;
    least = std::fmin(least, parameters.mass_kg);
    most = std::fmax(most, parameters.mass_kg);
    CHECK(parameters.gain[0] != parameters.gain[1]);
    CHECK(parameters.gain[2] != parameters.gain[3]);
    for (const float gain : parameters.gain) {
      least_gain = std::fmin(least_gain, gain);
      most_gain = std::fmax(most_gain, gain);
    }
  }
  CHECK(least >= 0.027f * 0.8f);
  CHECK(least < 0.027f * 0.81f);
  CHECK(most <= 0.027f * 1.2001f);
  CHECK(most > 0.027f * 1.19f);
  CHECK(least_gain == doctest::Approx(0.9f).epsilon(0.01));
  CHECK(most_gain == doctest::Approx(1.1f).epsilon(0.01));
}

TEST_CASE("the settings' own values are an airframe too") {
  Flight environment = calm<Flight>();
  environment.settings.airframe = 0;
  environment.settings.mass_kg = 0.05f;
  environment.settings.thrust_2 = 0.3f;
  Episode<Flight> episode(environment);
  CHECK(episode.parameters.mass_kg == 0.05f);
  CHECK(episode.parameters.thrust_2 == 0.3f);
  CHECK(episode.parameters.hover_fraction == doctest::Approx(0.05 * 9.81 / 4 / 0.3));
}

TEST_CASE("experiments train with the settings of their published runs") {
  // Another number is another task under the same name: the runs of before are then not these.
  const quadrotor::TrainingSettings settings;
  CHECK(crc32(&settings, sizeof(settings)) == 3209770597u);
}

TEST_CASE("limits end an episode and cost what they say") {
  const auto ends = [](void (*break_it)(Flight::State&)) {
    Flight environment = calm<Flight>();
    environment.settings.limit_position = 1.0f;
    environment.settings.limit_velocity = 2.0f;
    environment.settings.limit_rate = 3.0f;
    environment.settings.cost_limit = 0.0f;
    Episode<Flight> free(environment);
    environment.settings.cost_limit = 7.0f;
    Episode<Flight> costly(environment);
    break_it(free.state);
    break_it(costly.state);
    const auto without = free.hover(), with = costly.hover();
    CHECK(without.terminated == with.terminated);
    CHECK(without.reward - with.reward == doctest::Approx(with.terminated ? 7.0f : 0.0f));
    return with.terminated;
  };
  CHECK_FALSE(ends([](Flight::State&) {}));
  CHECK_FALSE(ends([](Flight::State& s) { s.position_m[1] = 0.9f; }));
  CHECK(ends([](Flight::State& s) { s.position_m[1] = -1.1f; }));
  CHECK(ends([](Flight::State& s) { s.velocity_m_s[0] = 2.1f; }));
  CHECK(ends([](Flight::State& s) { s.angular_velocity_rad_s[2] = -3.1f; }));
  Episode<Flight> undefined(calm<Flight>());  // a reward that is not finite is a fault of the run
  undefined.state.position_m[0] = math::kQuietNan;
  CHECK(std::isnan(undefined.hover().reward));
}

TEST_CASE("every cost is taken from the reward by its weight") {
  const auto reward = [](float Flight::Settings::* weight, float value, int steps) {
    Flight environment = calm<Flight>();
    auto& s = environment.settings;
    s.reward_alive = 1.0f;
    s.cost_position = s.cost_velocity = s.cost_tilt = s.cost_yaw = s.cost_rate = 0.0f;
    s.cost_height = s.cost_change = 0.0f;
    s.limit_velocity = 20.0f;
    if (weight != nullptr) s.*weight = value;
    Episode<Flight> episode(environment);
    episode.state.position_m[0] = 0.5f;
    episode.state.position_m[2] = -0.3f;
    episode.state.velocity_m_s[2] = 1.0f;
    const float half = 0.5f;  // of a turn of 1 rad about the diagonal of x and z
    episode.state.attitude[0] = std::cos(half);
    episode.state.attitude[1] = episode.state.attitude[3] = std::sin(half) / std::sqrt(2.0f);
    episode.state.angular_velocity_rad_s[1] = 2.0f;
    StepResult<float> result{};
    for (int i = 0; i < steps; i++) result = episode.hover();
    return result.reward;
  };
  const float base = reward(nullptr, 0.0f, 1);
  CHECK(base == 1.0f);
  for (const auto weight : {&Flight::Settings::cost_position, &Flight::Settings::cost_height,
                            &Flight::Settings::cost_velocity, &Flight::Settings::cost_tilt,
                            &Flight::Settings::cost_yaw, &Flight::Settings::cost_rate}) {
    const float once = base - reward(weight, 1.0f, 1);
    CHECK(once > 0.0f);
    CHECK(base - reward(weight, 2.0f, 1) == doctest::Approx(2.0f * once));
  }
  CHECK(base - reward(&Flight::Settings::cost_position, 1.0f, 1) ==
        doctest::Approx(std::hypot(0.5, 0.3)).epsilon(0.02));
  CHECK(base - reward(&Flight::Settings::cost_height, 1.0f, 1) ==
        doctest::Approx(0.3).epsilon(0.1));
  CHECK(base - reward(&Flight::Settings::cost_rate, 1.0f, 1) == doctest::Approx(2.0).epsilon(0.02));
  CHECK(reward(&Flight::Settings::cost_change, 1.0f, 2) == doctest::Approx(1.0));  // no change
  Episode<Flight> still(calm<Flight>()), jump(calm<Flight>());
  const float before = 2.0f * jump.parameters.hover_fraction - 1.0f;
  const float by = still.hover().reward -
                   jump.take({before + 0.4f, before - 0.4f, before + 0.4f, before - 0.4f}).reward;
  CHECK(by == doctest::Approx(0.1f * 0.16f).epsilon(0.3));
}

TEST_CASE("waypoints change at their time and stay within their bounds") {
  Flight environment = calm<Flight>();
  environment.settings.task = 1;
  environment.settings.target_m = 0.7f;
  environment.settings.target_s = 0.4f;
  environment.settings.limit_position = 5.0f;
  int changes = 0;
  for (std::uint32_t number = 0; number < 10; number++) {
    Episode<Flight> episode(environment, number);
    for (int i = 1; i <= 105; i++) {
      float before[3];
      std::memcpy(before, episode.state.target_position_m, sizeof before);
      episode.hover();
      const auto& target = episode.state.target_position_m;
      if (std::memcmp(before, target, sizeof before) == 0) continue;
      changes++;
      CHECK(i % 10 <= 1);
      for (const float value : target) CHECK(std::fabs(value) <= 0.7f);
      CHECK(episode.see()[0] == episode.state.position_m[0] - target[0]);
    }
  }
  CHECK(changes == 100);
}

TEST_CASE("the figure eight is a closed curve, and its velocity that of its position") {
  Tick environment = calm<Tick>();
  environment.settings.task = 2;
  environment.settings.target_m = 1.0f;
  environment.settings.target_s = 4.0f;
  environment.settings.limit_position = 5.0f;
  Episode<Tick> episode(environment);
  float previous[3] = {}, furthest = 0.0f;
  for (int tick = 0; tick < 2000; tick++) {
    std::memcpy(previous, episode.state.target_position_m, sizeof previous);
    float velocity[3];
    std::memcpy(velocity, episode.state.target_velocity_m_s, sizeof velocity);
    episode.hover();
    for (int i = 0; i < 3; i++) {
      const float moved = (episode.state.target_position_m[i] - previous[i]) / 0.002f;
      const float mean = 0.5f * (velocity[i] + episode.state.target_velocity_m_s[i]);
      CHECK(moved == doctest::Approx(mean).epsilon(0.02).scale(1.0));
    }
    furthest = std::fmax(furthest, std::fabs(episode.state.target_position_m[0]));
    if (tick == 999) CHECK(norm(episode.state.target_position_m) < 0.01f);  // in the middle again
  }
  CHECK(norm(episode.state.target_position_m) < 0.01f);
  CHECK(furthest == doctest::Approx(1.0f).epsilon(0.01));
}
