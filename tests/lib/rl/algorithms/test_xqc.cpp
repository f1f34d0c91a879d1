// Test: -Og
// XQC where its numbers are not PyTorch's (test_pytorch.cpp): several environments, critics that
// see more than the policy, runs that go on, the policy as it is deployed, lost episodes, and what
// a restored state may not hold.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include "pendulum_xqc.h"
#include "point_experiments.h"
#include "resumed_run.h"
#include "rltools/devices/host.h"
#include "rltools/policy/runtime.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

constexpr int kEnvironments = 3, kSeenByPolicy = 3, kAction = 2;

// Three environments; the critics see one number more.
struct PointXqc : PendulumXqc {
  static constexpr const char* kName = "point-xqc";
  using Environment = SecretPoint;
  using Actor = Xqc::TaskActor<SecretPoint, 16>;
  using Critic = Xqc::TaskCritic<SecretPoint, 16, 9>;
  struct Hyperparameters : XqcHyperparameters {
    Hyperparameters() {
      steps = 300;
      learning_starts = 60;
      policy_delay = 2;
      learning_rate = 0.003f;
    }
  };
  static constexpr int kEnvironments = 3, kEpisodeSteps = 7;
  static constexpr int kBatchSize = 30, kReplayCapacity = 600;
};

void begin(Run<PointXqc>& run, std::uint32_t steps) {
  initialize(Generic{}, run.training);
  run.train(Generic{}, steps);
}

}  // namespace

TEST_CASE("a run goes on from any of its states") {
  training_run::check_goes_on<PointXqc>(Generic{}, 60);
  training_run::check_goes_on<PointXqc>(Host{}, 40);
}

TEST_CASE("the deployed policy is the actor with its running statistics, bit by bit") {
  Run<PointXqc> run(8);
  begin(run, 100);
  alignas(4) static std::uint8_t image[kPolicyImageBytes<PointXqc>];
  build_policy_image(Generic{}, run.training, {}, image);
  static PolicyRunner<64, 0, kPolicyImageBytes<PointXqc>> deployed(policy_contract<SecretPoint>());
  REQUIRE(deployed.accept(Generic{}, image, sizeof(image)).accepted());
  const auto& actor = run.learner->actor;
  const auto& statistics = run.learner->actor_statistics;
  const auto normalized = [&](int index, double x) {
    return (x - static_cast<double>(statistics.mean[index])) /
           std::sqrt(static_cast<double>(statistics.variance[index]) + 1e-3);
  };
  CHECK(statistics.mean[1] > 30.0f);  // meters of height
  for (int k = 0; k < 30; k++) {
    const float x = -1.0f + 0.06f * static_cast<float>(k);
    const Matrix<float, 1, kSeenByPolicy> observation{{x, 50.0f + 10.0f * x, 0.5f * x}};
    Matrix<float, 1, kAction> action;
    float of_image[kAction];
    act(Generic{}, run.training, observation, action);
    REQUIRE(deployed.act(Generic{}, observation.values, of_image) == ActionSource::from_policy);
    for (int i = 0; i < kAction; i++) CHECK(of_image[i] == action(0, i));
    // As nn/batch_norm_mlp.h and squashing say it.
    double hidden[16] = {}, mean[kAction];
    for (int o = 0; o < 16; o++) {
      for (int i = 0; i < kSeenByPolicy; i++) {
        hidden[o] += static_cast<double>(actor.weights(0)[i * 16 + o]) *
                     (static_cast<double>(actor.norm_scale(0)[i]) *
                          normalized(i, static_cast<double>(observation(0, i))) +
                      static_cast<double>(actor.norm_bias(0)[i]));
      }
      hidden[o] =
          static_cast<double>(actor.norm_scale(1)[o]) * normalized(kSeenByPolicy + o, hidden[o]) +
          static_cast<double>(actor.norm_bias(1)[o]);
    }
    for (int i = 0; i < kAction; i++) {
      mean[i] = static_cast<double>(actor.output_bias()[i]);
      for (int o = 0; o < 16; o++) {
        mean[i] += std::fmax(hidden[o], 0) * static_cast<double>(actor.weights(1)[o * 4 + i]);
      }
      CHECK(static_cast<double>(action(0, i)) == doctest::Approx(std::tanh(mean[i])).epsilon(1e-4));
    }
  }
}

TEST_CASE("returns are those of each environment's episodes") {
  Run<PointXqc> run(4);
  begin(run, 50);
  const auto& scale = run.learner->return_scale;
  const double gamma = static_cast<double>(run.training.hyperparameters.gamma);
  CHECK(scale.count == 50 * kEnvironments);
  double largest = 0, sum = 0, squares = 0;
  for (int index = 0; index < kEnvironments; index++) {
    const auto& buffer = run.replay->buffer[index];
    double value = 0;
    for (std::uint32_t slot = 0; slot < buffer.position; slot++) {
      if (!(buffer.flags[slot] & buffer.kTransition)) continue;
      value = gamma * value + static_cast<double>(buffer.reward[slot]);
      largest = std::fmax(largest, std::abs(value));
      sum += value, squares += value * value;
      if (!(buffer.flags[slot + 1] & buffer.kTransition) && slot + 1 != buffer.position) value = 0;
    }
    CHECK(scale.discounted_return[index] == doctest::Approx(value).epsilon(1e-12));
  }
  CHECK(scale.largest == doctest::Approx(largest).epsilon(1e-12));
  CHECK(scale.mean == doctest::Approx(sum / scale.count).epsilon(1e-12));
  CHECK(scale.sum_of_squares == doctest::Approx(squares - sum * sum / scale.count).epsilon(1e-10));
  // Episodes that are lost leave no return to the next ones.
  Xqc::restart_episodes(Generic{}, run.training);
  for (const double value : scale.discounted_return) CHECK(value == 0);
  CHECK(scale.count == 50 * kEnvironments);
  CHECK(state_is_consistent(run.training));
  run.train(Generic{}, 20);
  CHECK(run.step(Generic{}).finite);
}

TEST_CASE("a state whose variances or returns are none is not consistent") {
  Run<PointXqc> run(4);
  begin(run, 40);
  REQUIRE(state_is_consistent(run.training));
  auto& learner = *run.learner;
  const auto check = [&](auto& value) {
    const auto before = value;
    value = -1;
    CHECK_FALSE(state_is_consistent(run.training));
    value = before;
  };
  check(learner.actor_statistics.variance[2]);
  check(learner.critic[0].statistics.variance[learner.critic[0].network.kNormCount - 1]);
  check(learner.critic[1].statistics.variance[0]);
  check(learner.return_scale.count);
  check(learner.return_scale.sum_of_squares);
  check(learner.return_scale.largest);
  check(run.replay->buffer[1].position);
  CHECK(state_is_consistent(run.training));
}

TEST_CASE("an actor that is not finite shows in the report, and writes beside no array") {
  Run<PointXqc> run(4);
  begin(run, 40);
  StepReport<PointXqc> report;
  run.learner->actor.values[0] = math::kQuietNan;
  Xqc::update(Generic{}, run.training, report);
  CHECK_FALSE(report.finite);
}
