// Test: -O1 all
// PPO learns Pendulum-v1 and Acrobot-v1.
#include <doctest/doctest.h>

#include <cstdint>

#include "acrobot_ppo.h"
#include "pendulum_ppo.h"
#include "rltools/devices/host.h"
#include "rltools/rl/evaluation.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

TEST_CASE("seeds learn Pendulum-v1 in 100000 steps to a return of -185") {
  constexpr std::uint32_t kSeeds = 1;
  using E = WithTileRows<PendulumPpo, PendulumPpo::kBatchSize>;
  for (std::uint32_t seed = 0; seed < kSeeds; seed++) {
    CAPTURE(seed);
    Run<E> run(seed);
    run.training.hyperparameters.n_eval_episodes = 100;
    initialize(Host{}, run.training);
    const float untrained = evaluate(Host{}, run.training).mean;
    while (!finished(run.training)) REQUIRE(run.step(Host{}).finite);
    const EvaluationReport report = evaluate(Host{}, run.training);
    CHECK(untrained < -900);
    CHECK(report.mean >= -185);
    CHECK(run.learner->log_std.values[0] < -0.5f);  // of the deviation that it began with
  }
}

TEST_CASE("seeds that never got there with normalized advantages learn Acrobot-v1") {
  for (const std::uint32_t seed : {111u, 137u}) {
    CAPTURE(seed);
    Run<AcrobotPpo> run(seed);
    run.training.hyperparameters.n_eval_episodes = 100;
    initialize(Host{}, run.training);
    while (!finished(run.training)) REQUIRE(run.step(Host{}).finite);
    CHECK(evaluate(Host{}, run.training).mean >= -100);
  }
}
