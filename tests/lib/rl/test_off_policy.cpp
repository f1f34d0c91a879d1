// Test: -Og
// What TD3 and SAC share, and the rules of each: warming up, exploration, ends of episodes, what is
// a fault, the delay and the temperature, and the policy that is deployed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "line_experiments.h"
#include "rltools/devices/host.h"
#include "rltools/policy/runtime.h"
#include "rltools/rl/evaluation.h"
#include "rltools/rl/policy_of_training.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

template <class Network>
bool same(const Network& a, const Network& b) {
  return std::memcmp(a.values, b.values, sizeof a.values) == 0;
}

// What the actor gives for the observation of a slot.
template <class E>
Matrix<float, 1, E::Actor::kOutputDim> output_at(Run<E>& run, std::uint32_t slot) {
  constexpr int kObservation = E::Environment::kObservationDim;
  const MatrixView<const float, 1, kObservation> observation{run.replay->observation +
                                                             slot * kObservation};
  Matrix<float, 1, E::Actor::kOutputDim> output;
  forward(Host{}, run.learner->actor, observation, output, run.scratch->exploring_buffer);
  return output;
}

}  // namespace

TEST_CASE_TEMPLATE("while warming up actions are uniform, then every step updates", E, PendulumTd3,
                   PendulumSac) {
  Run<E> run(1);
  auto& h = run.training.hyperparameters;
  h.learning_starts = 150;
  initialize(Host{}, run.training);
  const Learner<E> initial = *run.learner;
  for (std::uint32_t step = 0; step < h.learning_starts; step++) {
    const auto report = run.step(Host{});
    CHECK_FALSE(is_known(report.metrics.critic_1_loss));
    CHECK_FALSE(is_known(report.metrics.actor_loss));
    CHECK(report.finite);
    CHECK(run.replay->action[step] ==
          uniform<float>({1, Purpose::warmup_action, step}, 0, -1.0f, 1.0f));
  }
  CHECK(same(run.learner->actor, initial.actor));
  CHECK(same(run.learner->critic_1, initial.critic_1));
  CHECK(same(run.learner->critic_2, initial.critic_2));
  for (std::uint32_t update = 1; update <= 5; update++) {
    const Learner<E> before = *run.learner;
    const auto report = run.step(Host{});
    const Learner<E>& after = *run.learner;
    CHECK(is_known(report.metrics.critic_1_loss));
    CHECK(after.progress.updates == update);
    CHECK_FALSE(same(before.critic_1, after.critic_1));
    CHECK_FALSE(same(before.critic_2, after.critic_2));
    if constexpr (std::is_same_v<E, PendulumSac>) {
      CHECK(is_known(report.metrics.actor_loss));
      CHECK_FALSE(same(before.actor, after.actor));
      CHECK_FALSE(same(before.critic_1_target, after.critic_1_target));
      CHECK_FALSE(same(before.critic_2_target, after.critic_2_target));
      CHECK_FALSE(same(before.log_temperature, after.log_temperature));
    }
  }
}

TEST_CASE(
    "TD3: exploration adds normal noise of the standard deviation asked for, within the range") {
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
      const auto action = output_at(run, step);
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

TEST_CASE("SAC: exploration draws from the policy") {
  Run<LineSac> run(3);
  auto& h = run.training.hyperparameters;
  h.learning_starts = 1;
  h.learning_rate = 0;  // the policy stays
  initialize(Host{}, run.training);
  double sum[2] = {}, sum_of_squares[2] = {}, product = 0;
  constexpr int kSteps = 300;
  std::uint32_t slot = 0;
  for (int step = 0; step < kSteps; step++) {
    const auto report = run.step(Host{});
    const auto output = output_at(run, slot);
    double noise[2];
    for (int i = 0; i < 2; i++) {
      const double taken = static_cast<double>(run.replay->action[slot * 2 + i]);
      REQUIRE(std::abs(taken) <= 1);
      noise[i] = (std::atanh(taken) - output(0, i)) / std::exp(output(0, 2 + i));
      if (step == 0) continue;  // uniform
      sum[i] += noise[i] / (kSteps - 1);
      sum_of_squares[i] += noise[i] * noise[i] / (kSteps - 1);
    }
    if (step > 0) product += noise[0] * noise[1] / (kSteps - 1);
    slot += (report.episodes_ended == 1) ? 2 : 1;
  }
  // Five standard deviations of each statistic for standard normal noise.
  for (int i = 0; i < 2; i++) {
    CHECK(std::abs(sum[i]) < 5 / std::sqrt(kSteps));
    CHECK(std::abs(sum_of_squares[i] - 1) < 5 * std::sqrt(2.0 / kSteps));
  }
  CHECK(std::abs(product) < 5 / std::sqrt(kSteps));
}

TEST_CASE("SAC: the target entropy is one per dimension of the action") {
  // Of two -log pi is to be -2.
  for (const float mean_log_probability : {1.5f, 2.5f}) {
    CAPTURE(mean_log_probability);
    Run<LineSac> run(4);
    initialize(Host{}, run.training);
    Sac::update_temperature(Host{}, run.training, adam_parameters(run.training),
                            mean_log_probability);
    CHECK((run.learner->log_temperature.values[0] > 0) == (mean_log_probability > 2));
  }
}

TEST_CASE("SAC: the deployed policy is the actor's squashed mean, bit by bit") {
  Run<LineSac> run(5);
  initialize(Host{}, run.training);
  run.train(Host{}, 150);
  static_assert(
      std::is_same_v<PolicyNetwork<LineSac>,
                     Mlp<float, Dimensions<1, 8, 2>, Activation::tanh, Activation::tanh>>);
  const PolicyNetwork<LineSac>& network = policy(run.training);
  alignas(4) static std::uint8_t image[kPolicyImageBytes<LineSac>];
  const std::uint8_t state_sha256[32] = {};
  build_policy_image(Host{}, run.training, state_sha256, image);
  static PolicyRunner<64, 0, kPolicyImageBytes<LineSac>> deployed(policy_contract<Line>());
  REQUIRE(deployed.accept(Generic{}, image, sizeof(image)).accepted());
  for (int k = 0; k < 50; k++) {
    Matrix<float, 1, 1> observation{{-1.0f + 0.04f * static_cast<float>(k)}};
    Matrix<float, 1, 4> output;
    Matrix<float, 1, 2> action, network_action;
    float deployed_action[2];
    act(Host{}, run.training, observation, action);
    forward(Generic{}, run.learner->actor, observation, output, run.scratch->exploring_buffer);
    MlpBuffer<PolicyNetwork<LineSac>, 1> buffer;
    forward(Host{}, network, observation, network_action, buffer);
    REQUIRE(deployed.act(Generic{}, observation.values, deployed_action) ==
            ActionSource::from_policy);
    for (int i = 0; i < 2; i++) {
      CHECK(action(0, i) == math::tanh(output(0, i)));
      CHECK(network_action(0, i) == action(0, i));
      CHECK(deployed_action[i] == action(0, i));
    }
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
  h.n_eval_episodes = 4;
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

TEST_CASE_TEMPLATE("the report says so when a number is not finite", E, PendulumTd3, PendulumSac) {
  Run<E> run(6);
  run.training.hyperparameters.learning_starts = 20;
  initialize(Host{}, run.training);
  run.train(Host{}, 40);
  REQUIRE(run.step(Host{}).finite);
  const std::vector<std::uint8_t> state = run.state();
  for (const float poison : {math::kQuietNan, math::kInfinity, -math::kInfinity}) {
    CAPTURE(poison);
    const bool is_nan = poison != poison;
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
    for (std::uint32_t slot = 0; slot < run.replay->size; slot++) run.replay->reward[slot] = poison;
    CHECK_FALSE(stays_finite(run.replay->reward[0]));
    if constexpr (std::is_same_v<E, PendulumSac>) {
      CHECK_FALSE(stays_finite(run.learner->actor.bias(2)[0]));
      if (poison > 0 || is_nan) {  // log_temperature = -infinity is a temperature of zero
        CHECK_FALSE(stays_finite(run.learner->log_temperature.values[0]));
      }
    } else if (is_nan) {  // what is infinite is tanh's bound
      CHECK_FALSE(stays_finite(run.learner->actor.bias(2)[0]));
    }
  }
}

TEST_CASE("an action that is not finite is a fault, and the environment is not stepped with it") {
  for (const float poison : {math::kQuietNan, math::kInfinity}) {
    Run<PendulumTd3> run(2);
    run.training.hyperparameters.learning_starts = 5;
    initialize(Host{}, run.training);
    run.train(Host{}, 5);
    REQUIRE(run.step(Host{}).finite);
    const auto state = run.learner->environments.state[0];
    const Progress<float> progress = run.learner->progress;
    // Both signs, so that NaN comes out where the weights are infinite.
    run.learner->actor.weights(2)[0] = poison;
    run.learner->actor.weights(2)[1] = -poison;
    run.learner->actor.bias(1)[0] = run.learner->actor.bias(1)[1] = 1e30f;
    CHECK_FALSE(run.step(Host{}).finite);
    CHECK(run.learner->environments.state[0].angle_rad == state.angle_rad);
    CHECK(run.learner->environments.state[0].velocity_rad_s == state.velocity_rad_s);
    CHECK(run.learner->progress.step == progress.step);
    CHECK(run.learner->progress.updates == progress.updates);  // nor is anything learned
    const EvaluationReport report = evaluate(Host{}, run.training);
    CHECK(report.mean != report.mean);
    CHECK(report.episodes == run.training.hyperparameters.n_eval_episodes);
  }
}
