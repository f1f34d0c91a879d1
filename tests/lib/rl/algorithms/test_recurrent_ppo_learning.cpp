// Test: -O1 all
// Recurrent PPO learns Pendulum-v1 for a policy that sees no velocity.
#include <doctest/doctest.h>

#include "pendulum_ppo_masked.h"
#include "rltools/devices/host.h"
#include "rltools/rl/evaluation.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

// A third of the experiment's steps, 3 s, at its first learning rate. Seeds 0 to 4 come to -192,
// -186, -180, -168 and -169.
TEST_CASE("a policy without the velocity comes to -200 in 200000 steps") {
  Run<PendulumPpoMasked> run(3);
  run.training.hyperparameters.steps = 200000;
  run.training.hyperparameters.lr_end_factor = 1.0f;
  run.training.hyperparameters.n_eval_episodes = 100;
  initialize(Host{}, run.training);
  CHECK(evaluate(Host{}, run.training).mean < -900);
  while (!finished(run.training)) REQUIRE(run.step(Host{}).finite);
  CHECK(evaluate(Host{}, run.training).mean >= -200);
  // What it learned is to remember: without its hidden state it does not swing up.
  auto& actor = run.learner->actor;
  for (int i = 0; i < 32 * 96; i++) actor.hidden_weights(1)[i] = 0.0f;
  CHECK(evaluate(Host{}, run.training).mean < -600);
}
