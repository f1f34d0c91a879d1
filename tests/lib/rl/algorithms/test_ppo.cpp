// Test: address
// The rules of PPO: when it learns and from what, the step size, the end of a run, what is a fault,
// and the policy that is deployed.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <type_traits>
#include <vector>

#include "point_experiments.h"
#include "rltools/devices/generic.h"
#include "rltools/policy/runtime.h"
#include "rltools/rl/evaluation.h"
#include "rltools/rl/policy_of_training.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

constexpr int kMinibatchCount = kMinibatches<PointPpo>;

template <class Array>
bool same(const Array& a, const Array& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// A run of the point's at the end of a rollout.
struct Learning : Run<PointPpo> {
  explicit Learning(std::uint32_t seed, std::uint32_t epochs = 2) : Run(seed) {
    training.hyperparameters.n_epochs = epochs;
    initialize(Generic{}, training);
    train(Generic{}, PointPpo::kRolloutSteps);
  }
  StepReport<PointPpo> learn() { return step(Generic{}); }
};

}  // namespace

TEST_CASE("an iteration is a rollout, then the minibatches of its epochs") {
  Run<PointPpo> run(1);
  run.training.hyperparameters.n_epochs = 3;
  initialize(Generic{}, run.training);
  const auto& learner = *run.learner;
  for (std::uint32_t iteration = 0; iteration < 3; iteration++) {
    const Learner<PointPpo> before = learner;
    for (std::uint32_t step = 0; step < 16; step++) {
      CHECK(run.replay->size == step);
      const auto report = run.step(Generic{});
      for (int i = 0; i < PpoMetrics::kCount; i++) CHECK_FALSE(is_known(report.metrics.get(i)));
      CHECK(learner.progress.step == (iteration * 16 + step + 1) * 4);
    }
    CHECK(same(learner.actor, before.actor));
    CHECK(same(learner.critic, before.critic));
    CHECK(same(learner.normalizer, before.normalizer));
    CHECK(run.replay->size == 16);
    for (std::uint32_t minibatch = 0; minibatch < 3 * kMinibatchCount; minibatch++) {
      CHECK(learner.minibatches == minibatch);
      CHECK(learner.iteration == iteration);
      const Learner<PointPpo> previous = learner;
      const auto report = run.step(Generic{});
      for (int i = 0; i < PpoMetrics::kCount; i++) {
        const bool is_explained = PpoMetrics::info(i).name == std::string("explained_variance");
        CHECK(is_known(report.metrics.get(i)) == (!is_explained || minibatch == 0));
      }
      CHECK_FALSE(same(learner.actor, previous.actor));
      CHECK_FALSE(same(learner.critic, previous.critic));
      CHECK_FALSE(same(learner.log_std, previous.log_std));
      CHECK(learner.progress.step == previous.progress.step);
      CHECK(learner.progress.updates == previous.progress.updates + 1);
      CHECK(same(learner.environments, previous.environments));
      if (minibatch + 1 == 3 * kMinibatchCount) break;
      CHECK(same(learner.acting_log_std, before.acting_log_std));
      CHECK(same(learner.normalizer, before.normalizer));
    }
    CHECK(run.replay->size == 0);
    CHECK(learner.minibatches == 0);
    CHECK(learner.acting_log_std[0] == learner.log_std.values[0]);
    CHECK(learner.acting_log_std[1] == learner.log_std.values[1]);
    CHECK(learner.normalizer.count == 64 * (iteration + 1));
  }
}

TEST_CASE("actions are drawn about the mean, stored without bounds, and taken within them") {
  Run<PointPpo> run(4);
  run.training.hyperparameters.log_std_init = 0.25f;
  initialize(Generic{}, run.training);
  run.learner->acting_log_std[1] = -0.25f;
  int beyond = 0;
  for (std::uint32_t step = 0; step < 16; step++) {
    Matrix<float, 4, 3> observation;
    std::memcpy(observation.data(), run.replay->current_observation, sizeof observation.values);
    Matrix<float, 4, 2> mean;
    forward(Generic{}, run.learner->actor, observation, mean, run.scratch->acting_buffer);
    run.step(Generic{});
    for (std::uint32_t i = 0; i < 8; i++) {
      const float noise = standard_normal<float>({4, Purpose::exploration, step * 4}, i);
      const float action = run.replay->action[step * 8 + i];
      CHECK(run.replay->mean[step * 8 + i] == mean.data()[i]);
      CHECK(action == math::fma(math::exp(i % 2 == 0 ? 0.25f : -0.25f), noise, mean.data()[i]));
      CHECK(run.scratch->action.data()[i] == math::clamp(action, -1.0f, 1.0f));
      beyond += std::abs(action) > 1;
    }
  }
  CHECK(beyond > 25);  // of 128, with deviations of 1.28 and 0.78: 32 %
}

TEST_CASE("the step size follows the divergence, but for an iteration's first minibatch") {
  Learning run(6);
  auto& h = run.training.hyperparameters;
  h.target_kl = 0.01f;
  const auto adapted = [&](float factor, float kl, std::uint32_t minibatches = 1,
                           float rate = 3e-4f) {
    run.learner->learning_rate = rate;
    run.learner->minibatches = minibatches;
    Ppo::adapt_learning_rate(run.training, factor, kl);
    return run.learner->learning_rate;
  };
  CHECK(adapted(1, 0.0201f) == 3e-4f / 1.5f);
  CHECK(adapted(1, 0.02f) == 3e-4f);
  CHECK(adapted(1, 0.005f) == 3e-4f);
  CHECK(adapted(1, 0.0049f) == 3e-4f * 1.5f);
  CHECK(adapted(1, -1e-8f) == 3e-4f * 1.5f);  // by rounding
  CHECK(adapted(1, 1, 1, 1.2e-6f) == 1e-6f);
  CHECK(adapted(1, 0, 1, 9e-3f) == 1e-2f);
  CHECK(adapted(1, 0, 0) == 3e-4f);
  CHECK(adapted(1, 1, 0) == 3e-4f);
  CHECK(adapted(0.1f, 0.0049f) == 3e-4f / 1.5f);  // the schedule's smaller step is to change less
  CHECK(adapted(0.1f, 1.5e-4f) == 3e-4f);
  h.adaptive_lr = 0;
  CHECK(adapted(1, 0) == 3e-4f);
  CHECK(adapted(1, 1) == 3e-4f);
}

TEST_CASE("the schedule's step size falls until the run's end, and stays there") {
  Learning run(6);
  auto& h = run.training.hyperparameters;
  h.adaptive_lr = 0;
  h.lr_end_factor = 0.5f;
  run.learner->learning_rate = 1e-3f;
  h.steps = 4 * run.learner->progress.step;
  CHECK(run.learn().metrics.learning_rate == 1e-3f * 0.875f);
  CHECK(run.learner->learning_rate == 1e-3f);  // the schedule is not kept, and not applied twice
  h.steps = run.learner->progress.step;
  CHECK(run.learn().metrics.learning_rate == 1e-3f * 0.5f);
  h.steps = run.learner->progress.step / 2;  // the last rollout leads beyond the run's steps
  CHECK(run.learn().metrics.learning_rate == 1e-3f * 0.5f);
}

TEST_CASE("advantages are computed once, or at the beginning of each epoch") {
  for (const std::uint32_t recompute : {0u, 1u}) {
    CAPTURE(recompute);
    Learning run(8, 3);
    run.training.hyperparameters.recompute_advantage = recompute;
    for (int minibatch = 0; minibatch < 3 * kMinibatchCount - 1; minibatch++) {
      CAPTURE(minibatch);
      const Replay<PointPpo> before = *run.replay;
      run.learn();
      const bool expected = minibatch == 0 || (recompute == 1 && minibatch % kMinibatchCount == 0);
      CHECK(same(before.advantage, run.replay->advantage) == !expected);
      CHECK(same(before.target, run.replay->target) == !expected);
      CHECK(same(before.observation, run.replay->observation));
      CHECK(same(before.reward, run.replay->reward));
    }
  }
}

TEST_CASE("a run is finished at the end of the iteration in which its steps are done") {
  Run<PointPpo> run(10);
  run.training.hyperparameters.n_epochs = 1;
  for (const std::uint32_t steps : {1u, 64u, 65u, 130u}) {
    CAPTURE(steps);
    run.training.hyperparameters.steps = steps;
    initialize(Generic{}, run.training);
    const std::uint32_t iterations = (steps + 63) / 64;
    for (std::uint32_t i = 0; i < iterations * (16 + kMinibatchCount); i++) {
      CHECK_FALSE(finished(run.training));
      run.step(Generic{});
    }
    CHECK(finished(run.training));
    CHECK(steps_done(run.training) == iterations * 64);
  }
}

TEST_CASE("what is not finite is a fault") {
  for (const float poison : {math::kQuietNan, math::kInfinity, -math::kInfinity}) {
    CAPTURE(poison);
    // A mean: no environment is stepped with the action, though it could be clamped.
    Run<PointPpo> acting(11);
    initialize(Generic{}, acting.training);
    acting.train(Generic{}, 3);
    const Learner<PointPpo> before = *acting.learner;
    acting.learner->actor.bias(2)[1] = poison;
    CHECK_FALSE(acting.step(Generic{}).finite);
    CHECK(same(acting.learner->environments, before.environments));
    CHECK(acting.learner->progress.step == before.progress.step);
    CHECK(acting.replay->size == 3);
    const EvaluationReport report = evaluate(Generic{}, acting.training);
    CHECK(report.mean != report.mean);
    // A reward.
    *acting.learner = before;
    CHECK(acting.step(Generic{}).finite);
    acting.learner->environments.state[2].y = poison;
    CHECK_FALSE(acting.step(Generic{}).finite);
    // Losses, in the first minibatch and in a later one.
    for (const int minibatch : {0, 5}) {
      const auto stays_finite = [&](auto&& spoil) {
        Learning learning(11);
        for (int i = 0; i < minibatch; i++) REQUIRE(learning.learn().finite);
        spoil(learning);
        return learning.learn().finite;
      };
      CHECK_FALSE(stays_finite([&](Learning& run) { run.learner->actor.bias(2)[0] = poison; }));
      CHECK_FALSE(stays_finite([&](Learning& run) { run.learner->critic.bias(2)[0] = poison; }));
      if (minibatch == 0) {
        CHECK_FALSE(stays_finite([&](Learning& run) {
          for (float& reward : run.replay->reward) reward = poison;
        }));
      } else {
        CHECK_FALSE(stays_finite([&](Learning& run) {
          for (float& target : run.replay->target) target = poison;
        }));
      }
    }
  }
}

TEST_CASE("a state that no run can have is refused") {
  Learning run(12);
  CHECK(state_is_consistent(run.training));
  run.learn();
  CHECK(state_is_consistent(run.training));
  run.replay->size = 15;  // in the middle of a rollout nothing is learned
  CHECK_FALSE(state_is_consistent(run.training));
  Run<PointPpo> collecting(12);
  initialize(Generic{}, collecting.training);
  for (int step = 0; step < 60; step++) {
    CHECK(state_is_consistent(collecting.training));
    collecting.step(Generic{});
  }
  initialize(Generic{}, collecting.training);
  collecting.train(Generic{}, 7);
  CHECK(state_is_consistent(collecting.training));
  collecting.learner->minibatches = 1;
  CHECK_FALSE(state_is_consistent(collecting.training));
  collecting.learner->minibatches = 0;
  collecting.learner->environments.episode_step[3] += 1;
  CHECK_FALSE(state_is_consistent(collecting.training));
}

TEST_CASE("the deployed policy has the normalizer, and the bits of act()") {
  static_assert(std::is_same_v<PolicyNetwork<PointPpo>, PointPpo::Actor>);
  Run<PointPpo> run(13);
  run.training.hyperparameters.learning_rate = 0.01f;
  initialize(Generic{}, run.training);
  run.train(Generic{}, 200);
  for (int i = 0; i < 16; i++) run.learner->actor.weights(2)[i] *= 8;  // often beyond the bounds
  CHECK(run.learner->normalizer.shift[1] == doctest::Approx(50).epsilon(0.1));
  alignas(4) static std::uint8_t image[kPolicyImageBytes<PointPpo>];
  const std::uint8_t state_sha256[32] = {};
  build_policy_image(Generic{}, run.training, state_sha256, image);
  static PolicyRunner<64, 0, kPolicyImageBytes<PointPpo>> deployed(policy_contract<Point<float>>());
  REQUIRE(deployed.accept(Generic{}, image, sizeof(image)).accepted());
  int clamped = 0, within = 0;
  for (int k = 0; k < 300; k++) {
    const auto draw = [&](std::uint32_t index, float bound) {
      return uniform<float>({1, Purpose::shuffle, static_cast<std::uint32_t>(k)}, index, -bound,
                            bound);
    };
    Matrix<float, 1, 3> observation{{draw(0, 20), 50 + draw(1, 200), draw(2, 40)}};
    Matrix<float, 1, 2> action;
    float deployed_action[2];
    act(Generic{}, run.training, observation, action);
    REQUIRE(deployed.act(Generic{}, observation.values, deployed_action) ==
            ActionSource::from_policy);
    for (int i = 0; i < 2; i++) {
      CHECK(deployed_action[i] == action(0, i));
      clamped += std::abs(action(0, i)) == 1;
      within += std::abs(action(0, i)) < 1;
    }
  }
  CHECK(clamped > 10);
  CHECK(within > 10);
}
