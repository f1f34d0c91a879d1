// The rules of SAC: warming up, exploration, the temperature, and the policy that is deployed.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <type_traits>

#include "line_sac.h"
#include "rltools/devices/host.h"
#include "rltools/policy/runtime.h"
#include "rltools/rl/policy_of_training.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

TEST_CASE("while warming up nothing is learned, then every step updates all networks") {
  Run<PendulumSac> run(1);
  auto& h = run.training.hyperparameters;
  h.learning_starts = 150;
  initialize(Host{}, run.training);
  const Learner<PendulumSac> before_updates = *run.learner;
  for (std::uint32_t step = 0; step < h.learning_starts; step++) {
    const auto report = run.step(Host{});
    CHECK_FALSE(is_known(report.metrics.critic_1_loss));
    CHECK_FALSE(is_known(report.metrics.actor_loss));
    CHECK(run.replay->action[step] ==
          uniform<float>({1, Purpose::warmup_action, step}, 0, -1.0f, 1.0f));
  }
  const auto same = [](const auto& a, const auto& b) {
    return std::memcmp(a.values, b.values, sizeof a.values) == 0;
  };
  CHECK(same(run.learner->actor, before_updates.actor));
  CHECK(same(run.learner->critic_1, before_updates.critic_1));
  CHECK(same(run.learner->critic_2, before_updates.critic_2));
  for (std::uint32_t update = 1; update <= 5; update++) {
    const Learner<PendulumSac> before = *run.learner;
    const auto report = run.step(Host{});
    const Learner<PendulumSac>& after = *run.learner;
    CHECK(is_known(report.metrics.critic_1_loss));
    CHECK(is_known(report.metrics.actor_loss));
    CHECK(after.progress.updates == update);
    CHECK_FALSE(same(before.actor, after.actor));
    CHECK_FALSE(same(before.critic_1, after.critic_1));
    CHECK_FALSE(same(before.critic_2, after.critic_2));
    CHECK_FALSE(same(before.critic_1_target, after.critic_1_target));
    CHECK_FALSE(same(before.critic_2_target, after.critic_2_target));
    CHECK_FALSE(same(before.log_temperature, after.log_temperature));
  }
}

TEST_CASE("exploration draws from the policy") {
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
    Matrix<float, 1, 4> output;
    const MatrixView<const float, 1, 1> observation{run.replay->observation + slot};
    forward(Host{}, run.learner->actor, observation, output, run.scratch->exploring_buffer);
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

TEST_CASE(
    "the temperature rises while the entropy is below its target, and falls while it is above") {
  for (const float target_entropy : {0.69f, -20.0f}) {
    CAPTURE(target_entropy);
    Run<LineSac> run(4);
    run.training.hyperparameters.target_entropy = target_entropy;
    run.training.hyperparameters.alpha = 0.5f;
    initialize(Host{}, run.training);
    CHECK(run.learner->log_temperature.values[0] == math::log(0.5f));
    run.train(Host{}, run.training.hyperparameters.learning_starts);
    for (int update = 0; update < 20; update++) {
      const float before = run.learner->log_temperature.values[0];
      run.step(Host{});
      // Adam's step is about the learning rate while the gradient keeps its sign.
      const float change = run.learner->log_temperature.values[0] - before;
      CHECK((target_entropy > 0 ? change : -change) == doctest::Approx(1e-3).epsilon(0.1));
    }
  }
}

TEST_CASE("the target entropy is one per dimension of the action") {
  // Two dimensions: -log pi is to be -2, so that at a mean log pi of 1.5 it is too large by 0.5.
  for (const float mean_log_probability : {1.5f, 2.5f}) {
    CAPTURE(mean_log_probability);
    Run<LineSac> run(4);
    REQUIRE(run.training.hyperparameters.target_entropy == -1.0f);
    initialize(Host{}, run.training);
    REQUIRE(run.learner->log_temperature.values[0] == 0.0f);
    sac::update_temperature(Host{}, run.training, mean_log_probability);
    const float change = run.learner->log_temperature.values[0];
    CHECK((mean_log_probability < 2.0f ? -change : change) == doctest::Approx(1e-3));
    // Adam's first moment is the gradient's share: the difference itself.
    const float moment = run.learner->temperature_optimizer.first_moment.values[0];
    CHECK(moment == doctest::Approx(-0.1 * (mean_log_probability - 2.0)));
  }
}

TEST_CASE("the deployed policy is the actor's squashed mean, bit by bit") {
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
  static Policy<kPolicyImageBytes<LineSac>, 64> deployed(policy_contract<Line>());
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
