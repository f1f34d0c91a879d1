// Test: -Og threads all
// SAC and PPO on a device with several threads end in the bits of one. TD3: test_host_threads.cpp.
#include <doctest/doctest.h>

#include <string>

#include "any_threads.h"
#include "pendulum_ppo.h"
#include "pendulum_sac.h"
#include "training_run.h"

using namespace rlt;

namespace {

template <class E, class Device>
std::string hash_after(Device device, std::uint32_t steps) {
  training_run::Run<E> run(7);
  initialize(device, run.training);
  run.train(device, steps);
  return run.state_sha256();
}

struct NormalizedSac : PendulumSac {
  static constexpr bool kNormalized = true;
  static constexpr int kAveragedUpdates = 20;  // of the actor, which is the policy
};

template <class E>
using Shared = WithSecondCriticScratch<WithTileRows<E, E::kBatchSize>>;

}  // namespace

TEST_CASE("SAC ends with the same bits on one thread, on two and on three") {
  const std::string expected = hash_after<NormalizedSac>(Generic{}, 130);
  training_run::with_any_threads([&](HostThreads device) {
    CHECK(hash_after<Shared<NormalizedSac>>(device, 130) == expected);
  });
}

TEST_CASE("PPO ends with the same bits where threads share its environments") {
  using Whole = WithTileRows<PendulumPpo, PendulumPpo::kBatchSize>;
  const std::string expected = hash_after<PendulumPpo>(Generic{}, 270);
  training_run::with_any_threads(
      [&](HostThreads device) { CHECK(hash_after<Whole>(device, 270) == expected); });
}
