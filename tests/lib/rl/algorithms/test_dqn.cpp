// DQN by its definition: what it chooses while it explores, and when it learns and its target
// network follows. An update: test_pytorch.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "cartpole_dqn.h"
#include "resumed_run.h"
#include "rltools/devices/generic.h"
#include "rltools/rl/evaluation.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

struct SmallDqn : TaskExperiment<Dqn, CartPole<double>, 3> {
  static constexpr const char* kName = "small-dqn";
  struct Hyperparameters : DqnHyperparameters {
    Hyperparameters() { train_freq = 2; }
  };
  using Critic = Mlp<double, Dimensions<4, 3, 2>, Activation::tanh, Activation::identity>;
  static constexpr int kBatchSize = 6, kTileRows = 3, kReplayCapacity = 200;
};
template <class E>
struct Normalized : E {
  static constexpr bool kNormalized = true;
};
template <class E>
struct Averaged : E {
  static constexpr int kAveragedUpdates = 5;
};
struct FloatDqn : Averaged<Normalized<SmallDqn>> {  // policy images are of float
  using Scalar = float;
  using Environment = CartPole<float>;
  using Critic = Mlp<float, Dimensions<4, 3, 2>, Activation::tanh, Activation::identity>;
  struct Hyperparameters : SmallDqn::Hyperparameters {
    Hyperparameters() { learning_starts = 20; }
  };
};

using Network = SmallDqn::Critic;

}  // namespace

TEST_CASE("the share of random choices falls evenly, then stays; all are random while warming up") {
  Run<SmallDqn> run(5);
  auto& h = run.training.hyperparameters;
  h.steps = 1000;
  h.exploration_initial_eps = 0.9f;
  h.exploration_final_eps = 0.1f;
  h.exploration_fraction = 0.5f;
  initialize(Generic{}, run.training);
  const auto at = [&](std::uint32_t step) {
    run.learner->progress.step = step;
    return Dqn::epsilon(run.training);
  };
  CHECK(at(0) == doctest::Approx(0.9));
  CHECK(at(250) == doctest::Approx(0.5));
  CHECK(at(500) == doctest::Approx(0.1));
  CHECK(at(1000) == doctest::Approx(0.1));
  // Where one choice is worth more: it is taken but for half of the random ones.
  Network& network = run.learner->critic;
  set_zero(Generic{}, network);
  network.bias(1)[1] = 1;
  const auto share_of_left = [&](std::uint32_t step, std::uint32_t starts) {
    h.learning_starts = starts;
    int left = 0;
    for (std::uint32_t i = 0; i < 2000; i++) {
      run.learner->progress.step = step;
      h.seed = i;
      Actions<SmallDqn> action;
      Dqn::explore(Generic{}, run.training, action);
      left += action(0, 0) == 0;
    }
    return left / 2000.0;
  };
  CHECK(share_of_left(100, 101) == doctest::Approx(0.5).epsilon(0.12));
  CHECK(share_of_left(500, 1) == doctest::Approx(0.05).epsilon(0.4));
  h.exploration_final_eps = 0;
  CHECK(share_of_left(500, 1) == 0);
}

TEST_CASE(
    "updates begin after learning_starts, each train_freq steps; the target follows at its own "
    "pace") {
  Run<SmallDqn> run(6);
  auto& h = run.training.hyperparameters;
  h.learning_starts = 20;
  h.train_freq = 4;
  h.target_update_interval = 3;
  h.tau = 0.25f;
  initialize(Generic{}, run.training);
  for (std::uint32_t step = 1; step <= 80; step++) {
    CAPTURE(step);
    const auto before = *run.learner;
    const auto report = run.step(Generic{});
    const auto& after = *run.learner;
    const bool updates = step > 20 && step % 4 == 0;
    CHECK(after.progress.updates == before.progress.updates + (updates ? 1 : 0));
    CHECK(is_known(report.metrics.loss) == updates);
    CHECK(is_known(report.metrics.q_value) == updates);
    CHECK(is_known(report.metrics.epsilon));
    const bool follows = updates && after.progress.updates % 3 == 0;
    for (int i = 0; i < Network::kParameterCount; i++) {
      const double old = before.critic_target.values[i];
      const double target = follows ? old + 0.25 * (after.critic.values[i] - old) : old;
      CHECK(after.critic_target.values[i] == doctest::Approx(target).epsilon(1e-14));
    }
  }
}

TEST_CASE("tiles change no bit") {
  Run<SmallDqn> whole(7);
  Run<WithTileRows<SmallDqn, 6>> tiled(7);
  initialize(Generic{}, whole.training);
  initialize(Generic{}, tiled.training);
  whole.training.hyperparameters.learning_starts = 50;
  tiled.training.hyperparameters.learning_starts = 50;
  whole.train(Generic{}, 100);
  tiled.train(Generic{}, 100);
  CHECK(whole.state() == tiled.state());
  CHECK(state_is_finite(whole.training));
  CHECK(state_is_consistent(whole.training));
  CHECK(whole.tensor_names().front() == "critic/0/weights");
}

TEST_CASE("the policy is the critic's average, and learning does not know of it") {
  Run<Averaged<SmallDqn>> run(9);
  Run<SmallDqn> plain(9);
  run.training.hyperparameters.learning_starts = 20;
  plain.training.hyperparameters.learning_starts = 20;
  initialize(Generic{}, run.training);
  initialize(Generic{}, plain.training);
  Network expected = run.learner->critic;
  std::uint32_t updates = 0;
  for (int step = 0; step < 100; step++) {
    run.step(Generic{});
    plain.step(Generic{});
    const bool is_update = run.learner->progress.updates > updates;
    updates = run.learner->progress.updates;
    for (int i = 0; i < Network::kParameterCount; i++) {
      double& average = expected.values[i];
      if (is_update) average += (run.learner->critic.values[i] - average) / std::min(updates, 5u);
      REQUIRE(run.learner->average.values[i] == doctest::Approx(average).epsilon(1e-12));
      REQUIRE(run.learner->critic.values[i] == plain.learner->critic.values[i]);
    }
  }
  CHECK(updates > 20);
  CHECK(run.tensor_names().size() == plain.tensor_names().size() + 2 * Network::kLayerCount);
  CHECK(&Dqn::policy(run.training) == &run.learner->average);
  CHECK(&Dqn::policy(plain.training) == &plain.learner->critic);
  for (const int choice : {0, 1}) {  // what acts when training is over does not ask the critic
    set_zero(Generic{}, run.learner->average);
    run.learner->average.bias(1)[choice] = 1;
    set_zero(Generic{}, run.learner->critic);
    run.learner->critic.bias(1)[1 - choice] = 1;
    const Matrix<double, 1, 4> observation{};
    Matrix<double, 1, 1> action;
    act(Generic{}, run.training, observation, action);
    CHECK(action(0, 0) == choice);
  }
}

// Of mean 0.5 and deviation 2, and so well known that no further observation tells.
template <class T, int D>
void fix(Normalizer<T, D>& normalizer) {
  normalizer.count = 1e30;
  for (int i = 0; i < D; i++) {
    normalizer.mean[i] = 0.5;
    normalizer.sum_of_squares[i] = (4 - kNormalizerEpsilon) * normalizer.count;
  }
  apply_moments(normalizer);
}

TEST_CASE("with a normalizer, the critic sees normalized observations wherever it is asked") {
  using E = Normalized<SmallDqn>;
  Run<E> run(4);
  Run<SmallDqn> plain(4);  // its first layer has the normalizer in its weights
  for (auto* hyper : {&run.training.hyperparameters, &plain.training.hyperparameters}) {
    hyper->learning_starts = 20;
    hyper->exploration_initial_eps = hyper->exploration_final_eps = 0.2f;
    hyper->learning_rate = 0;
  }
  initialize(Generic{}, run.training);
  initialize(Generic{}, plain.training);
  fix(run.learner->normalizer);
  for (auto* network : {&plain.learner->critic, &plain.learner->critic_target}) {
    for (int i = 0; i < 3; i++) {
      for (int k = 0; k < 4; k++) {
        double& weight = network->weights(0)[k * 3 + i];
        weight /= 2;
        network->bias(0)[i] -= 0.5 * weight;
      }
    }
  }
  for (int step = 0; step < 150; step++) {
    const auto report = run.step(Generic{});
    const auto as_plain = plain.step(Generic{});
    REQUIRE(report.metrics.epsilon == as_plain.metrics.epsilon);
    if (is_known(report.metrics.loss)) {
      REQUIRE(report.metrics.loss == doctest::Approx(as_plain.metrics.loss).epsilon(1e-5));
      REQUIRE(report.metrics.q_value == doctest::Approx(as_plain.metrics.q_value).epsilon(1e-5));
    }
    REQUIRE(run.replay->action[run.replay->position] == plain.replay->action[run.replay->position]);
  }
  CHECK(run.learner->progress.updates > 60);
  CHECK(evaluate(Generic{}, run.training).mean == evaluate(Generic{}, plain.training).mean);
}

TEST_CASE("each observation that an action answers is taken in once") {
  Run<Normalized<SmallDqn>> run(4);
  initialize(Generic{}, run.training);
  CHECK(run.learner->normalizer.count == 1);
  run.train(Generic{}, 30);
  CHECK(run.learner->normalizer.count == 31);
}

TEST_CASE("with normalizer and average, a run goes on from any of its states, on any device") {
  training_run::check_goes_on<FloatDqn>(Generic{}, 60);
}

TEST_CASE("a state with an action that is no choice is refused") {
  Run<SmallDqn> run(7);
  initialize(Generic{}, run.training);
  run.train(Generic{}, 20);
  REQUIRE(state_is_consistent(run.training));
  double& action = run.replay->action[3];
  for (const double wrong : {-1.0, -1e-6, 0.5, 2.0, 1e30, HUGE_VAL, std::nan("")}) {
    action = wrong;
    CHECK_FALSE(state_is_consistent(run.training));
  }
  for (const double choice : {0.0, 1.0}) {
    action = choice;
    CHECK(state_is_consistent(run.training));
  }
}

TEST_CASE("a value that is not finite is a fault, and no choice") {
  Run<SmallDqn> run(8);
  initialize(Generic{}, run.training);
  run.training.hyperparameters.learning_starts = 1;
  run.train(Generic{}, 2);
  run.learner->critic.bias(1)[0] = math::kQuietNan;
  run.training.hyperparameters.exploration_initial_eps =
      run.training.hyperparameters.exploration_final_eps = 0;
  CHECK_FALSE(run.step(Generic{}).finite);
  CHECK(std::isnan(evaluate(Generic{}, run.training).mean));
}
