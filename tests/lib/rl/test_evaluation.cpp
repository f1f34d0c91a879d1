// Evaluation step by step: its episodes, and what happens between two of its steps.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "rltools/devices/generic.h"
#include "rltools/rl/algorithms/td3.h"
#include "rltools/rl/evaluation.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

#define COUNTDOWN_STATE(X) X(float, left)

// Counts down to 0, where it terminates; each step is worth 1. It begins at 1 to 4.
struct Countdown : EnvironmentDefaults {
  using Scalar = float;
  RLT_DEFINE_FIELDS(State, COUNTDOWN_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_NO_FIELDS)
  static constexpr const char* kName = "Countdown";
  static constexpr int kObservationDim = 1;
  static constexpr int kActionDim = 1;
  static constexpr std::uint32_t kStepInterval_us = 1000;
  static constexpr Channel kObservations[1] = {{"left", "1", 0.0f, 5.0f}};
  static constexpr Channel kActions[1] = {{"nothing", "1", -1.0f, 1.0f}};
};
void reset(Generic, const Countdown&, const Countdown::Parameters&, Countdown::State& state,
           RandomStream random) {
  state.left = static_cast<float>(1 + uniform_index(random, 0, 4));
}
StepResult<float> step(Generic, const Countdown&, const Countdown::Parameters&,
                       Countdown::State& state, const float*, RandomStream) {
  state.left -= 1;
  return {1, state.left <= 0};
}
void observe(Generic, const Countdown&, const Countdown::Parameters&, const Countdown::State& state,
             float* observation, RandomStream) {
  observation[0] = state.left;
}

struct CountdownTd3 {
  static constexpr const char* kName = "countdown-td3";
  using Scalar = float;
  using Environment = Countdown;
  using Algorithm = Td3;
  using Actor = Mlp<float, Dimensions<1, 4, 1>, Activation::relu, Activation::tanh>;
  using Critic = Mlp<float, Dimensions<2, 4, 1>, Activation::relu, Activation::identity>;
  using Hyperparameters = Td3Hyperparameters;
  static constexpr int kEpisodeSteps = 3;  // where 4 are left the episode is truncated
  static constexpr int kBatchSize = 4;
  static constexpr int kTileRows = 4;
  static constexpr int kReplayCapacity = 100;
};

bool same(const EvaluationReport& a, const EvaluationReport& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

}  // namespace

TEST_CASE("episodes end where they terminate and where they are truncated") {
  Run<CountdownTd3> run(3);
  run.training.hyperparameters.eval_episodes = 40;
  initialize(Generic{}, run.training);
  int steps = 0;
  double sum = 0, sum_of_squares = 0;
  bool has_begun_at[4] = {};
  for (std::uint32_t episode = 0; episode < 40; episode++) {
    const std::uint32_t left = 1 + uniform_index({3, Purpose::evaluation_reset, episode}, 0, 4);
    has_begun_at[left - 1] = true;
    const int length = left < 3 ? static_cast<int>(left) : 3;
    steps += length;
    sum += length;
    sum_of_squares += length * length;
  }
  for (const bool has : has_begun_at) REQUIRE(has);

  Evaluation<CountdownTd3> evaluation;
  begin_evaluation(Generic{}, run.training, evaluation);
  int calls = 1;
  while (evaluate_step(Generic{}, run.training, evaluation)) calls++;
  CHECK(calls == steps);
  const EvaluationReport report = evaluation_report(evaluation);
  CHECK(report.episodes == 40);
  CHECK(report.mean == doctest::Approx(sum / 40));
  CHECK(report.std * report.std == doctest::Approx(sum_of_squares / 40 - sum * sum / 1600));
  CHECK(report.min == 1.0f);
  CHECK(report.max == 3.0f);
}

TEST_CASE(
    "an action that is not finite is seen in the report, whatever the environment does with it") {
  Run<CountdownTd3> run(3);
  initialize(Generic{}, run.training);
  REQUIRE(evaluate(Generic{}, run.training).mean > 0);  // which no action changes
  for (const float poison : {math::kQuietNan, -math::kQuietNan}) {
    run.learner->actor.bias(1)[0] = poison;
    const EvaluationReport report = evaluate(Generic{}, run.training);
    CHECK(report.mean != report.mean);
    CHECK(report.episodes == run.training.hyperparameters.eval_episodes);
  }
}

TEST_CASE("an evaluation that has ended stays as it is") {
  Run<CountdownTd3> run(1);
  initialize(Generic{}, run.training);
  Evaluation<CountdownTd3> evaluation;
  begin_evaluation(Generic{}, run.training, evaluation);
  while (evaluate_step(Generic{}, run.training, evaluation)) continue;
  const EvaluationReport report = evaluation_report(evaluation);
  CHECK_FALSE(evaluate_step(Generic{}, run.training, evaluation));
  CHECK(same(evaluation_report(evaluation), report));
}

TEST_CASE("an evaluation may be left and begun again, and another one may run between its steps") {
  Run<CountdownTd3> run(2);
  run.training.hyperparameters.eval_episodes = 9;
  initialize(Generic{}, run.training);
  run.train(Generic{}, 150);
  const std::vector<std::uint8_t> before = run.state();
  const EvaluationReport expected = evaluate(Generic{}, run.training);
  Evaluation<CountdownTd3> first, second;
  begin_evaluation(Generic{}, run.training, first);
  for (int i = 0; i < 5; i++) evaluate_step(Generic{}, run.training, first);
  begin_evaluation(Generic{}, run.training, first);  // again
  begin_evaluation(Generic{}, run.training, second);
  bool first_goes_on = true, second_goes_on = true;
  while (first_goes_on || second_goes_on) {
    first_goes_on = evaluate_step(Generic{}, run.training, first);
    second_goes_on = evaluate_step(Generic{}, run.training, second);
  }
  CHECK(same(evaluation_report(first), expected));
  CHECK(same(evaluation_report(second), expected));
  CHECK(run.state() == before);
}
