// Test: as-firmware all
// XQC learns Pendulum-v1.
#include <doctest/doctest.h>

#include <cstdint>

#include "pendulum_xqc.h"
#include "rltools/devices/host.h"
#include "rltools/rl/evaluation.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

TEST_CASE("seeds learn Pendulum-v1 in 5000 steps to a return of -200") {
#if !defined(__SANITIZE_ADDRESS__)
  constexpr std::uint32_t kSeeds = 3;
#else
  constexpr std::uint32_t kSeeds = 1;
#endif
  for (std::uint32_t seed = 0; seed < kSeeds; seed++) {
    CAPTURE(seed);
    Run<PendulumXqc> run(seed);
    run.training.hyperparameters.n_eval_episodes = 100;
    initialize(Host{}, run.training);
    const float untrained = evaluate(Host{}, run.training).mean;
    run.train(Host{}, run.training.hyperparameters.steps);
    const EvaluationReport report = evaluate(Host{}, run.training);
    CHECK(untrained < -900);
    CHECK(report.mean >= -200);
  }
}
