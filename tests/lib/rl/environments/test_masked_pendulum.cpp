// The pendulum without its velocity: the pendulum in all but what a policy sees of it.
#include <doctest/doctest.h>

#include <string>

#include "rltools/devices/generic.h"
#include "rltools/rl/environments/masked_pendulum.h"

using namespace rlt;

TEST_CASE("a policy sees the pendulum's angle, and critics its velocity behind that") {
  using Masked = MaskedPendulum<float>;
  static_assert(kIsKept<EnvironmentContract<Masked>>);
  static_assert(Masked::kObservationDim == 2 && kCriticObservationDim<Masked> == 3);
  CHECK(std::string(Masked::kObservations[0].name) == "cos_angle");
  CHECK(std::string(Masked::kObservations[1].name) == "sin_angle");
  CHECK(std::string(Masked::kContractName) == "masked-pendulum");
  const Masked masked;
  const Pendulum<float> pendulum;
  const Pendulum<float>::Parameters parameters;
  Masked::State state;
  Pendulum<float>::State other;
  reset(Generic{}, masked, parameters, state, {1, Purpose::environment_reset, 0});
  reset(Generic{}, pendulum, parameters, other, {1, Purpose::environment_reset, 0});
  for (std::uint32_t i = 0; i < 50; i++) {
    const RandomStream random{1, Purpose::environment_step, i};
    const float action[1] = {i % 7 < 3 ? 0.9f : -0.4f};
    const auto result = step(Generic{}, masked, parameters, state, action, random);
    CHECK(result.reward == step(Generic{}, pendulum, parameters, other, action, random).reward);
    float seen[3], whole[3];
    observe(Generic{}, masked, parameters, state, seen, random);
    observe(Generic{}, pendulum, parameters, other, whole, random);
    for (int k = 0; k < 3; k++) CHECK(seen[k] == whole[k]);
  }
}
