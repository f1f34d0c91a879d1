// Categorical policies: probabilities, draws, and what is masked. Then PPO and DQN learn such
// actions. PPO's objective of them and its gradient: test_pytorch.cpp.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "rltools/devices/generic.h"
#include "rltools/rl/algorithms/dqn.h"
#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/evaluation.h"
#include "training_run.h"

namespace rlt {

#define MATCH_STATE(X) X(float, place)

// Two choices: the first is to name the place that is seen, the second to say whether it is left.
struct Match : EnvironmentDefaults {
  using Scalar = float;
  RLT_DEFINE_FIELDS(State, MATCH_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_NO_FIELDS)
  static constexpr const char* kName = "match";
  static constexpr int kObservationDim = 1, kActionDim = 2, kEpisodeSteps = 4;
  static constexpr std::uint32_t kStepInterval_us = 1000;
  static constexpr Channel kObservations[] = {{"place", "1", -1.0f, 1.0f}};
  static constexpr Channel kActions[] = {choice("name", "left|middle|right"),
                                         choice("is_left", "no|yes")};
};

inline void reset(Generic, const Match&, const Match::Parameters&, Match::State& state,
                  RandomStream random) {
  state.place = static_cast<float>(uniform_index(random, 0, 3)) - 1.0f;
}
inline StepResult<float> step(Generic, const Match&, const Match::Parameters&, Match::State& state,
                              const float* action, RandomStream random) {
  const float name = state.place + 1.0f, left = state.place < 0 ? 1.0f : 0.0f;
  const float reward = (action[0] == name ? 1.0f : 0.0f) + (action[1] == left ? 1.0f : 0.0f);
  state.place = static_cast<float>(uniform_index(random, 0, 3)) - 1.0f;
  return {reward, false};
}
inline void observe(Generic, const Match&, const Match::Parameters&, const Match::State& state,
                    float* observation, RandomStream) {
  observation[0] = state.place;
}

struct MatchPpo {
  static constexpr const char* kName = "match-ppo";
  using Scalar = float;
  using Environment = Match;
  using Algorithm = Ppo;
  using Actor = Ppo::TaskActor<Match, 8>;
  using Critic = Ppo::TaskCritic<Match, 8>;
  struct Hyperparameters : PpoHyperparameters {
    Hyperparameters() {
      steps = 6400;
      learning_rate = 0.01f;
      ent_coef = 0.001f;
    }
  };
  static constexpr int kEnvironments = 8, kRolloutSteps = 16, kEpisodeSteps = 4;
  static constexpr int kBatchSize = 32, kTileRows = 8;
};

}  // namespace rlt

namespace rlt {

// Two choices of which one is forbidden half of the time, though it alone earns anything.
struct Gate : EnvironmentDefaults {
  using Scalar = float;
  RLT_DEFINE_FIELDS(State, MATCH_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, RLT_NO_FIELDS)
  static constexpr const char* kName = "gate";
  static constexpr int kObservationDim = 1, kActionDim = 1, kEpisodeSteps = 4;
  static constexpr std::uint32_t kStepInterval_us = 1000;
  static constexpr Channel kObservations[] = {{"gate:go", "1", 0.0f, 1.0f}};
  static constexpr Channel kActions[] = {choice("gate", "stay|go")};
};
inline void reset(Generic, const Gate&, const Gate::Parameters&, Gate::State& state,
                  RandomStream random) {
  state.place = static_cast<float>(uniform_index(random, 0, 2));
}
inline StepResult<float> step(Generic, const Gate&, const Gate::Parameters&, Gate::State& state,
                              const float* action, RandomStream random) {
  const bool is_masked = action[0] == 1.0f && state.place < 0.5f;
  const float reward = is_masked ? math::kQuietNan : action[0];  // it ends the run
  state.place = static_cast<float>(uniform_index(random, 0, 2));
  return {reward, false};
}
inline void observe(Generic, const Gate&, const Gate::Parameters&, const Gate::State& state,
                    float* observation, RandomStream) {
  observation[0] = state.place;
}

struct GatePpo : MatchPpo {
  static constexpr const char* kName = "gate-ppo";
  using Environment = Gate;
  using Actor = Ppo::TaskActor<Gate, 8>;
  using Critic = Ppo::TaskCritic<Gate, 8>;
};
struct GateDqn {
  static constexpr const char* kName = "gate-dqn";
  using Scalar = float;
  using Environment = Gate;
  using Algorithm = Dqn;
  using Critic = Dqn::TaskCritic<Gate, 8>;
  struct Hyperparameters : DqnHyperparameters {
    Hyperparameters() {
      steps = 1500;
      learning_starts = 100;
    }
  };
  static constexpr int kEpisodeSteps = 4, kBatchSize = 16, kTileRows = 8, kReplayCapacity = 500;
};

}  // namespace rlt

using namespace rlt;
using training_run::Run;

namespace {

static_assert(kOutputDim<Match> == 5 && MatchPpo::Actor::kOutputDim == 5);

// log pi(i) by the book.
long double log_probability(const double* logit, int count, int i) {
  long double sum = 0;
  for (int k = 0; k < count; k++) sum += expl(logit[k]);
  return logit[i] - logl(sum);
}

struct Row {
  double action[2] = {2, 0};
  double before[5] = {0.5, -0.25, 0.75, 0.1, 0.2};
  double now[5] = {0.3, -0.5, 1.0, 0.4, -0.1};
  double advantage = 1.5, clip_range = 0.75, weight = 0.25;
  double gradient[5];

  ChoiceRow<double> compute() {
    return clipped_choices<Match>(action, before, now, advantage, clip_range, weight, 4.0,
                                  gradient);
  }
};

}  // namespace

TEST_CASE("probabilities add up to 1, and large logits neither overflow nor vanish") {
  for (const float scale : {0.0f, 1.0f, 50.0f, 3e38f}) {
    const float logit[] = {0.25f * scale, -scale, 0.5f * scale, scale};
    float log_p[4];
    log_softmax(logit, 4, log_p);
    float sum = 0;
    for (const float value : log_p) {
      CHECK(value <= 0);
      sum += math::exp(value);
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-6));
  }
  const double logit[] = {0.5, -1.0, 2.0};
  double log_p[3];
  log_softmax(logit, 3, log_p);
  for (int i = 0; i < 3; i++) {
    CHECK(log_p[i] == doctest::Approx(double(log_probability(logit, 3, i))).epsilon(1e-14));
  }
}

TEST_CASE("choices are drawn with their probabilities, by the uniform number alone") {
  const double logit[] = {std::log(0.2), std::log(0.5), std::log(0.3)};
  CHECK(draw_choice(logit, 3, 0.0) == 0);
  CHECK(draw_choice(logit, 3, 0.199) == 0);
  CHECK(draw_choice(logit, 3, 0.201) == 1);
  CHECK(draw_choice(logit, 3, 0.699) == 1);
  CHECK(draw_choice(logit, 3, 0.701) == 2);
  CHECK(draw_choice(logit, 3, 0.9999999) == 2);
  const float impossible[] = {-3e38f, 0.0f, -3e38f};
  CHECK(draw_choice(impossible, 3, 0.0f) == 1);
  CHECK(draw_choice(impossible, 2, 0.99999994f) == 1);
}

TEST_CASE("PPO learns two choices at once, and a checkpoint changes no bit") {
  Run<MatchPpo> run(1);
  initialize(Generic{}, run.training);
  const float before = evaluate(Generic{}, run.training).mean;
  StepReport<MatchPpo> first;
  for (int i = 0; i < 17; i++) first = run.step(Generic{});
  CHECK(first.metrics.kl == 0);
  CHECK(first.metrics.clip_fraction == 0);
  CHECK(first.metrics.entropy == doctest::Approx(std::log(3) + std::log(2)).epsilon(1e-3));
  CHECK_FALSE(is_known(first.metrics.action_std));
  for (int row = 0; row < 16 * 8; row++) {
    const float* action = run.replay->action + 2 * row;
    CHECK((action[0] == 0 || action[0] == 1 || action[0] == 2));
    CHECK((action[1] == 0 || action[1] == 1));
  }
  Run<MatchPpo> later(1);
  initialize(Generic{}, later.training);
  later.set_state(run.state());
  CHECK(state_is_consistent(later.training));
  for (const int place : {0, 1}) {  // 3 choices, and 2
    float& action = later.replay->action[2 * (16 * 8 - 1) + place];
    const float drawn = action;
    action = static_cast<float>(3 - place);
    CHECK_FALSE(state_is_consistent(later.training));
    action = drawn;
  }
  CHECK(state_is_consistent(later.training));
  while (!finished(run.training)) run.step(Generic{});
  while (!finished(later.training)) later.step(Generic{});
  CHECK(run.state() == later.state());
  CHECK(before < 7);
  CHECK(evaluate(Generic{}, run.training).mean == 8);  // 2 in each of 4 steps
  const auto names = run.tensor_names();
  for (const auto& name : names) CHECK(name.find("log_std") == std::string::npos);
}

TEST_CASE_TEMPLATE("what is forbidden is never tried, and what earns is learned", E, GatePpo,
                   GateDqn) {
  Run<E> run(4);
  initialize(Generic{}, run.training);
  bool is_finite = true;
  while (!finished(run.training)) is_finite = run.step(Generic{}).finite && is_finite;
  CHECK(is_finite);
  const float observed[] = {0.0f, 1.0f};
  for (const float seen : observed) {
    Matrix<float, 1, 1> observation{{seen}}, action;
    act(Generic{}, run.training, observation, action);
    CHECK(action(0, 0) == seen);
  }
  CHECK(state_is_finite(run.training));
}

TEST_CASE("the gradient of what is forbidden is 0, and its logit changes nothing") {
  Row row;
  row.before[1] = kMaskedLogit;
  const auto result = row.compute();
  CHECK(row.gradient[1] == 0);
  CHECK((std::isfinite(result.kl) && std::isfinite(result.entropy)));
  row.now[1] = 1e6;
  CHECK(row.compute().objective == result.objective);
}

TEST_CASE("a logit that is not finite is a fault, and no choice is made by it") {
  Run<MatchPpo> run(2);
  initialize(Generic{}, run.training);
  run.learner->actor.bias(1)[4] = math::kQuietNan;
  CHECK_FALSE(run.step(Generic{}).finite);
  CHECK(std::isnan(evaluate(Generic{}, run.training).mean));
}
