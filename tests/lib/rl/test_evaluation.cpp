// Evaluation step by step: its episodes, and what happens between two of its steps.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "line_experiments.h"
#include "rltools/devices/generic.h"
#include "rltools/rl/evaluation.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

bool same(const EvaluationReport& a, const EvaluationReport& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

// A run whose policy drives away from the middle, and leaves the line from some places.
struct OnTheLine : Run<LineTd3> {
  OnTheLine() : Run(3) {
    training.hyperparameters.n_eval_episodes = 40;
    initialize(Generic{}, training);
    for (float& value : learner->actor.values) value = 0.0f;
    learner->actor.weights(0)[0] = 1.0f;
    learner->actor.weights(1)[0] = 0.5f;
    learner->actor.bias(1)[0] = 0.03f;
  }
};

}  // namespace

TEST_CASE("an evaluation is the episodes that its definition says") {
  OnTheLine run;
  std::vector<double> returns;
  int steps = 0, terminated = 0;
  for (std::uint32_t episode = 0; episode < 40; episode++) {
    Line::State state;
    reset(Generic{}, Line{}, {}, state, RandomStream{3, Purpose::evaluation_reset, episode});
    float sum = 0;
    for (int i = 0; i < LineTd3::kEpisodeSteps; i++) {
      Matrix<float, 1, 1> observation{{state.position}};
      Matrix<float, 1, 2> action;
      forward(Generic{}, run.learner->actor, observation, action, run.scratch->exploring_buffer);
      const auto result = step(Generic{}, Line{}, {}, state, action.data(), RandomStream{});
      sum += result.reward;
      steps++;
      terminated += result.terminated;
      if (result.terminated) break;
    }
    returns.push_back(static_cast<double>(sum));
  }
  REQUIRE((terminated > 5 && terminated < 35));
  double mean = 0, variance = 0;
  for (const double value : returns) mean += value / 40;
  for (const double value : returns) variance += (value - mean) * (value - mean) / 40;

  Evaluation<LineTd3> evaluation;
  begin_evaluation(Generic{}, run.training, evaluation);
  int calls = 1;
  while (evaluate_step(Generic{}, run.training, evaluation)) calls++;
  CHECK(calls == steps);
  const EvaluationReport report = evaluation_report(evaluation);
  CHECK(report.episodes == 40);
  CHECK(report.length_mean == static_cast<float>(steps) / 40.0f);
  CHECK(report.mean == doctest::Approx(mean).epsilon(1e-6));
  CHECK(report.std == doctest::Approx(std::sqrt(variance)).epsilon(1e-5));
  CHECK(static_cast<double>(report.min) == *std::min_element(returns.begin(), returns.end()));
  CHECK(static_cast<double>(report.max) == *std::max_element(returns.begin(), returns.end()));
  // One that has ended stays as it is.
  CHECK_FALSE(evaluate_step(Generic{}, run.training, evaluation));
  CHECK(same(evaluation_report(evaluation), report));
}

TEST_CASE("an action that is not finite is seen in the report") {
  OnTheLine run;
  REQUIRE(is_finite(evaluate(Generic{}, run.training).mean));
  for (const float poison : {math::kQuietNan, -math::kQuietNan}) {
    run.learner->actor.bias(1)[0] = poison;
    const EvaluationReport report = evaluate(Generic{}, run.training);
    CHECK(report.mean != report.mean);
    CHECK(report.episodes == run.training.hyperparameters.n_eval_episodes);
  }
}

TEST_CASE("a step that is not finite ends an evaluation, which names it and has no report") {
  OnTheLine run;
  const std::vector<std::uint8_t> before = run.state();
  for (const int steps : {0, 1, 3}) {
    CAPTURE(steps);
    Evaluation<LineTd3> evaluation;
    begin_evaluation(Generic{}, run.training, evaluation);
    for (int i = 0; i < steps; i++) REQUIRE(evaluate_step(Generic{}, run.training, evaluation));
    CHECK(evaluation.non_finite.environment == evaluation.non_finite.kNone);
    REQUIRE(evaluation.episode_step == static_cast<std::uint32_t>(steps));
    evaluation.environment_state.position = math::kInfinity;
    CHECK_FALSE(evaluate_step(Generic{}, run.training, evaluation));
    CHECK_FALSE(evaluate_step(Generic{}, run.training, evaluation));
    CHECK(evaluation.non_finite.environment == 0);
    CHECK(evaluation.non_finite.is_first == (steps == 0));
    CHECK_FALSE(evaluation.non_finite.is_reward);
    CHECK(is_finite(evaluation.environment_state.position) == (steps > 0));
    const EvaluationReport report = evaluation_report(evaluation);
    CHECK(report.mean != report.mean);
  }
  CHECK(run.state() == before);
}

TEST_CASE("an evaluation may be left and begun again, and another one may run between its steps") {
  OnTheLine run;
  run.train(Generic{}, 150);
  const std::vector<std::uint8_t> before = run.state();
  const EvaluationReport expected = evaluate(Generic{}, run.training);
  Evaluation<LineTd3> first, second;
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

namespace {

// The line with wind, and a position that is measured with noise.
struct WindyLine : Line {
  static constexpr const char* kName = "windy-line";
};
inline StepResult<float> step(Generic device, const WindyLine&,
                              const WindyLine::Parameters& parameters, WindyLine::State& state,
                              const float* action, RandomStream random) {
  state.position += uniform<float>(random, 0, -0.1f, 0.1f);
  return step(device, Line{}, parameters, state, action, random);
}
inline void observe(Generic, const WindyLine&, const WindyLine::Parameters&,
                    const WindyLine::State& state, float* observation, RandomStream random) {
  observation[0] = state.position + uniform<float>(random, 0, -0.1f, 0.1f);
}

struct WindyLineTd3 : LineTd3 {
  static constexpr const char* kName = "windy-line-td3";
  using Environment = WindyLine;
};

}  // namespace

TEST_CASE("the noise of an evaluation is that of the episode's number and of the step") {
  constexpr std::uint32_t kEpisodes = 5, kSeed = 3;
  Run<WindyLineTd3> run(kSeed);
  run.training.hyperparameters.n_eval_episodes = kEpisodes;
  initialize(Generic{}, run.training);
  double sum = 0;
  for (std::uint32_t episode = 0; episode < kEpisodes; episode++) {
    WindyLine::State state;
    reset(Generic{}, WindyLine{}, {}, state,
          RandomStream{kSeed, Purpose::evaluation_reset, episode});
    for (std::uint32_t i = 0; i < WindyLineTd3::kEpisodeSteps; i++) {
      Matrix<float, 1, 1> observation;
      observe(Generic{}, WindyLine{}, {}, state, observation.data(),
              RandomStream{kSeed, Purpose::evaluation_observation, i, episode});
      Matrix<float, 1, 2> action;
      forward(Generic{}, run.learner->actor, observation, action, run.scratch->exploring_buffer);
      const auto result = step(Generic{}, WindyLine{}, {}, state, action.data(),
                               RandomStream{kSeed, Purpose::evaluation_step, i, episode});
      sum += static_cast<double>(result.reward);
      if (result.terminated) break;
    }
  }
  CHECK(evaluate(Generic{}, run.training).mean == doctest::Approx(sum / kEpisodes).epsilon(1e-6));
}
