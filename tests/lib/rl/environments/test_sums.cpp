// Environments that show sums of what is observed: where they stand, and what they are. That a
// policy acts at a place by the same bits: test_policies_on_boards.cpp.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "rltools/devices/generic.h"
#include "rltools/rl/environments/quadrotor.h"
#include "rltools/rl/environments/with_action_history.h"
#include "rltools/rl/environments/with_sums.h"

using namespace rlt;

namespace {

using Flown = Quadrotor<float>;
using Summed = WithActionHistory<WithSums<Flown, 3>, 2>;
static_assert(kIsKept<EnvironmentContract<Summed>>);
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
