// Test: -O1 all
// Distillation learns Pendulum-v1 for a policy that sees no velocity.
#include <doctest/doctest.h>

#include <cstdint>

#include "pendulum_distillation.h"
#include "rltools/devices/host.h"
#include "rltools/rl/evaluation.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

TEST_CASE("a student without the velocity comes to -190 in 400000 steps, its teacher's included") {
#if defined(__SANITIZE_ADDRESS__)
  constexpr std::uint32_t kSeeds = 1;  // slow
#else
  constexpr std::uint32_t kSeeds = 2;
#endif
  using E = WithTileRows<PendulumDistillation, PendulumDistillation::kBatchSize>;
  for (std::uint32_t seed = 0; seed < kSeeds; seed++) {
    CAPTURE(seed);
    Run<E> run(seed);
    run.training.hyperparameters.n_eval_episodes = 100;
    initialize(Host{}, run.training);
    while (!finished(run.training)) REQUIRE(run.step(Host{}).finite);
    CHECK(evaluate(Host{}, run.training).mean >= -190);
    // What it learned is to remember: without its hidden state it does not swing up.
    auto& actor = run.learner->actor;
    for (int i = 0; i < 16 * 48; i++) actor.hidden_weights(1)[i] = 0.0f;
    CHECK(evaluate(Host{}, run.training).mean < -400);
  }
}
