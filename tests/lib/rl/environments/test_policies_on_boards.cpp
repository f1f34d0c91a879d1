// A policy that was trained with WithActionHistory or WithSums acts at a place of the environment
// within as in its simulator, to the last bit.
#include <doctest/doctest.h>

#include <cstring>

#include "flash_model.h"
#include "policy_networks.h"
#include "rltools/devices/generic.h"
#include "rltools/policy/deployment.h"
#include "rltools/rl/environments/pendulum.h"
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
using policy_networks::Bytes;
using policy_networks::kOrigin;

namespace {

using Flash = flash_model::Flash<256, 4>;
constexpr std::uint32_t kBlocks = 2 + 2 * 12;

// One that acts every third tick of the place's rate.
struct SlowPendulum : Pendulum<float> {
  static constexpr const char* kName = "slow-pendulum";
  static constexpr int kTicksPerStep = 3;
  // Whose middle and half are no powers of two.
  static constexpr Channel kActions[] = {{"torque", "N*m", -0.3f, 2.0f}};
};

// An episode of an environment, and beside it the policy at a place that acts at each tick and is
// given the observation of the environment within alone.
// Of 60 steps, those whose action was clamped.
template <class Within, class Environment>
int check_episode(std::uint32_t seed) {
  constexpr int kInput = Environment::kObservationDim;
  using N = Mlp<float, Dimensions<kInput, 8, 1>, Activation::relu, Activation::identity>;
  static N network;
  initialize_kaiming(Generic{}, network, seed, 0);
  for (float& value : network.values) value *= 2.0f;  // so that it leaves [-1, 1] at times
  Bytes image(policy_image_bytes<N>());
  write_policy_image(Generic{}, network, policy_contract<Environment>(),
                     PolicyNormalizer{nullptr, nullptr}, kOrigin, image.data());
  Flash flash(kBlocks);
  PolicyDeployment<Generic, Flash, 1, 64> place(Generic{}, flash, policy_contract<Within>());
  place.begin(image.data(), static_cast<std::uint32_t>(image.size()));
  REQUIRE(place.has_built_in());
  const Environment environment{};
  typename Environment::State state;
  const typename Environment::Parameters parameters;
  reset(Generic{}, environment, parameters, state, {seed, Purpose::environment_reset, 0});
  MlpBuffer<N, 1> buffer;
  std::uint32_t now_us = 0;
  int clamped = 0;
  for (std::uint32_t i = 0; i < 60; i++) {
    Matrix<float, 1, kInput> observation;
    Matrix<float, 1, 1> output;
    observe(Generic{}, environment, parameters, state, observation.values,
            {seed, Purpose::environment_reset, i});
    forward(Generic{}, network, observation, output, buffer);
    const float expected =
        physical_action(output.values[0], Within::kActions[0].minimum, Within::kActions[0].maximum);
    clamped += math::absolute(output.values[0]) > 1.0f;
    float held = 0;
    for (int tick = 0; tick < Within::kTicksPerStep; tick++) {
      // Between the environment's steps the policy acts too; its action of the step counts.
      now_us += Within::kStepInterval_us;
      float action = -99.0f;
      REQUIRE(place.step(now_us, {observation.values, now_us}, &action) == ExecutorStatus::acted);
      if (tick == 0) held = action;
    }
    REQUIRE(std::memcmp(&held, &expected, sizeof(held)) == 0);
    step(Generic{}, environment, parameters, state, output.values,
         {seed, Purpose::environment_step, i});
  }
  return clamped;
}

}  // namespace

TEST_CASE("a policy that sees its past actions or sums acts in its environment as at a place") {
  using Upright = Pendulum<float>;
  int clamped = 0;
  for (std::uint32_t seed = 0; seed < 8; seed++) {
    clamped += check_episode<Upright, WithActionHistory<Upright, 1>>(seed);
    clamped += check_episode<Upright, WithActionHistory<Upright, 5>>(seed);
    clamped += check_episode<SlowPendulum, WithActionHistory<SlowPendulum, 2>>(seed);
    clamped += check_episode<Upright, WithActionHistory<WithSums<Upright, 2>, 1>>(seed);
  }
  CHECK(clamped > 100);
  CHECK(clamped < 32 * 60 - 100);
}
