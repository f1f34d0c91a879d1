// The quadrotor in a steady wind: what an episode draws, what the wind does to it, against closed
// forms, and that without one nothing differs from the quadrotor.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "quadrotor_episode.h"
#include "rltools/rl/environments/windy_quadrotor.h"
#include "rltools/rl/fingerprint.h"

using namespace rlt;

namespace {

using Windy = WindyQuadrotor<float>;
using WindyTick = WindyQuadrotor<float, 1, 1>;
static_assert(kIsKept<EnvironmentContract<Windy>> && kIsKept<EnvironmentContract<WindyTick>>);

template <class E>
E in_wind(float wind_m_s2) {
  E environment = calm<E>();
  environment.settings.environment.wind_m_s2 = wind_m_s2;
  return environment;
}
float strength(const float* wind) { return std::hypot(wind[0], wind[1]); }

}  // namespace

TEST_CASE("a wind is horizontal, from any side, evenly strong up to the setting") {
  constexpr int kCount = 2000;
  double sum = 0.0;
  int quadrant[4] = {}, strong = 0;
  for (std::uint32_t number = 0; number < kCount; number++) {
    const Episode<Windy> episode(in_wind<Windy>(4.0f), number);
    const float* wind = episode.parameters.wind_m_s2;
    CHECK(wind[2] == 0.0f);
    CHECK(strength(wind) <= 4.0f);
    sum += static_cast<double>(strength(wind));
    strong += strength(wind) > 3.0f;
    quadrant[(wind[0] > 0.0f ? 1 : 0) + (wind[1] > 0.0f ? 2 : 0)]++;
    for (int i = 0; i < 3; i++) CHECK(episode.state.gust_m_s2[i] == wind[i]);
  }
  CHECK(sum / kCount == doctest::Approx(2.0).epsilon(0.03));
  CHECK(strong == doctest::Approx(kCount / 4).epsilon(0.1));
  for (const int count : quadrant) CHECK(count == doctest::Approx(kCount / 4).epsilon(0.15));
}

TEST_CASE_TEMPLATE("a level drone without drag goes a t^2 / 2", E, Windy, WindyTick) {
  E environment = in_wind<E>(4.0f);
  Episode<E> episode(environment, 5);
  const float* wind = episode.parameters.wind_m_s2;
  REQUIRE(strength(wind) > 0.5f);
  const float step_s = 0.002f * static_cast<float>(E::kTicksPerStep);
  const int steps = static_cast<int>(0.8f / step_s + 0.5f);
  for (int i = 0; i < steps; i++) CHECK_FALSE(episode.hover().terminated);
  for (int axis = 0; axis < 2; axis++) {
    CHECK(episode.state.velocity_m_s[axis] == doctest::Approx(0.8f * wind[axis]).epsilon(1e-4));
    CHECK(episode.state.position_m[axis] == doctest::Approx(0.32f * wind[axis]).epsilon(1e-4));
    CHECK(episode.state.gust_m_s2[axis] == doctest::Approx(wind[axis]).epsilon(1e-4));
  }
}

TEST_CASE("with drag it comes to a speed of m a / drag: that of the air") {
  WindyTick environment = in_wind<WindyTick>(1.0f);
  environment.settings.airframe = 4;  // crazyflie-cf21: 0.01471782 N s/m, 0.0319 kg
  environment.settings.limit_position = 5.0f;
  Episode<WindyTick> episode(environment, 3);
  const float* wind = episode.parameters.wind_m_s2;
  const double rate = 0.01471782 / 0.0319, seconds = 2.0;
  for (int i = 0; i < 1000; i++) CHECK_FALSE(episode.hover().terminated);
  for (int axis = 0; axis < 2; axis++) {
    const double expected =
        static_cast<double>(wind[axis]) / rate * (1.0 - std::exp(-rate * seconds));
    CHECK(static_cast<double>(episode.state.velocity_m_s[axis]) ==
          doctest::Approx(expected).epsilon(1e-3));
  }
}

TEST_CASE("gusts vary about the wind by the stated deviation") {
  WindyTick environment = in_wind<WindyTick>(4.0f);
  environment.settings.gust_m_s2 = 0.3f;
  environment.settings.gust_s = 0.05f;
  environment.settings.limit_position = 5.0f;
  double sum = 0.0, square = 0.0;
  constexpr int kEpisodes = 40, kSteps = 250;
  for (std::uint32_t number = 0; number < kEpisodes; number++) {
    Episode<WindyTick> episode(environment, number);
    for (int i = 0; i < kSteps; i++) {
      episode.hover();
      const auto gust = static_cast<double>(episode.state.gust_m_s2[0]) -
                        static_cast<double>(episode.parameters.wind_m_s2[0]);
      sum += gust;
      square += gust * gust;
    }
  }
  CHECK(std::fabs(sum / (kEpisodes * kSteps)) < 0.03);
  CHECK(std::sqrt(square / (kEpisodes * kSteps)) == doctest::Approx(0.3).epsilon(0.1));
}

TEST_CASE("without a wind every bit is the quadrotor's") {
  using Calm = QuadrotorTick<float>;
  for (const float gust : {0.0f, 0.3f}) {
    WindyTick windy = in_wind<WindyTick>(0.0f);
    Calm calm_one;
    for (quadrotor::Settings* settings :
         {static_cast<quadrotor::Settings*>(&windy.settings), &calm_one.settings}) {
      settings->airframe = quadrotor::kAnyCrazyflie;
      settings->start_share = 1.0f;
      settings->gust_m_s2 = gust;
      settings->noise = 1.0f;
    }
    for (std::uint32_t number = 0; number < 5; number++) {
      Episode<WindyTick> one(windy, number);
      Episode<Calm> other(calm_one, number);
      for (int i = 0; i < 50; i++) {
        CHECK(one.see() == other.see());
        one.take({0.1f, 0.2f, -0.1f, 0.0f});
        other.take({0.1f, 0.2f, -0.1f, 0.0f});
        CHECK(std::memcmp(one.state.gust_m_s2, other.state.gust_m_s2, 12) == 0);
        CHECK(std::memcmp(one.state.position_m, other.state.position_m, 12) == 0);
      }
    }
  }
}

TEST_CASE("its settings are the quadrotor's, and the wind behind them; its probes have one") {
  using Settings = Windy::Settings;
  constexpr int kWind = quadrotor::Settings::kCount;
  static_assert(Settings::kCount == kWind + 1);
  CHECK(std::strcmp(Settings::kInfo[kWind].name, "wind_m_s2") == 0);
  CHECK(std::strcmp(Settings::kInfo[0].name, "airframe") == 0);
  Settings settings;
  CHECK(settings.set_bits(kWind, detail::to_bits(2.5f)));
  CHECK(settings.environment.wind_m_s2 == 2.5f);
  CHECK_FALSE(settings.set_bits(kWind, detail::to_bits(-1.0f)));
  CHECK(settings.get_bits(kWind) == detail::to_bits(2.5f));
  for (int probe = 0; probe < Windy::kProbes; probe++) {
    CHECK(Windy::probe_settings(probe).environment.wind_m_s2 > 0.0f);
  }
  // Where this number changes, runs from before do not go on.
  CHECK(detail::behavior_hash<Windy>() == 3139542171u);
}
