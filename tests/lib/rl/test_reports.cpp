// When a run reports and is evaluated, and what has happened since its last report.
#include <doctest/doctest.h>

#include <vector>

#include "line_environment.h"
#include "rltools/devices/generic.h"
#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/reports.h"
#include "training_run.h"

using namespace rlt;

namespace {

struct LinePpo : TaskExperiment<Ppo, Line, 8> {
  static constexpr const char* kName = "line-ppo";
  using Hyperparameters = PpoHyperparameters;
  static constexpr int kEnvironments = 4, kRolloutSteps = 8, kBatchSize = 16, kTileRows = 16;
  static constexpr int kEpisodeSteps = 20;
};

}  // namespace

TEST_CASE("a run that still learns when all steps are taken is evaluated when it has finished") {
  training_run::Run<LinePpo> run(3);
  auto& training = run.training;
  training.hyperparameters.steps = 96;
  training.hyperparameters.eval_freq = 16;
  training.hyperparameters.report_every = 48;
  initialize(Generic{}, training);
  std::vector<std::uint32_t> evaluated, reported;
  std::uint32_t updates_at_evaluation = 0;
  while (!finished(training)) {
    const std::uint32_t before = steps_done(training);
    run.step(Generic{});
    CHECK(may_evaluate(training) == (steps_done(training) < 96 || finished(training)));
    if (is_report_due(training, before)) reported.push_back(steps_done(training));
    if (!is_evaluation_due(training, before)) continue;
    evaluated.push_back(steps_done(training));
    updates_at_evaluation = training.learner.progress.updates;
  }
  CHECK(evaluated == std::vector<std::uint32_t>{16, 32, 48, 64, 80, 96});
  CHECK(updates_at_evaluation == training.learner.progress.updates);
  CHECK(reported == std::vector<std::uint32_t>{48, 96, 96});
}

TEST_CASE("a report's means are of the episodes and the steps since the one before") {
  SinceReport<LinePpo> since;
  StepReport<LinePpo> several, none, one;
  several.episodes_ended = 3;
  several.episode_returns = 6.0f;
  several.episode_steps = 30;
  several.metrics.value_loss = 2.0f;
  none.metrics.value_loss = 4.0f;
  one.episodes_ended = 1;
  one.episode_returns = -2.0f;
  one.episode_steps = 5;
  for (const auto& report : {several, none, one}) since.add(report);
  CHECK(since.episodes == 4);
  CHECK(since.mean_return() == 1.0f);
  CHECK(since.mean_steps() == 8.75f);
  CHECK(since.metrics.get(1) == 3.0f);
  since.clear();
  CHECK(since.mean_return() == 0.0f);
  CHECK(since.mean_steps() == 0.0f);
  since.add(one);
  CHECK(since.episodes == 1);
  CHECK(since.mean_return() == -2.0f);
  CHECK(since.mean_steps() == 5.0f);
  CHECK_FALSE(is_known(since.metrics.get(1)));
}
