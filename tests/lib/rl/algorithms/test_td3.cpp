// Test: -Og
// TD3: whole updates against PyTorch (tests/goldens/generate.py), and the rules of the algorithm
// one by one.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "line_environment.h"
#include "pytorch_comparison.h"
#include "rltools/devices/host.h"
#include "rltools/rl/evaluation.h"
#include "td3_golden_run.h"

using namespace rlt;
using training_run::Run;

namespace {

// Sums of up to 6,400 products in another order. StepReport has its losses in float.
constexpr golden::Tolerances kDouble{1e-11, 1e-7, 1e-11, 1e-10, 1e-9, true};
// Rounding is 6e-8 for each of some dozen operations, and Adam divides by small gradients. The
// targets have moved by about 1e-4 of their size, so that their rounding is 1e-3 of that. Rewards
// come from 100 steps of the pendulum.
constexpr golden::Tolerances kFloat{1e-4, 1e-5, 1e-5, 5e-5, 2e-3, false};

// The four updates of a case of td3_golden_run.h.
template <class T>
void compare_with_pytorch(const std::string& name, const golden::Tolerances& tolerances) {
  CAPTURE(name);
  golden::PyTorchComparison comparison("td3.bin", name + "/", tolerances);
  Run<td3_golden::Experiment<T>> run;
  td3_golden::run(
      run, name,
      [&](const std::string& array, const golden::Array& values) {
        comparison.check_input(array, values);
      },
      [&](int update, const auto& report) {
        const std::string prefix = std::to_string(update) + "/";
        CHECK(is_known(report.metrics.critic_1_loss));
        comparison.check_loss(prefix + "critic_1_loss", report.metrics.critic_1_loss);
        comparison.check_loss(prefix + "critic_2_loss", report.metrics.critic_2_loss);
        CHECK(is_known(report.metrics.actor_loss) == (name == "clipped" || update % 2 == 1));
        if (is_known(report.metrics.actor_loss))
          comparison.check_loss(prefix + "actor_loss", report.metrics.actor_loss);
      });
  const auto& learner = *run.learner;
  const std::size_t stride = name == "paper" ? 1 : golden::kStride;
  comparison.check_step("actor", "actor", learner.actor, stride, tolerances.parameters);
  comparison.check_step("critic_1", "critic_1", learner.critic_1, stride, tolerances.parameters);
  comparison.check_step("critic_2", "critic_2", learner.critic_2, stride, tolerances.parameters);
  comparison.check_step("actor_target", "actor", learner.actor_target, golden::kStride,
                        tolerances.targets);
  comparison.check_step("critic_1_target", "critic_1", learner.critic_1_target, golden::kStride,
                        tolerances.targets);
  comparison.check_step("critic_2_target", "critic_2", learner.critic_2_target, golden::kStride,
                        tolerances.targets);
  comparison.check_moments("actor_optimizer", learner.actor_optimizer);
  comparison.check_moments("critic_1_optimizer", learner.critic_1_optimizer);
  comparison.check_moments("critic_2_optimizer", learner.critic_2_optimizer);
}

template <class Network>
bool same_parameters(const Network& a, const Network& b) {
  return std::memcmp(a.values, b.values, sizeof a.values) == 0;
}

}  // namespace

namespace rlt {

struct LineTd3 : PendulumTd3 {
  static constexpr const char* kName = "line-td3";
  using Environment = Line;
  using Actor = Mlp<float, Dimensions<1, 8, 2>, Activation::tanh, Activation::tanh>;
  using Critic = Mlp<float, Dimensions<3, 12, 1>, Activation::gelu, Activation::identity>;
  static constexpr int kEpisodeSteps = 20, kBatchSize = 30, kTileRows = 15, kReplayCapacity = 400;
};

}  // namespace rlt

TEST_CASE("four updates in double are PyTorch's") {
  for (const char* name : td3_golden::kCases) compare_with_pytorch<double>(name, kDouble);
}

TEST_CASE("four updates in float are PyTorch's in double, but for rounding") {
  for (const char* name : td3_golden::kCases) compare_with_pytorch<float>(name, kFloat);
}

TEST_CASE("while warming up actions are uniform and nothing is learned, then every step updates") {
  Run<PendulumTd3> run(1);
  auto& h = run.training.hyperparameters;
  h.learning_starts = 150;
  initialize(Host{}, run.training);
  const Learner<PendulumTd3> initial = *run.learner;
  for (std::uint32_t step = 0; step < h.learning_starts; step++) {
    const auto report = run.step(Host{});
    CHECK_FALSE(is_known(report.metrics.critic_1_loss));
    CHECK(report.finite);
    CHECK(run.replay->action[step] ==
          uniform<float>({1, Purpose::warmup_action, step}, 0, -1.0f, 1.0f));
  }
  CHECK(same_parameters(run.learner->actor, initial.actor));
  CHECK(same_parameters(run.learner->critic_1, initial.critic_1));
  CHECK(same_parameters(run.learner->critic_2, initial.critic_2));
  for (std::uint32_t update = 1; update <= 5; update++) {
    CHECK(is_known(run.step(Host{}).metrics.critic_1_loss));
    CHECK(run.learner->progress.updates == update);
  }
}

TEST_CASE("actor and targets are updated with every policy_delay-th update only") {
  Run<PendulumTd3> run(2);
  run.training.hyperparameters.learning_starts = 30;
  run.training.hyperparameters.policy_delay = 3;
  initialize(Host{}, run.training);
  run.train(Host{}, 30);
  for (int update = 1; update <= 9; update++) {
    CAPTURE(update);
    const Learner<PendulumTd3> before = *run.learner;
    const auto report = run.step(Host{});
    const auto& after = *run.learner;
    const bool is_delayed = update % 3 != 0;
    CHECK(is_known(report.metrics.actor_loss) == !is_delayed);
    CHECK_FALSE(same_parameters(before.critic_1, after.critic_1));
    CHECK_FALSE(same_parameters(before.critic_2, after.critic_2));
    CHECK(same_parameters(before.actor, after.actor) == is_delayed);
    CHECK(same_parameters(before.actor_target, after.actor_target) == is_delayed);
    CHECK(same_parameters(before.critic_1_target, after.critic_1_target) == is_delayed);
    CHECK(same_parameters(before.critic_2_target, after.critic_2_target) == is_delayed);
  }
}

TEST_CASE("exploration adds normal noise of the standard deviation asked for, within the range") {
  Run<PendulumTd3> run(3);
  auto& h = run.training.hyperparameters;
  h.learning_starts = 1;
  h.learning_rate = 0;  // the policy stays, so that the action without noise is known
  for (const float std : {0.0f, 0.1f, 3.0f}) {
    CAPTURE(std);
    h.action_noise = std;
    initialize(Host{}, run.training);
    double sum = 0, sum_of_squares = 0;
    int at_bound = 0;
    constexpr std::uint32_t kSteps = 190;  // of the first episode
    for (std::uint32_t step = 0; step < kSteps; step++) {
      run.step(Host{});
      if (step < h.learning_starts) continue;
      Matrix<float, 1, 1> action;
      const MatrixView<const float, 1, 3> observation{run.replay->observation + step * 3};
      forward(Host{}, run.learner->actor, observation, action, run.scratch->exploring_buffer);
      const float taken = run.replay->action[step];
      REQUIRE(std::abs(taken) <= 1.0f);
      at_bound += std::abs(taken) == 1.0f;
      const double noise = static_cast<double>(taken - action.values[0]);
      sum += noise / (kSteps - 1);
      sum_of_squares += noise * noise / (kSteps - 1);
    }
    if (std == 0.0f) CHECK(sum_of_squares == 0);
    if (std == 0.1f) {
      CHECK(std::abs(sum) < 5 * 0.1 / std::sqrt(190));
      CHECK(std::abs(std::sqrt(sum_of_squares) - 0.1) < 5 * 0.1 / std::sqrt(2 * 190));
      CHECK(at_bound == 0);
    }
    // |noise| > 1 for three standard deviations with probability 0.74
    if (std == 3.0f) CHECK((at_bound > 110 && at_bound < 165));
  }
}

TEST_CASE("each dimension of the action explores with noise of its own") {
  Run<LineTd3> run(8);
  auto& h = run.training.hyperparameters;
  h.learning_starts = 1;
  h.learning_rate = 0;
  initialize(Host{}, run.training);
  std::uint32_t slot = 0;
  for (int step = 0; step < 20; step++) {
    const auto report = run.step(Host{});
    Matrix<float, 1, 2> action;
    const MatrixView<const float, 1, 1> observation{run.replay->observation + slot};
    forward(Host{}, run.learner->actor, observation, action, run.scratch->exploring_buffer);
    const float* taken = run.replay->action + slot * 2;
    CHECK(std::abs((taken[0] - action(0, 0)) - (taken[1] - action(0, 1))) > 1e-5f);
    slot += (report.episodes_ended == 1) ? 2 : 1;
  }
}

TEST_CASE("an episode of kEpisodeSteps is truncated: it ends, and is not stored as terminated") {
  Run<PendulumTd3> run(4);
  run.training.hyperparameters.learning_starts = 1000;
  initialize(Host{}, run.training);
  CHECK(run.learner->progress.best_return != run.learner->progress.best_return);
  std::uint32_t slot = 0;
  float best = -math::kInfinity;
  for (std::uint32_t episode = 0; episode < 3; episode++) {
    Pendulum<float>::State begin;
    reset(Host{}, Pendulum<float>{}, Pendulum<float>::Parameters{}, begin,
          RandomStream{4, Purpose::environment_reset, episode});
    CHECK(run.learner->environments.state[0].angle_rad == begin.angle_rad);
    CHECK(run.learner->environments.state[0].velocity_rad_s == begin.velocity_rad_s);
    const float* present = run.replay->observation + 3 * run.replay->position;
    CHECK(present[0] == math::cos(begin.angle_rad));
    CHECK(present[1] == math::sin(begin.angle_rad));
    CHECK(present[2] == begin.velocity_rad_s);
    float sum = 0;
    for (int i = 0; i < PendulumTd3::kEpisodeSteps; i++) {
      const auto report = run.step(Host{});
      sum += run.replay->reward[slot];
      CHECK(run.replay->flags[slot] == Replay<PendulumTd3>::kTransition);
      slot++;
      const bool is_last = i == PendulumTd3::kEpisodeSteps - 1;
      CHECK((report.episodes_ended == 1) == is_last);
      if (is_last) CHECK(report.episode_return == sum);
    }
    CHECK(run.replay->flags[slot] == 0);  // the observation that ended the episode
    slot++;
    CHECK(run.replay->position == slot);
    CHECK(run.learner->environments.episodes[0] == episode + 1);
    CHECK(run.learner->progress.last_return == sum);
    best = std::max(best, sum);
    CHECK(run.learner->progress.best_return == best);
  }
}

TEST_CASE("an episode that terminates early is stored as terminated, and evaluation stops there") {
  Run<LineTd3> run(5);
  auto& h = run.training.hyperparameters;
  h.learning_starts = 300;
  initialize(Host{}, run.training);
  std::uint32_t slot = 0;
  int terminations = 0, truncations = 0, disagreements = 0;
  for (int i = 0; i < 300; i++) {
    const auto report = run.step(Host{});
    const float next = run.replay->observation[slot + 1];
    const bool is_terminated = std::abs(next) > 1.0f;
    const bool is_flagged = run.replay->flags[slot] & Replay<LineTd3>::kTerminated;
    disagreements +=
        is_terminated != is_flagged || (is_terminated && !(report.episodes_ended == 1));
    terminations += is_terminated;
    truncations += (report.episodes_ended == 1) && !is_terminated;
    slot += (report.episodes_ended == 1) ? 2 : 1;
  }
  CHECK(disagreements == 0);
  CHECK(terminations > 5);
  CHECK(truncations > 1);

  // With more push than the line is long an episode has one step, whose reward is 1 - |position|.
  h.eval_episodes = 4;
  for (float& bias : run.learner->actor.values) bias = 0;
  run.learner->actor.bias(1)[0] = run.learner->actor.bias(1)[1] = 50.0f;
  const EvaluationReport report = evaluate(Host{}, run.training);
  CHECK(report.max < 3.0f);  // of 20 steps it would be 20 at most, and below -20 beyond the end
  CHECK(report.min > -1.0f);
  run.train(Host{}, 100);
  CHECK(run.step(Host{}).finite);
}

TEST_CASE("the report says so when a reward is not finite, before any loss shows it") {
  Run<PendulumTd3> run(6);
  initialize(Host{}, run.training);
  REQUIRE(run.step(Host{}).finite);
  run.learner->environments.state[0].angle_rad = 1e38f;  // finite; its square is not
  CHECK_FALSE(run.step(Host{}).finite);
  // That of an episode's last step too, after which the return is that of the next episode.
  initialize(Host{}, run.training);
  run.train(Host{}, PendulumTd3::kEpisodeSteps - 1);
  run.learner->environments.state[0].angle_rad = 1e38f;
  CHECK_FALSE(run.step(Host{}).finite);
}

TEST_CASE("the report says so when a number is not finite") {
  Run<PendulumTd3> run(6);
  run.training.hyperparameters.learning_starts = 20;
  initialize(Host{}, run.training);
  run.train(Host{}, 40);
  REQUIRE(run.step(Host{}).finite);
  const std::vector<std::uint8_t> state = run.state();
  for (const float poison : {math::kQuietNan, math::kInfinity, -math::kInfinity}) {
    CAPTURE(poison);
    const auto stays_finite = [&](float& value) {
      value = poison;
      bool finite = true;
      for (int i = 0; i < 4; i++) finite = finite && run.step(Host{}).finite;
      run.set_state(state);
      return finite;
    };
    CHECK_FALSE(stays_finite(run.learner->critic_1.bias(2)[0]));
    CHECK_FALSE(stays_finite(run.learner->critic_2.bias(2)[0]));
    run.learner->critic_2.bias(2)[0] = poison;
    CHECK_FALSE(run.step(Host{}).finite);  // at once, by its loss
    run.set_state(state);
    CHECK_FALSE(stays_finite(run.learner->environments.state[0].velocity_rad_s));
    for (std::uint32_t slot = 0; slot < run.replay->size; slot++) {
      run.replay->reward[slot] = poison;
    }
    CHECK_FALSE(stays_finite(run.replay->reward[0]));
  }
  CHECK_FALSE(run.learner->actor.values[0] != run.learner->actor.values[0]);
  run.learner->actor.bias(2)[0] = math::kQuietNan;
  CHECK_FALSE(run.step(Host{}).finite);
}
