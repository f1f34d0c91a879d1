// Test: threads
// PPO with recurrent networks: which hidden states a rollout's windows begin with, what the critic
// says of states in which episodes end, and that neither tiles, devices, threads nor checkpoints
// change a bit.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "any_threads.h"
#include "resumed_run.h"
#include "rltools/rl/algorithms/ppo.h"
#include "rltools/rl/environments/masked_pendulum.h"
#include "rltools/rl/evaluation.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

// Episodes of 7 steps end within windows of 4, and at their ends.
struct Small {
  static constexpr const char* kName = "small";
  using Scalar = float;
  using Environment = MaskedPendulum<float>;
  using Algorithm = Ppo;
  using Actor = Sequential<float, 2, Gru<5>, Dense<1, Activation::identity>>;
  using Critic =
      Sequential<float, 3, Dense<4, Activation::tanh>, Gru<3>, Dense<1, Activation::identity>>;
  using Hyperparameters = PpoHyperparameters;
  static constexpr int kEnvironments = 3;
  static constexpr int kRolloutSteps = 16;
  static constexpr int kEpisodeSteps = 7;
  static constexpr int kBatchSize = 16;
  static constexpr int kTileRows = 8;
  static constexpr int kWindowSteps = 4;
};
struct RecurrentActor : Small {
  using Critic = Mlp<float, Dimensions<3, 6, 1>, Activation::relu, Activation::identity>;
};

constexpr RandomStream kNone{7, Purpose::shuffle, 0};  // nothing is drawn from it

constexpr int kIterationCalls = Small::kRolloutSteps + 4 * 3;  // four epochs of three minibatches

// The present row of a run: whether its episode begins with it.
template <class E>
bool begins(const Replay<E>& rollout, int step, int environment) {
  return step > 0 && rollout.done[(step - 1) * E::kEnvironments + environment] != rollout.kRunning;
}

template <class E, class Device>
std::string hash_of(Device device, int calls) {
  Run<E> run(5);
  initialize(device, run.training);
  run.train(device, static_cast<std::uint32_t>(calls));
  return run.state_sha256();
}

}  // namespace

TEST_CASE("a window begins with the state in which the actor came to it") {
  Run<Small> run(3);
  initialize(Generic{}, run.training);
  const auto& rollout = *run.replay;
  for (int iteration = 0; iteration < 2; iteration++) {
    CAPTURE(iteration);
    // The states before the rollout, from which each environment's steps are followed alone.
    std::vector<float> state(std::begin(rollout.actor_state.present),
                             std::end(rollout.actor_state.present));
    run.train(Generic{}, Small::kRolloutSteps);
    WindowBuffer<Small::Actor, 1, 1> buffer;
    for (int i = 0; i < Small::kEnvironments; i++) {
      float* own = state.data() + i * 5;
      for (int step = 0; step < Small::kRolloutSteps; step++) {
        const int row = step * Small::kEnvironments + i;
        if (begins<Small>(rollout, step, i)) std::fill(own, own + 5, 0.0f);
        if (step % Small::kWindowSteps == 0) {
          const int window = step / Small::kWindowSteps * Small::kEnvironments + i;
          REQUIRE(std::memcmp(own, rollout.actor_state.window + window * 5, 20) == 0);
        }
        Matrix<float, 1, 2> seen;
        Matrix<float, 1, 1> mean;
        normalize_part<2>(run.learner->normalizer, rollout.observation + row * 3, seen.data());
        forward_step(Generic{}, run.learner->actor, seen, MatrixView<float, 1, 5>{own}, mean,
                     buffer);
        REQUIRE(mean(0, 0) == rollout.mean[row]);
      }
      if (begins<Small>(rollout, Small::kRolloutSteps, i)) std::fill(own, own + 5, 0.0f);
      CHECK(std::memcmp(own, rollout.actor_state.present + i * 5, 20) == 0);
    }
    // So the policy that is learned is at first the one that acted, to the last bit.
    const auto first = run.step(Generic{});
    CHECK(first.metrics.kl == 0);
    CHECK(first.metrics.clip_fraction == 0);
    const auto second = run.step(Generic{});
    CHECK(second.metrics.kl > 0);
    run.train(Generic{}, kIterationCalls - Small::kRolloutSteps - 2);
    REQUIRE(rollout.size == 0);
  }
}

TEST_CASE("values, and those of states in which episodes are cut off, follow the critic's states") {
  Run<Small> run(4);
  run.training.hyperparameters.recompute_advantage = 1;
  initialize(Generic{}, run.training);
  const auto& rollout = *run.replay;
  run.train(Generic{}, 2 * kIterationCalls);
  const std::vector<float> before(std::begin(rollout.critic_state.present),
                                  std::end(rollout.critic_state.present));
  CHECK(std::count(before.begin(), before.end(), 0.0f) < 9);
  run.train(Generic{}, Small::kRolloutSteps + 3);  // to the second epoch
  const Small::Critic critic = run.learner->critic;
  run.step(Generic{});  // which begins with values of this critic
  int cut_off = 0;
  WindowBuffer<Small::Critic, 1, 1> buffer;
  const auto value_of = [&](const float* observation, float* state) {
    Matrix<float, 1, 3> seen;
    Matrix<float, 1, 1> value;
    normalize(run.learner->normalizer, observation, seen.data());
    forward_step(Generic{}, critic, seen, MatrixView<float, 1, 3>{state}, value, buffer);
    return value(0, 0);
  };
  const auto& hyper = run.training.hyperparameters;
  for (int i = 0; i < Small::kEnvironments; i++) {
    CAPTURE(i);
    float state[3];
    std::memcpy(state, before.data() + i * 3, sizeof state);
    float values[Small::kRolloutSteps + 1], after[Small::kRolloutSteps];
    for (int step = 0; step < Small::kRolloutSteps; step++) {
      const int row = step * Small::kEnvironments + i;
      if (begins<Small>(rollout, step, i)) std::fill(state, state + 3, 0.0f);
      if (step % Small::kWindowSteps == 0) {
        const int window = step / Small::kWindowSteps * Small::kEnvironments + i;
        REQUIRE(std::memcmp(state, rollout.critic_state.window + window * 3, sizeof state) == 0);
      }
      values[step] = value_of(rollout.observation + row * 3, state);
      CHECK(run.scratch->value_of_row[row] == values[step]);
      if (rollout.done[row] != rollout.kTruncated) continue;
      float copy[3];
      std::memcpy(copy, state, sizeof copy);
      const int number = truncations_before(rollout, i, step);
      after[step] =
          value_of(rollout.final_observation + (i * rollout.kTruncations + number) * 3, copy);
      cut_off++;
    }
    if (begins<Small>(rollout, Small::kRolloutSteps, i)) std::fill(state, state + 3, 0.0f);
    CHECK(std::memcmp(state, rollout.critic_state.present + i * 3, sizeof state) == 0);
    values[Small::kRolloutSteps] = value_of(rollout.current_observation + i * 3, state);
    float advantage = 0;
    for (int step = Small::kRolloutSteps - 1; step >= 0; step--) {
      const int row = step * Small::kEnvironments + i;
      const bool ended = rollout.done[row] != rollout.kRunning;
      const float next = ended ? after[step] : values[step + 1];
      const float delta = math::fma(hyper.gamma, next, rollout.reward[row]) - values[step];
      advantage = math::fma(hyper.gamma * hyper.gae_lambda, ended ? 0.0f : advantage, delta);
      CHECK(rollout.advantage[row] == doctest::Approx(advantage).epsilon(1e-5));
    }
  }
  CHECK(cut_off >= 6);
}

TEST_CASE("neither the tile, the device nor the number of threads changes a bit") {
  const int calls = 2 * kIterationCalls + 5;
  const std::string hash = hash_of<Small>(Generic{}, calls);
  training_run::with_any_threads(
      [&](HostThreads device) { CHECK(hash_of<WithTileRows<Small, 16>>(device, calls) == hash); });
  const std::string actor = hash_of<RecurrentActor>(Generic{}, calls);
  CHECK(hash_of<WithTileRows<RecurrentActor, 16>>(HostSimd{}, calls) == actor);
}

TEST_CASE("a run goes on from any of its states as if it had not been interrupted") {
  training_run::check_goes_on<Small>(Generic{}, 2 * kIterationCalls);
}

TEST_CASE("an evaluation carries the hidden state through an episode, and begins each with zeros") {
  Run<Small> run(7);
  run.training.hyperparameters.n_eval_episodes = 3;
  initialize(Generic{}, run.training);
  run.train(Generic{}, kIterationCalls);
  const auto report = evaluate(Generic{}, run.training);
  const auto environment = environment_of(run.training);
  double sum = 0;
  for (std::uint32_t episode = 0; episode < 3; episode++) {
    MaskedPendulum<float>::Parameters parameters;
    MaskedPendulum<float>::State state;
    reset(Generic{}, environment, parameters, state, {7, Purpose::evaluation_reset, episode});
    PolicyState<Small> hidden{};
    for (int step = 0; step < Small::kEpisodeSteps; step++) {
      float seen[3];  // the policy's two, and the critic's
      Matrix<float, 1, 1> action;
      observe(Generic{}, environment, parameters, state, seen, kNone);
      act(Generic{}, run.training, MatrixView<const float, 1, 2>{seen}, hidden, action);
      sum += static_cast<double>(
          rlt::step(Generic{}, environment, parameters, state, action.data(), kNone).reward);
    }
  }
  CHECK(static_cast<double>(report.mean) == doctest::Approx(sum / 3).epsilon(1e-6));
}
