// Environments that show sums of what is observed: where they stand, what they are, and that a
// policy acts at a place by the same bits.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "flash_model.h"
#include "policy_networks.h"
#include "rltools/devices/host.h"
#include "rltools/policy/deployment.h"
#include "rltools/rl/environments/pendulum.h"
#include "rltools/rl/environments/quadrotor.h"
#include "rltools/rl/environments/with_action_history.h"
#include "rltools/rl/environments/with_sums.h"

namespace rlt {

// Its observations have no noise.
template <class T>
T exact_observation(const Pendulum<T>& environment, const typename Pendulum<T>::State& state,
                    int element) {
  T observation[Pendulum<T>::kObservationDim];
  observe(Generic{}, environment, {}, state, observation, RandomStream{0, Purpose::observation, 0});
  return observation[element];
}

}  // namespace rlt

using namespace rlt;

namespace {

using Flown = Quadrotor<float>;
using Summed = WithActionHistory<WithSums<Flown, 3>, 2>;
static_assert(EnvironmentContract<Summed>::kKept);
static_assert(Summed::kObservationDim == 13 + 3 + 8);

template <class E>
void begin(const E& environment, typename E::Parameters& parameters, typename E::State& state) {
  draw_parameters(Generic{}, environment, parameters, {3, Purpose::environment_parameters, 0});
  reset(Generic{}, environment, parameters, state, RandomStream{3, Purpose::environment_reset, 0});
}

}  // namespace

TEST_CASE("sums stand behind the observations and before past actions and what critics see") {
  CHECK(std::string(WithSums<Flown, 3>::kName) == "Quadrotor +sums");
  CHECK(std::string(Summed::kName) == "Quadrotor +sums +2 actions");
  CHECK(std::string(Summed::kObservations[13].name) == "position_error_x_sum");
  CHECK(std::string(Summed::kObservations[15].unit) == "m s");
  CHECK(Summed::kObservations[15].maximum == kSumLimit);
  CHECK(std::string(Summed::kObservations[16].name) == "thrust_front_right_t-20");
  Summed environment;
  environment.settings.start_share = 1.0f;
  Flown alone;
  alone.settings = environment.settings;
  Summed::Parameters parameters;
  Summed::State state;
  begin(environment, parameters, state);
  float seen[kCriticObservationDim<Summed>], without[kCriticObservationDim<Flown>];
  const float action[] = {0.25f, -0.5f, 0.75f, 0.125f};
  float sums[3] = {};
  for (std::uint32_t i = 0; i < 5; i++) {
    const RandomStream random{3, Purpose::observation, i};
    observe(Generic{}, environment, parameters, state, seen, random);
    observe(Generic{}, alone, parameters, state, without, random);
    CHECK(std::memcmp(seen, without, 13 * sizeof(float)) == 0);
    CHECK(std::memcmp(seen + 24, without + 13, 15 * sizeof(float)) == 0);
    for (int k = 0; k < 3; k++) CHECK(seen[13 + k] == doctest::Approx(sums[k]));
    for (int k = 0; k < 3; k++) {
      sums[k] += 0.04f * (state.position_m[k] - state.target_position_m[k]);
    }
    step(Generic{}, environment, parameters, state, action,
         RandomStream{3, Purpose::environment_step, i});
  }
  CHECK(seen[13] != 0.0f);
}

TEST_CASE("a sum stays within its limit, and an episode begins without one") {
  Summed environment;
  environment.settings.start_share = 0.0f;
  Summed::Parameters parameters;
  Summed::State state;
  begin(environment, parameters, state);
  const float action[] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (std::uint32_t i = 0; i < 20; i++) {
    state.position_m[0] = 1.9f;
    state.position_m[1] = -1.9f;
    step(Generic{}, environment, parameters, state, action,
         RandomStream{3, Purpose::environment_step, i});
  }
  CHECK(state.sums[0] == kSumLimit);
  CHECK(state.sums[1] == -kSumLimit);
  begin(environment, parameters, state);
  CHECK(state.sums[0] == 0.0f);
}

TEST_CASE("sums are mirrored as what is summed up") {
  for (int mirror = 0; mirror < 2; mirror++) {
    for (int i = 0; i < kCriticObservationDim<Summed>; i++) {
      const Mirrored once = Summed::mirrored_observation(mirror, i);
      const Mirrored twice = Summed::mirrored_observation(mirror, once.element);
      CHECK(twice.element == i);
      CHECK(twice.sign * once.sign == 1);
    }
    for (int i = 0; i < 3; i++) {
      const Mirrored sum = Summed::mirrored_observation(mirror, 13 + i);
      CHECK(sum.element == 13 + i);
      CHECK(sum.sign == Summed::mirrored_observation(mirror, i).sign);
    }
    const Mirrored gust =
        Summed::mirrored_observation(mirror, Summed::kObservationDim + 4 + mirror);
    CHECK(gust.element == Summed::kObservationDim + 4 + mirror);
  }
}

TEST_CASE("a policy of WithSums acts in its environment as at a place, to the last bit") {
  using Environment = WithActionHistory<WithSums<Pendulum<float>, 2>, 1>;
  using N = Mlp<float, Dimensions<Environment::kObservationDim, 8, 1>, Activation::relu,
                Activation::identity>;
  using Flash = flash_model::Flash<256, 4>;
  static N network;
  for (std::uint32_t seed = 0; seed < 8; seed++) {
    initialize_kaiming(Host{}, network, seed, 0);
    policy_networks::Bytes image(policy_image_bytes<N>());
    write_policy_image(Host{}, network, policy_contract<Environment>(),
                       PolicyNormaliser{nullptr, nullptr}, policy_networks::kOrigin, image.data());
    Flash flash(2 + 2 * 12);
    PolicyDeployment<Host, Flash, 1, 64> place(Host{}, flash, policy_contract<Pendulum<float>>());
    place.begin(image.data(), static_cast<std::uint32_t>(image.size()));
    REQUIRE(place.has_built_in());
    const Environment environment{};
    Environment::State state;
    const Environment::Parameters parameters;
    reset(Host{}, environment, parameters, state, {seed, Purpose::environment_reset, 0});
    MlpBuffer<N, 1> buffer;
    std::uint32_t now_us = 0;
    for (std::uint32_t i = 0; i < 60; i++) {
      Matrix<float, 1, Environment::kObservationDim> observation;
      Matrix<float, 1, 1> output;
      observe(Host{}, environment, parameters, state, observation.values,
              {seed, Purpose::environment_reset, i});
      forward(Host{}, network, observation, output, buffer);
      const Channel& channel = Environment::kActions[0];
      const float expected = physical_action(output.values[0], channel.minimum, channel.maximum);
      now_us += Environment::kStepInterval_us;
      float action = -99.0f;
      REQUIRE(place.step(now_us, {observation.values, now_us}, &action) == ExecutorStatus::acted);
      REQUIRE(std::memcmp(&action, &expected, sizeof(action)) == 0);
      step(Host{}, environment, parameters, state, output.values,
           {seed, Purpose::environment_step, i});
    }
    CHECK(state.sums[0] != 0.0f);
  }
}
